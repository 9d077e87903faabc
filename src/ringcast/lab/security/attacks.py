"""Attacks on sealed packets, each in a process of its own: what an attacker can make, at the threads that receive.

`python -m ringcast.lab.security.attacks KIND PACKETS SEED` runs one and prints what became of it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec

KINDS = {
    "forged": "made up, with the channel's key and its sender's number",
    "truncated": "authentic, cut short",
    "bit_flipped": "authentic but for one bit",
    "replayed": "authentic, sent again",
    "reflected": "the receiver's own, sent back to it",
    "old_key": "authentic once, of an epoch that is over",
    "another_stream": "sealed for another channel",
}
TIMEOUT_S = 600.0


class Outcome(msgspec.Struct, frozen=True):
    """`true_messages` are those of the true senders, before and after; the attack fails unless all arrive."""

    sent: int = 0
    accepted: int = 0
    forged: int = 0
    replayed: int = 0
    old_key: int = 0
    reflected: int = 0
    unreadable: int = 0
    true_messages: int = 0
    memory_bytes: int = 0
    crashed: bool = False
    said: str = ""


def attack(kind: str, packets: int, seed: int = 1) -> Outcome:
    """A process that dies, or whose receiving threads stop, has crashed."""
    command = [sys.executable, "-m", "ringcast.lab.security.attacks", kind, str(packets), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Outcome(crashed=True, said=f"it took more than {TIMEOUT_S:.0f} s")
    if done.returncode != 0:
        return Outcome(crashed=True, said=done.stderr.strip().rpartition("\n")[2])
    return msgspec.json.decode(done.stdout, type=Outcome)


def main(kind: str, packets: str, seed: str) -> None:
    from ringcast import _lab

    print(json.dumps(_lab.attack(kind, packets=int(packets), seed=int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])

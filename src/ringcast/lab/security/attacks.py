"""Attacks on sealed packets, each in a process of its own: what an attacker can make, at the threads that receive.

`python -m ringcast.lab.security.attacks KIND PACKETS SEED` runs one and prints what became of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping

import msgspec

from ringcast.lab.measuring.report import Analysed, Findings, Table
from ringcast.lab.measuring.rows import Row, at_most
from ringcast.lab.security.cells import Attacked, told, values
from ringcast.record.figures import Measured

KINDS = {
    "forged": "made up, with the channel's key and its sender's number",
    "truncated": "authentic, cut short",
    "bit_flipped": "authentic but for one bit",
    "replayed": "authentic, sent again",
    "reflected": "the receiver's own, sent back to it",
    "old_key": "authentic once, of an epoch that is over",
    "another_stream": "sealed for another channel",
}
MEMORY = "memory_bytes"
METRICS = ("sent", "accepted", "forged", "replayed", "old_key", "reflected", "unreadable", MEMORY)
"""Of an outcome, in the lake."""
MOST_BYTES = 256 * 1024
"""What a process may grow by during an attack: allocators round up, and threads touch their stacks."""
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


def counted(outcomes: Mapping[str, Outcome]) -> Iterator[Measured]:
    """Of one that crashed nothing else is known."""
    for kind, outcome in outcomes.items():
        yield from values(Attacked(kind), "crashed", [[outcome.crashed]], "processes")
        for metric in () if outcome.crashed else METRICS:
            unit = "bytes" if metric == MEMORY else "packets"
            yield from values(Attacked(kind), metric, [[getattr(outcome, metric)]], unit)


def judged(analysed: Analysed) -> Findings:
    found = {metric: told(analysed, metric, Attacked) for metric in METRICS}
    crashed = told(analysed, "crashed", Attacked)
    rows, lines = list[Row](), list[list[str]]()
    for kind, what in KINDS.items():
        if (cell := Attacked(kind)) in crashed:
            line = {metric: found[metric][cell]["total"] if cell in found[metric] else None for metric in METRICS}
            rows.append(at_most(f"{line['sent'] or 0:,.0f} packets {what}: accepted", line["accepted"], "packets", 0))
            lines.append([kind, *("-" if value is None else f"{value:.0f}" for value in line.values())])
    if not rows:
        return Findings()
    processes = sum(one["total"] for one in crashed.values())
    rows.append(at_most("crashes while being attacked", processes, "processes", 0))
    grown = max((one["most"] for one in found[MEMORY].values()), default=None)
    rows.append(at_most("memory grown by while being attacked, at most", grown, "bytes", MOST_BYTES))
    heads = ["attack", *(metric.removesuffix("_bytes").replace("_", " ") for metric in METRICS)]
    return Findings(rows, [Table("What became of the attackers' packets", heads, lines)])


def main(kind: str, packets: str, seed: str) -> None:
    from ringcast import _lab

    print(json.dumps(_lab.attack(kind, packets=int(packets), seed=int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])

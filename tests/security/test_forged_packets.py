"""Packets that an attacker makes, changes, keeps or turns round: none is accepted, and the true stream goes on.

The same attacks as `ringcast lab run security`, with fewer packets.
"""

from __future__ import annotations

import pytest

from ringcast.lab.security.attacks import KINDS, attack

PACKETS = 3_000
COUNTED = {
    "forged": ("forged", "old_key", "unreadable"),
    "truncated": ("forged", "replayed", "old_key", "unreadable"),
    "bit_flipped": ("forged", "replayed", "old_key", "reflected", "unreadable"),
    "replayed": ("replayed", "old_key"),
    "reflected": ("reflected", "forged"),
    "old_key": ("old_key",),
    "another_stream": ("forged", "replayed"),
}
"""Where a packet of each kind is counted."""


@pytest.mark.parametrize("kind", KINDS)
def test_packets_of_an_attacker(kind: str) -> None:
    outcome = attack(kind, PACKETS, seed=7)
    assert not outcome.crashed, outcome.said
    assert (outcome.sent, outcome.accepted) == (PACKETS, 0)
    assert sum(getattr(outcome, name) for name in COUNTED[kind]) == PACKETS

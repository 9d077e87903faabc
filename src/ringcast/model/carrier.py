"""A transport that the mesh chooses by itself: `auto:METRIC`, and what was chosen. Pure values.

auto     = "auto:" metric ["," "loss=" number ["%"]]
metric   = what is to be as good as can be, as in "auto:relate2"
loss     = the share of messages that may be missing, as in "auto:p99,loss=2%"; without it, any transport will do
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

AUTO = "auto"
METRICS = {
    "relate2": "relate2",
    "p99": "latency_p99",
    "deadline": "late_or_lost_100ms",
    "bandwidth": "wire_bytes_per_update",
    "delivered": "delivered",
}
"""What may be asked for, and what experiments call it."""


class Automatic(NamedTuple):
    """`loss` is the share of messages that may be missing; 1: any."""

    metric: str
    loss: float = 1.0


class Chosen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the daemon that keeps a tag chose, why, and since when (UTC in ns)."""

    transport: str
    why: str = ""
    since_ns: int = 0


def is_automatic(transport: str) -> bool:
    return transport == AUTO or transport.startswith(f"{AUTO}:")


def automatic(transport: str) -> Automatic:
    """Raises ValueError."""
    metric, *settings = transport.removeprefix(AUTO).removeprefix(":").split(",")
    if metric not in METRICS:
        raise ValueError(f"{transport!r} should be {AUTO}:METRIC, where METRIC is {', '.join(METRICS)}")
    loss = 1.0
    for setting in settings:
        name, _, value = setting.partition("=")
        try:
            loss = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            loss = -1.0
        if name != "loss" or not 0 <= loss <= 1:
            raise ValueError(f"{setting!r} in {transport!r} should be loss=NUMBER%, from 0% to 100%")
    return Automatic(metric, loss)


UNORDERED = " unordered"


def choice_key(transport: str, reliable: bool, ordered: bool) -> str:
    """Under which a tag's row has what was chosen: for those who ask for the same, and to whom the same is promised."""
    return f"{transport}{' reliable' if reliable else '' if ordered else UNORDERED}"

"""A transport that the mesh chooses by itself: `auto:METRIC`, and what was chosen. Pure values.

auto     = "auto:" metric ["," "loss=" number ["%"]]
metric   = what is to be as good as can be, as in "auto:relate2"; "deadline" may say after how long a message is late,
           as in "auto:deadline=20ms"
loss     = the share of messages that may be missing, as in "auto:p99,loss=2%"; without it, any transport will do
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

AUTO = "auto"
DEADLINE = "deadline"
DEADLINE_S = 0.1
"""Where none is said. Experiments measure this one, so models know no other."""
LONGEST_DEADLINE_S = 3600.0
METRICS = {
    "relate2": "relate2",
    "p99": "latency_p99",
    DEADLINE: "late_or_lost_100ms",
    "bandwidth": "wire_bytes_per_update",
    "delivered": "delivered",
}
"""What may be asked for, and what experiments call it."""


class Automatic(NamedTuple):
    """`loss` is the share of messages that may be missing; 1: any. After `deadline_s` a message is late."""

    metric: str
    loss: float = 1.0
    deadline_s: float = DEADLINE_S


class Chosen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the daemon that keeps a tag chose, why, and since when (UTC in ns). While `pinned` is not empty an
    administrator has all whom it was chosen for use that instead, and nothing is chosen."""

    transport: str
    why: str = ""
    since_ns: int = 0
    pinned: str = ""


def is_automatic(transport: str) -> bool:
    return transport == AUTO or transport.startswith(f"{AUTO}:")


def automatic(transport: str) -> Automatic:
    """Raises ValueError."""
    asked, *settings = transport.removeprefix(AUTO).removeprefix(":").split(",")
    metric, equals, value = asked.partition("=")
    if metric not in METRICS or (equals and metric != DEADLINE):
        raise ValueError(f"{transport!r} should be {AUTO}:METRIC, where METRIC is {', '.join(METRICS)}")
    deadline_s = _seconds(value) if equals else DEADLINE_S
    if not 0 < deadline_s <= LONGEST_DEADLINE_S:
        raise ValueError(f"{asked!r} in {transport!r} should be {AUTO}:METRIC with {DEADLINE}=20ms, up to an hour")
    loss = 1.0
    for setting in settings:
        name, _, value = setting.partition("=")
        try:
            loss = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            loss = -1.0
        if name != "loss" or not 0 <= loss <= 1:
            raise ValueError(f"{setting!r} in {transport!r} should be loss=NUMBER%, from 0% to 100%")
    return Automatic(metric, loss, deadline_s)


_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(us|ms|s)")
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def _seconds(text: str) -> float:
    """0 for what is no duration."""
    found = _DURATION.fullmatch(text)
    return float(f"{float(found[1]) * _UNITS_S[found[2]]:.12g}") if found else 0.0


UNORDERED = " unordered"


def choice_key(transport: str, reliable: bool, ordered: bool, receiver: str = "") -> str:
    """Under which a tag's row has what was chosen: for those who ask for the same, and to whom the same is promised.
    What an administrator leaves to the mesh for one receiver, a node or a subscriber of it, is chosen for that one."""
    where = f" to {receiver}" if receiver else ""
    return f"{transport}{where}{' reliable' if reliable else '' if ordered else UNORDERED}"

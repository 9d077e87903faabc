"""What is offered against what is requested, field by field, as DDS compares them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ringcast import _core
from ringcast.errors import QosMismatch
from ringcast.model.carrier import is_automatic
from ringcast.model.profile import Profile
from ringcast.transport import recipe

_TIMES = {
    "period_s": "a message every {:g} s", "latency_s": "at most {:g} s late", "lease_s": "a sign of life every {:g} s",
}  # fmt: skip


class Mismatch(NamedTuple):
    field: str
    requested: str
    offered: str


def mismatches(offered: Profile, requested: Profile, every: int = 1, jitter_s: float = 0.0) -> list[Mismatch]:
    """Where the subscriber, which takes every n-th message, asks for more than the publisher offers, whose messages
    come up to `jitter_s` late; empty when it fits."""
    if offered.period_s is not None:
        offered = msgspec.structs.replace(offered, period_s=every * offered.period_s + jitter_s)
    found = []
    if requested.reliable and not offered.reliable:
        found.append(Mismatch("reliable", "reliable delivery", "best effort"))
    if requested.ordered and not offered.ordered:
        found.append(Mismatch("ordered", "messages in order", "no order"))
    if requested.history > offered.history:
        found.append(Mismatch("history", f"the last {requested.history} messages", f"the last {offered.history}"))
    for field, words in _TIMES.items():
        asked, given = getattr(requested, field), getattr(offered, field)
        if asked is not None and (given is None or given > asked * (1 + 1e-9)):
            found.append(Mismatch(field, words.format(asked), "nothing" if given is None else words.format(given)))
    return found


def check_carried(requested: Profile) -> None:
    """Whether its transport can do what it asks for. Raises QosMismatch."""
    name = requested.transport
    if requested.reliable and name and name != "tcp" and not (name != "udp" and recipe.read(name).promises.reliable):
        raise QosMismatch(
            f"profile {requested.name!r} with reliable delivery", f"its transport {name!r} may lose messages",
            "use 'tcp', 'nak' or 'lateral+nak' in it",
        )  # fmt: skip
    window = _window(name)
    if 0 < requested.history < window:
        raise QosMismatch(
            f"profile {requested.name!r} with the last {requested.history} messages",
            f"its transport {name!r} repairs {window} packets back, which must be held as long",
            f"ask for a history of {window}, or for another transport",
        )  # fmt: skip


def _window(name: str) -> int:
    """How many packets back a transport sends repairs, where it counts them; 0 otherwise."""
    if not name or name in ("tcp", "udp") or is_automatic(name):
        return 0
    found = recipe.read(name)
    tuning = {**_core.recovery_tuning(), **found.tuning}
    windows = [tuning["ack_window"]] if "ack" in found.shape.stages else []
    windows += [tuning["r"]] if found.shape.codes else []
    return max(windows, default=0)


def factor(offered: Profile, every: int, rate_hz: float) -> int:
    """Of how many messages a subscriber gets one that wants at most so many a second, by the period that is offered."""
    if not rate_hz or offered.period_s is None:
        return every
    return max(every, math.ceil(round(1 / (rate_hz * offered.period_s), 9)))


def check(
    offered: Profile, requested: Profile, known: Iterable[Profile], every: int = 1, jitter_s: float = 0.0
) -> None:  # fmt: skip
    """Raises QosMismatch, which names both sides and the nearest profile that fits."""
    found = mismatches(offered, requested, every, jitter_s)
    if not found:
        return
    best = nearest(offered, requested, known, every, jitter_s)
    remedy = f"profile {best.name!r} fits" if best is not None else "no profile fits: ask for less"
    raise QosMismatch(
        f"{', '.join(one.requested for one in found)} (profile {requested.name!r})",
        f"the publisher offers {', '.join(one.offered for one in found)} (profile {offered.name!r})",
        f"{remedy}, or have the publisher offer more",
    )


def nearest(
    offered: Profile, requested: Profile, known: Iterable[Profile], every: int = 1, jitter_s: float = 0.0
) -> Profile | None:
    """Of the profiles that fit what is offered, the one that gives up least of what was requested."""
    fitting = [one for one in known if not mismatches(offered, one, every, jitter_s)]
    return min(fitting, key=lambda one: (_distance(requested, one), one.name), default=None)


def _distance(one: Profile, other: Profile) -> float:
    """Yes or no counts as a factor of ten in a time."""
    total = float(one.reliable != other.reliable) + float(one.ordered != other.ordered)
    for field in _TIMES:
        a, b = getattr(one, field), getattr(other, field)
        total += abs(math.log10(a / b)) if a and b else float(a is not b)
    return total + abs(math.log10((one.history + 1) / (other.history + 1)))

"""What is offered against what is requested, field by field, as DDS compares them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ringcast.errors import QosMismatch
from ringcast.model.profile import Profile
from ringcast.transport import recipe

_TIMES = {
    "period_s": "a message every {:g} s", "latency_s": "at most {:g} s late", "lease_s": "a sign of life every {:g} s",
}  # fmt: skip


class Mismatch(NamedTuple):
    field: str
    requested: str
    offered: str


def mismatches(offered: Profile, requested: Profile) -> list[Mismatch]:
    """Where the subscriber asks for more than the publisher offers; empty when it fits."""
    found = []
    if requested.reliable and not offered.reliable:
        found.append(Mismatch("reliable", "reliable delivery", "best effort"))
    if requested.ordered and not offered.ordered:
        found.append(Mismatch("ordered", "messages in order", "no order"))
    if requested.history > offered.history:
        found.append(Mismatch("history", f"the last {requested.history} messages", f"the last {offered.history}"))
    for field, words in _TIMES.items():
        asked, given = getattr(requested, field), getattr(offered, field)
        if asked is not None and (given is None or given > asked):
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


def check(offered: Profile, requested: Profile, known: Iterable[Profile]) -> None:
    """Raises QosMismatch, which names both sides and the nearest profile that fits."""
    found = mismatches(offered, requested)
    if not found:
        return
    best = nearest(offered, requested, known)
    remedy = f"profile {best.name!r} fits" if best is not None else "no profile fits: ask for less"
    raise QosMismatch(
        f"{', '.join(one.requested for one in found)} (profile {requested.name!r})",
        f"the publisher offers {', '.join(one.offered for one in found)} (profile {offered.name!r})",
        f"{remedy}, or have the publisher offer more",
    )


def nearest(offered: Profile, requested: Profile, known: Iterable[Profile]) -> Profile | None:
    """Of the profiles that fit what is offered, the one that gives up least of what was requested."""
    fitting = [one for one in known if not mismatches(offered, one)]
    return min(fitting, key=lambda one: (_distance(requested, one), one.name), default=None)


def _distance(one: Profile, other: Profile) -> float:
    """Yes or no counts as a factor of ten in a time."""
    total = float(one.reliable != other.reliable) + float(one.ordered != other.ordered)
    for field in _TIMES:
        a, b = getattr(one, field), getattr(other, field)
        total += abs(math.log10(a / b)) if a and b else float(a is not b)
    return total + abs(math.log10((one.history + 1) / (other.history + 1)))

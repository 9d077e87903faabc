"""How a subscriber wants values: as they come, periodically, or when they change (LabMap, section III.B). Pure.

A policy with a selection and a place is a view. Equal views are one view, wherever they were asked for: they have the
same name, one proxy makes them, and whoever wants them shares one stream and one multicast group.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec

from ringcast.model.place import AUTO, PUBLISHER, SUBSCRIBER, check_place

PREFIX = "@view"
"""Tags of views begin with it; nobody else's may."""
MAX_PATTERNS = 1024
LONGEST_S = 86400.0
SHORTEST_S = 0.0005
"""A proxy that was to look more often would do nothing else."""
SHORTEST_FRAME_S = 0.01

Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)]


class EveryCycle(msgspec.Struct, frozen=True, tag="every_cycle"):
    """Every value that is sent, when it is sent."""


class Periodic(msgspec.Struct, frozen=True, tag="periodic"):
    """The newest value once in `period_s`, on a fixed grid of UTC, so that nothing drifts. A value that did not come
    anew since the period before is repeated and marked."""

    period_s: Seconds


class OnChange(msgspec.Struct, frozen=True, tag="on_change", kw_only=True):
    """A value when it changed, looked at once in `period_s` (0: whenever something comes). By default a new time of
    an old value is a change too; with `by="value"` only the value counts, and with a `dead_band` only a number that
    moved by more than that since it was sent last. Of one variable two values are at least `least_s` apart, the newest
    counts; after `longest_s` without a change the value is repeated and marked, so that silence means loss."""

    period_s: Seconds = 0.0
    by: Literal["either", "value"] = "either"
    dead_band: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    least_s: Seconds = 0.0
    longest_s: Seconds = 0.0


Policy = EveryCycle | Periodic | OnChange


def check_policy(policy: object) -> Policy:
    """Raises TypeError, ValueError."""
    if not isinstance(policy, EveryCycle | Periodic | OnChange):
        raise TypeError(f"a policy is EveryCycle(), Periodic(period_s) or OnChange(...), not {policy!r}")
    for name in policy.__struct_fields__:
        value = getattr(policy, name)
        if name == "by":
            if value not in ("either", "value"):
                raise ValueError(f"by is 'either' or 'value', not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{name} is a number from 0 on, not {value!r}")
        elif name != "dead_band" and value > LONGEST_S:
            raise ValueError(f"{name} is at most {LONGEST_S:g} s, not {value!r}")
    if isinstance(policy, Periodic) and policy.period_s <= 0:
        raise ValueError("a period is longer than 0; EveryCycle() brings values as they are sent")
    for name in ("period_s", "longest_s"):
        if 0 < getattr(policy, name, 0.0) < SHORTEST_S:
            raise ValueError(f"{name} is at least {SHORTEST_S:g} s, not {getattr(policy, name)!r}")
    if isinstance(policy, OnChange) and 0 < policy.longest_s < policy.least_s:
        raise ValueError(f"longest_s={policy.longest_s:g} is less than least_s={policy.least_s:g}: nothing can be both")
    return policy


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy makes of a tag. `at` is "publisher" or "node:NAME"."""

    of: str
    policy: Policy
    select: tuple[str, ...] = ()
    """Names or wildcards of variables; empty where the tag has none."""
    at: str = PUBLISHER
    frame_s: Seconds = 1.0

    @property
    def tag(self) -> str:
        """The name of the tag that carries it."""
        from hashlib import blake2b  # few programs have views, and loading it takes milliseconds

        digest = blake2b(msgspec.msgpack.encode(self), digest_size=8).hexdigest()
        return f"{PREFIX}/{digest}/{self.of}"


def view(
    of: str, policy: Policy, select: tuple[str, ...], at: str, node: str, tag_at: str = "", frame_s: float = 1.0
) -> View:
    """The view that a subscriber on `node` wants; the tag says where proxies sit when the subscriber leaves it open.
    Raises TypeError, ValueError."""
    check_policy(policy)
    check_place(at)
    if not isinstance(frame_s, int | float) or not SHORTEST_FRAME_S <= frame_s <= LONGEST_S:
        raise ValueError(f"frame_s is a number of seconds from {SHORTEST_FRAME_S:g} to {LONGEST_S:g}, not {frame_s!r}")
    if len(select) > MAX_PATTERNS:
        raise ValueError(f"{len(select)} patterns; at most {MAX_PATTERNS} are possible: use wildcards")
    place = at if at != AUTO else tag_at or PUBLISHER
    if place in (AUTO, PUBLISHER):
        place = PUBLISHER
    elif place == SUBSCRIBER:
        place = f"node:{node}"
    return View(of=of, policy=policy, select=tuple(sorted(set(select))), at=place, frame_s=frame_s)


def described(wanted: View, codec: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    """What the tag of a view says of itself: the schema of codec "view"."""
    return {"view": msgspec.to_builtins(wanted), "codec": codec, "schema": schema}


def described_view(schema: object) -> View | None:
    """The view that a tag's schema describes; None for none that may be. Untrusted: anybody makes tags."""
    if not isinstance(schema, dict) or "view" not in schema:
        return None
    try:
        found = msgspec.convert(schema["view"], View)
        check_policy(found.policy)
    except (msgspec.ValidationError, ValueError):
        return None
    return found if found.frame_s >= SHORTEST_FRAME_S and len(found.select) <= MAX_PATTERNS else None

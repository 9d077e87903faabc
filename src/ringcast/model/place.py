"""Where a proxy may sit: at the publisher, at the subscriber, or on a node in between; and who decides it. Pure values.

"auto" leaves it to whoever administers the tag, then to the tag's attributes, then to the daemon that keeps the tag,
which places such proxies by itself (`ringcast.daemon.placing`); until it has, the proxy is at the publisher.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

PUBLISHER = "publisher"
SUBSCRIBER = "subscriber"
AUTO = "auto"
_NODE = "node:"


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An administrator's word on a tag's channels; '' leaves it to others. `planned`: a plan was applied, and the next
    one may choose another place."""

    at: str = ""
    transport: str = ""
    planned: bool = False
    priority: str = ""
    """Class, DSCP and schedule as words (`ringcast.model.priority`)."""


class Placed(msgspec.Struct, frozen=True):
    """Where the daemon that keeps a tag has put the proxy of a subscriber that left it to it, and why there."""

    at: str
    why: str = ""


class Wanted(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a subscriber wants the messages of a tag, as far as other nodes need to know."""

    every: int = 1
    at: str = AUTO
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    transport: str = ""
    """Only one that is to be chosen (`ringcast.model.carrier`)."""
    ordered: bool = True
    range_hz: tuple[float, float] | None = None
    """Of a subscriber that takes less where more does not fit: from the least to the most. `rate_hz` is what it has."""
    range_size: tuple[tuple[int, int], tuple[int, int]] | None = None
    """The same of sizes; `size` is what it has."""

    @property
    def scales(self) -> bool:
        """Whether there is anything for a proxy to do."""
        return self.every > 1 or self.size is not None or self.rate_hz > 0


class Decided(NamedTuple):
    """`by` is 'subscriber setting' (for it alone), 'plan' (one was applied), 'setting', 'subscriber', 'tag', 'daemon'
    or '' (nobody yet).
    `overrides` is what the subscriber asked for in vain."""

    at: str
    by: str
    overrides: str = ""
    why: str = ""


def check_place(at: str) -> str:
    """Return `at` when it can be a proxy's place. Raises ValueError."""
    if isinstance(at, str) and (at in (PUBLISHER, SUBSCRIBER, AUTO) or node_of(at)):
        return at
    raise ValueError(f"at is 'publisher', 'subscriber', 'node:NAME' or 'auto', not {at!r}")


def node_of(at: str) -> str:
    """The node that `at` names, or ''."""
    return at.removeprefix(_NODE) if at.startswith(_NODE) else ""


def subscriber_key(node: str, subscriber: int) -> str:
    """Under which a tag's settings name one subscriber; a node's name has no '#'."""
    return f"{node}#{subscriber}"


def keys_for(node: str, subscriber: int) -> tuple[str, ...]:
    """The keys of settings that concern a subscriber, the narrowest first; '' is every node. Without a number yet (0)
    it is any subscriber of the node."""
    return (*([subscriber_key(node, subscriber)] if subscriber else []), node, "")


def decided(
    asked: str, node: str, subscriber: int, settings: Mapping[str, Setting], tag_at: str, placed: Mapping[str, Placed]
) -> Decided:
    """Who has the last word on a proxy: an administrator, then the subscriber, then the tag's attribute `at`, then
    the daemon that keeps the tag."""
    explicit = asked if asked != AUTO else ""
    for key in keys_for(node, subscriber):
        if key in settings and settings[key].at:
            at = settings[key].at
            by = "plan" if settings[key].planned else "subscriber setting" if "#" in key else "setting"
            return Decided(at, by, explicit if explicit != at else "")
    if explicit:
        return Decided(explicit, "subscriber")
    if tag_at and tag_at != AUTO:
        return Decided(tag_at, "tag")
    own = placed.get(subscriber_key(node, subscriber)) if placed else None
    return Decided(PUBLISHER, "") if own is None else Decided(own.at, "daemon", why=own.why)

"""Where a proxy may sit: at the publisher, at the subscriber, or on a node in between. Pure values.

"auto" leaves it to the tag and to whoever administers it; if they say nothing either it is the publisher, which saves
the most of the way.
"""

from __future__ import annotations

import msgspec

PUBLISHER = "publisher"
SUBSCRIBER = "subscriber"
AUTO = "auto"
_NODE = "node:"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator's word on a tag's channels; '' leaves it to others."""

    at: str = ""
    transport: str = ""


def check_place(at: str) -> str:
    """Return `at` when it can be a proxy's place. Raises ValueError."""
    if isinstance(at, str) and (at in (PUBLISHER, SUBSCRIBER, AUTO) or node_of(at)):
        return at
    raise ValueError(f"at is 'publisher', 'subscriber', 'node:NAME' or 'auto', not {at!r}")


def node_of(at: str) -> str:
    """The node that `at` names, or ''."""
    return at.removeprefix(_NODE) if at.startswith(_NODE) else ""

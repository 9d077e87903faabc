"""Who leaves a tag's transport to its keeper, for which of the receiving nodes, and what it is chosen for. Pure.

Invariant: what the keeper chooses for is what `ringcast.daemon.streams.routes` takes: of all that names a transport,
the narrowest counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec

from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import Heard
from ringcast.control.limits import MAX_CHOICES_PER_TAG
from ringcast.daemon.choosing.hearing import receiver_of
from ringcast.daemon.streams.routes import carriers
from ringcast.daemon.table.attributes import MAX_TRANSPORT_CHARS
from ringcast.daemon.table.rows import SubscriberRow, TagRow
from ringcast.errors import QosMismatch
from ringcast.model.carrier import automatic, choice_key, is_automatic
from ringcast.transport import find


class Asked(NamedTuple):
    """`nodes` have the subscribers whose wish it is. If an administrator has all of them use something else, these are
    `pins`."""

    wish: Wish
    nodes: frozenset[str]
    pins: frozenset[str] = frozenset()

    @property
    def pinned(self) -> str:
        """As a row may say it: all of them where they fit, or one and how many more."""
        pins = sorted(self.pins)
        every = " and ".join(pins)
        return every if len(every) <= MAX_TRANSPORT_CHARS else f"{pins[0]} and {len(pins) - 1} more"


class _Left(NamedTuple):
    """What somebody leaves to the mesh, for which receiver alone, and what is used instead."""

    text: str
    receiver: str
    pinned: str


def wishes_of(row: TagRow, subscribers: Iterable[SubscriberRow]) -> dict[str, Asked]:
    """By `choice_key`."""
    found: dict[str, Asked] = {}
    for one in subscribers:
        if (left := _left(row, one)) is None:
            continue
        # Whoever scales needs an order although it asked for none, so both are at hand.
        for ordered in {True, one.wanted.ordered}:
            if (wish := _wish(left.text, one.info.reliable, ordered)) is not None:
                key = choice_key(left.text, wish.reliable, wish.ordered, left.receiver)
                asked = Asked(wish, frozenset([one.owner]), frozenset({left.pinned} - {""}))
                found[key] = _with(found[key], asked) if key in found else asked
    return found


def _left(row: TagRow, one: SubscriberRow) -> _Left | None:
    *settings, own, tag = carriers(one.wanted.transport or one.transport, row, one.owner, one.info.id)
    promised, pinned = Wish("", reliable=one.info.reliable, ordered=one.wanted.ordered), ""
    for text, receiver in settings:
        if is_automatic(text):
            return _Left(text, receiver, "")
        pinned = text if serves(text, promised) else ""
    for text, receiver in (own, tag):
        if is_automatic(text):
            return _Left(text, receiver, pinned)
        if text and serves(text, promised):
            return None  # it asked for that one itself
    return None


def _wish(text: str, reliable: bool, ordered: bool) -> Wish | None:
    try:
        metric, loss, deadline_s = automatic(text)
    except ValueError:  # of a daemon that knows more
        return None
    return Wish(metric, loss, reliable, ordered or reliable, deadline_s)


def _with(known: Asked, new: Asked) -> Asked:
    """Nodes where something is pinned meet nothing that matters to others."""
    if bool(known.pins) != bool(new.pins):
        return known if new.pins else new
    return Asked(known.wish, known.nodes | new.nodes, known.pins | new.pins)


def limited(asked: dict[str, Asked], chosen: Collection[str]) -> dict[str, Asked]:
    """As many as a row may have; those for which something was `chosen` stay."""
    kept = sorted(asked, key=lambda key: (key not in chosen, key))[:MAX_CHOICES_PER_TAG]
    return asked if len(kept) == len(asked) else {key: asked[key] for key in kept}


def of_nodes(heard: Iterable[Heard], nodes: Collection[str]) -> list[Heard]:
    """What was heard, of receivers only what these have, and of senders what is sent to these."""
    return [
        msgspec.structs.replace(
            one, channels=one.channels if one.node in nodes else [],
            sent=[stream for stream in one.sent if receiver_of(stream) in nodes],
        )
        for one in heard
    ]  # fmt: skip


def serves(transport: str, wish: Wish) -> bool:
    """Whether a transport keeps what is promised."""
    try:
        promises = find(transport).promises
    except QosMismatch:
        return False
    return (promises.reliable or not wish.reliable) and (promises.ordered or not wish.ordered)


def asks(row: object) -> bool:
    """Whether somebody may leave a transport to its keeper with this row."""
    if isinstance(row, SubscriberRow):
        return bool(row.wanted.transport)
    if isinstance(row, TagRow):
        texts = [row.attributes.transport, *(setting.transport for setting in row.settings.values())]
        return any(map(is_automatic, texts))
    return False

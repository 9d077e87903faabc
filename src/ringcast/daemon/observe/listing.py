"""Listings, cut into pages that fit one packet each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from ringcast.control.answers import (
    ChannelListing,
    MeshObserved,
    NodeListing,
    PublisherListing,
    SettingListing,
    SubscriberListing,
    TagListing,
)
from ringcast.control.framing import MAX_PACKET_BYTES
from ringcast.control.notices import Presences
from ringcast.control.placing import Observation
from ringcast.control.status import (
    ChannelStatus,
    NodeStatus,
    PublisherStatus,
    SettingStatus,
    SubscriberStatus,
    TagStatus,
)
from ringcast.daemon.rings.ring import Ring
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow, TagRow
from ringcast.model.identity import Presence
from ringcast.model.tag import tag_id

_R = TypeVar("_R", TagStatus, PublisherStatus, SubscriberStatus, NodeStatus, ChannelStatus, SettingStatus, Presence)

_ENVELOPE_BYTES = 64
_encoder = msgspec.msgpack.Encoder()


def tag_status(
    row: TagRow, rings: Iterable[Ring], publishers: list[PublisherRow], subscribers: list[SubscriberRow]
) -> TagStatus:
    """A row of `ringcast tags`. Rings left behind count in the sums, so that a publisher's leaving undoes nothing."""
    sent = size = last = 0
    for ring in rings:
        counters = ring.monitor.counters()
        sent += counters.get("sent", 0)
        size += counters.get("bytes", 0)
        last = max(last, ring.monitor.last_sent_ns())
    return TagStatus(
        name=row.name, id=tag_id(row.name), attributes=row.attributes, publishers=sum(p.alive for p in publishers),
        subscribers=len(subscribers), sent=sent, bytes=size, last_sent_ns=last,
        settings=row.settings, placed=row.placed, chosen=row.chosen,
    )  # fmt: skip


def tag_pages(request_id: int, rows: Iterable[TagStatus]) -> list[TagListing]:
    return [TagListing(id=request_id, rows=page, more=more) for page, more in _pages(rows)]


def publisher_pages(request_id: int, rows: Iterable[PublisherStatus]) -> list[PublisherListing]:
    return [PublisherListing(id=request_id, rows=page, more=more) for page, more in _pages(rows)]


def subscriber_pages(request_id: int, rows: Iterable[SubscriberStatus]) -> list[SubscriberListing]:
    return [SubscriberListing(id=request_id, rows=page, more=more) for page, more in _pages(rows)]


def node_pages(request_id: int, rows: Iterable[NodeStatus]) -> list[NodeListing]:
    return [NodeListing(id=request_id, rows=page, more=more) for page, more in _pages(rows)]


def setting_pages(request_id: int, rows: Iterable[SettingStatus]) -> list[SettingListing]:
    return [SettingListing(id=request_id, rows=page, more=more) for page, more in _pages(rows)]


def channel_pages(
    request_id: int, rows: Iterable[ChannelStatus], dropped: dict[str, dict[str, int]]
) -> list[ChannelListing]:
    taken = len(_encoder.encode(dropped))
    return [ChannelListing(id=request_id, rows=page, dropped=dropped, more=more) for page, more in _pages(rows, taken)]


def observation_pages(request_id: int, found: Observation) -> list[MeshObserved]:
    whole = _encoder.encode(found)
    room = MAX_PACKET_BYTES - _ENVELOPE_BYTES
    pieces = [whole[at : at + room] for at in range(0, len(whole), room)]
    return [MeshObserved(id=request_id, piece=piece, more=n < len(pieces)) for n, piece in enumerate(pieces, 1)]


def presence_pages(watch: int, rows: Iterable[Presence], *, anew: bool) -> list[Presences]:
    pages = [page for page, _ in _pages(rows)]
    return [Presences(watch=watch, rows=page, anew=anew and i == 0) for i, page in enumerate(pages) if page or anew]


def _pages(rows: Iterable[_R], taken: int = 0) -> Iterator[tuple[list[_R], bool]]:
    page: list[_R] = []
    whole = room = MAX_PACKET_BYTES - _ENVELOPE_BYTES - taken
    for row in rows:
        size = len(_encoder.encode(row))
        if page and size > room:
            yield page, True
            page, room = [], whole
        page.append(row)
        room -= size
    yield page, False

"""The rings that a pattern selects, anywhere in the mesh, for reading by number in columns.

Pull and nothing else: nobody is anybody's subscriber here. A ring of this node is read in place; one of another node is
asked for page by page through the daemon. Rings whose publishers have left are part of it for as long as they are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringcast.client.remote_history import RemoteHistory
from ringcast.client.rings.local_history import LocalHistory
from ringcast.errors import BrokenError, Empty, HistoryError, UnknownTag
from ringcast.message import Message
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes, is_pattern
from ringcast.record.bronze import Batch
from ringcast.scaling.temporal import first_due
from ringcast.session import Session
from ringcast.tag import Tag

BATCH_ROWS = 50_000
BATCH_BYTES = 64 * 1024 * 1024
REMOTE_ROWS = 4096


class Ring(NamedTuple):
    info: PublisherInfo
    attributes: TagAttributes
    alive: bool


@dataclass
class MessageColumns:
    """Messages that came one by one, as columns."""

    messages: list[Message[bytes]]
    rings: list[PublisherInfo]
    following: int
    lost_at_end: int = 0
    ring: NDArray[np.int32] = field(init=False)
    seq: NDArray[np.int64] = field(init=False)
    event_ns: NDArray[np.int64] = field(init=False)
    sent_ns: NDArray[np.int64] = field(init=False)
    received_ns: NDArray[np.int64] = field(init=False)
    lost: NDArray[np.int64] = field(init=False)
    discardable: NDArray[np.uint8] = field(init=False)
    offsets: NDArray[np.int32] = field(init=False)
    payload: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        found = self.messages
        self.ring = np.zeros(len(found), np.int32)
        self.seq = np.array([m.seq for m in found], np.int64)
        self.event_ns = np.array([m.event_ns for m in found], np.int64)
        self.sent_ns = np.array([m.sent_ns for m in found], np.int64)
        self.received_ns = np.array([m.received_ns for m in found], np.int64)
        self.lost = np.array([m.lost for m in found], np.int64)
        self.discardable = np.array([m.discardable for m in found], np.uint8)
        self.offsets = np.cumsum([0, *(len(m.data) for m in found)]).astype(np.int32)
        self.payload = np.frombuffer(b"".join(m.data for m in found), np.uint8)

    def __len__(self) -> int:
        return len(self.messages)


class Stretch(NamedTuple):
    """Some of a range, and what of it is gone."""

    columns: Batch
    following: int
    lost_at_end: int


class Rings:
    """Made for one session and pattern; open histories are kept, so asking again is cheap."""

    def __init__(self, session: Session, pattern: str) -> None:
        self._session = session
        self.pattern = pattern
        self._tags: dict[str, Tag] = {}
        self._local: dict[str, LocalHistory[bytes]] = {}

    def names(self) -> list[str]:
        """The tags there are. Raises DaemonUnavailable."""
        return [row.name for row in self._session.tags(self.pattern)]

    def attributes(self) -> dict[str, TagAttributes]:
        return {row.name: row.attributes for row in self._session.tags(self.pattern)}

    def list(self) -> list[Ring]:
        """Every ring there is, in a stable order. A tag that does not exist yet has none. Raises DaemonUnavailable."""
        found = []
        for name in self.names():
            try:
                tag = self._tag(name)
                rows = tag.publishers(left=True)
            except UnknownTag:  # destroyed just now
                self._forget(name)
                continue
            found += [Ring(row.info, tag.attributes, row.alive) for row in rows]
        return sorted(found, key=lambda ring: (ring.info.tag, ring.info.incarnation))

    def bounds(self, info: PublisherInfo) -> tuple[int, int] | None:
        """(oldest held, newest), (n, n - 1) when empty; None when the ring is gone or its node away."""
        try:
            if self.is_local(info):
                return self._history(info).bounds(incarnation=info.incarnation)
            with self._remote(info) as history:
                return history.bounds()
        except (HistoryError, BrokenError, UnknownTag):
            return None

    def stretches(self, info: PublisherInfo, first: int, last: int, every: int = 1) -> Iterator[Stretch]:
        """What is held of first..last, a batch at a time. Raises CorruptRing, BrokenError (its node is away)."""
        if self.is_local(info):
            yield from self._local_stretches(info, first, last, every)
        else:
            yield from self._remote_stretches(info, first, last, every)

    def first_sent_from(self, info: PublisherInfo, sent_ns: int) -> int | None:
        """The number of the first message held that was sent at `sent_ns` or later; the next one if all are older."""
        bounds = self.bounds(info)
        if bounds is None:
            return None
        low, high = bounds[0], bounds[1] + 1
        while low < high:
            middle = (low + high) // 2
            at = self._sent_ns(info, middle)
            if at is not None and at >= sent_ns:
                high = middle
            else:  # overwritten while we looked: then it was older
                low = middle + 1
        return low

    def close(self) -> None:
        for history in self._local.values():
            history.close()
        self._local.clear()

    # ---------------------------------------------------------------- parts

    def _local_stretches(self, info: PublisherInfo, first: int, last: int, every: int) -> Iterator[Stretch]:
        history = self._history(info)
        following = first
        while following <= last:
            columns = history.range_columns(
                following, last, info.incarnation, every=every, most_rows=BATCH_ROWS, most_bytes=BATCH_BYTES
            )
            if columns.following <= following and not len(columns):
                return  # not sent yet
            following = columns.following
            yield Stretch(columns, following, columns.lost_at_end)

    def _remote_stretches(self, info: PublisherInfo, first: int, last: int, every: int) -> Iterator[Stretch]:
        following = first_due(first, every)
        with self._remote(info) as history:
            newest: int | None = None
            while following <= last:
                end = min(last, following + REMOTE_ROWS * every - 1)
                pulled = _pulled(history, following, end)
                # Only when the last one is not there is it asked whether it was sent: each question is a round trip.
                if newest is None and (not pulled or pulled[-1].seq < end):
                    newest = history.bounds()[1]
                    last = min(last, newest)
                    if following > last:
                        return
                    end = min(last, end)
                    pulled = _pulled(history, following, end)
                messages = [m for m in pulled if m.seq % every == 0]
                begin, following = following, first_due(end + 1, every)
                columns = MessageColumns(messages, [info], following)
                # What the daemon counts as lost knows nothing of scaling.
                expected = np.concatenate(([begin], columns.seq[:-1] + every)) if messages else columns.seq
                columns.lost = (columns.seq - expected) // every
                done = int(columns.seq[-1]) + every if messages else begin
                yield Stretch(columns, following, max(0, (following - done) // every))

    def _sent_ns(self, info: PublisherInfo, seq: int) -> int | None:
        try:
            if self.is_local(info):
                return self._history(info).at(seq, incarnation=info.incarnation, copy=False).sent_ns
            with self._remote(info) as history:
                return history.at(seq).sent_ns
        except HistoryError:
            return None

    def is_local(self, info: PublisherInfo) -> bool:
        """Whether its ring is read in place, and not through another node."""
        return info.node == self._session.node

    def _tag(self, name: str) -> Tag:
        if name not in self._tags:
            self._tags[name] = self._session.tag(name, create=False)
        return self._tags[name]

    def _history(self, info: PublisherInfo) -> LocalHistory[bytes]:
        known = self._local.get(info.tag)
        # Who told us of the ring may have heard of it before the history here did. A new one is shown all at once.
        if known is None or info.incarnation not in known.incarnations:
            if known is not None:
                known.close()
            known = self._local[info.tag] = self._tag(info.tag).undecoded()
        return known

    def _remote(self, info: PublisherInfo) -> RemoteHistory[bytes]:
        return self._tag(info.tag).undecoded(info, remote=True)

    def _forget(self, name: str) -> None:
        self._tags.pop(name, None)
        if (history := self._local.pop(name, None)) is not None:
            history.close()

    @property
    def is_pattern(self) -> bool:
        return is_pattern(self.pattern)


def _pulled(history: RemoteHistory[bytes], first: int, last: int) -> list[Message[bytes]]:
    try:
        return history.range(first, last)
    except Empty:
        return []

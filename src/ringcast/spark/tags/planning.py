"""What there is to read: live rings and recordings as one list of streams, and the pieces that tasks read.

The driver's half of the source. A recording is preferred where both have a message, for it is not overwritten.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from ringcast.errors import DataLoss
from ringcast.model.identity import PublisherInfo
from ringcast.record.bronze import Format, format_of, incarnation_text, publisher_name
from ringcast.record.commits import Span
from ringcast.record.recording import Recording
from ringcast.record.rings import Ring, Rings
from ringcast.spark.tags.connections import rings_at
from ringcast.spark.tags.offsets import Head, Key, Offset, Piece, split
from ringcast.spark.tags.options import ReadOptions, Time
from ringcast.spark.tags.values import arrow_type, can_decode

logger = logging.getLogger("ringcast.spark")

ASKING = 4
"""Threads that ask other nodes."""


class Task(NamedTuple):
    """What one task reads: from the recording at `path`, or from the ring of `info`."""

    piece: Piece
    every: int
    info: PublisherInfo | None = None
    format: Format = Format()
    path: str | None = None

    @property
    def rows(self) -> int:
        """At most so many."""
        return (self.piece.end - self.piece.first + self.every - 1) // self.every


SMALL_ROWS = 1024
"""What a partition costs to start is more than what it costs to read so many."""


def packed(tasks: list[Task]) -> list[list[Task]]:
    """Tasks by partition: small ones share one, in their order, so that a hundred slow publishers are not a hundred
    partitions in every batch."""
    parts: list[list[Task]] = []
    room = 0
    for task in tasks:
        if parts and task.rows <= room:
            parts[-1].append(task)
            room -= task.rows
        else:
            parts.append([task])
            room = SMALL_ROWS - task.rows
    return parts


class Plan:
    """Looks at rings and recordings as `options` say. Must not outlive its process, nor be sent to another."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._rings: Rings | None = rings_at(options.socket, options.pattern) if options.live else None
        self._recording = Recording(options.path) if options.path is not None else None
        self._known: dict[Key, Ring] = {}
        self._oldest: dict[Key, int] = {}

    def heads(self) -> list[Head]:
        """Every stream and what is held of it, now."""
        found: dict[Key, Head] = {}
        if self._recording is not None:
            self._recording.refresh()
            for _, span in self._recording.spans(self.options.pattern):
                key = Key(*span.key)
                before = found.get(key, Head(key, span.first, 0))
                found[key] = Head(key, min(before.oldest, span.first), max(before.next, span.last + 1))
        if self._rings is not None:
            self._known = {key_of(ring.info): ring for ring in self._rings.list()}
            for key, bounds in zip(self._known, self._bounds(self._rings), strict=True):
                if bounds is None:
                    continue
                self._oldest[key] = bounds[0]
                oldest, end = bounds[0], bounds[1] + 1
                if key in found:
                    recorded = found[key]
                    oldest, end = min(oldest, recorded.oldest), max(end, recorded.next)
                found[key] = Head(key, oldest, end)
        chosen = self.options.streams
        return [head for head in found.values() if not chosen or head.key.incarnation in chosen]

    def _bounds(self, rings: Rings) -> list[tuple[int, int] | None]:
        """Of all known rings. Other nodes are asked for several at once: each answer takes a round trip or two."""
        infos = [ring.info for ring in self._known.values()]
        remote = [info for info in infos if not rings.is_local(info)]
        told: dict[int, tuple[int, int] | None] = {}
        if len(remote) > 1:
            with ThreadPoolExecutor(min(ASKING, len(remote))) as threads:
                answers = threads.map(rings.bounds, remote)
                told = {info.incarnation: bounds for info, bounds in zip(remote, answers, strict=True)}
        return [told[one.incarnation] if one.incarnation in told else rings.bounds(one) for one in infos]

    def rings(self) -> list[Ring]:
        """The live rings there are. Raises DaemonUnavailable."""
        return [] if self._rings is None else self._rings.list()

    def initial(self) -> Offset:
        """Where `startingOffsets` says to begin."""
        heads = self.heads()
        where = self.options.starting
        if where == "latest":
            return Offset(self.options.reads, {head.key: head.next for head in heads})
        if where == "earliest":
            streams = {head.key: head.oldest for head in heads}
            return Offset(self.options.reads, streams, frozenset(streams))
        if isinstance(where, Time):
            return Offset(self.options.reads, {head.key: self._sent_from(head, where.ns) for head in heads})
        if isinstance(where, int):
            return Offset(self.options.reads, {head.key: min(where, head.next) for head in heads})
        streams = {head.key: where.get(head.key.incarnation, head.oldest) for head in heads}
        loose = frozenset(key for key in streams if key.incarnation not in where)
        return Offset(self.options.reads, streams, loose)

    def _sent_from(self, head: Head, ns: int) -> int:
        ring = self._known.get(head.key)
        if self._recording is not None:
            spans = [span for _, span in self._recording.spans(self.options.pattern) if Key(*span.key) == head.key]
            for span in spans:
                for batch in self._recording.read(head.key.incarnation, span.first, span.last):
                    later = [
                        s
                        for s, at in zip(batch["seq"].to_pylist(), batch["sent_ns"].to_pylist(), strict=True)
                        if at >= ns
                    ]
                    if later:
                        return int(later[0])
        found = None if ring is None or self._rings is None else self._rings.first_sent_from(ring.info, ns)
        return head.next if found is None else found

    def tasks(self, pieces: list[Piece]) -> list[Task]:
        """Raises DataLoss when a stream that is to be read is not there any more."""
        if any(piece.key not in self._known for piece in pieces):
            self.heads()
        return [
            task
            for piece in pieces
            for part in split(piece, self.options.rows_per_partition * self.options.every)
            for task in self._sources(part)
        ]

    def _sources(self, piece: Piece) -> list[Task]:
        """Where to read a piece: what the recording holds of it from there, and the rest from the ring."""
        spans: list[Span] = []
        if self._recording is not None:
            found = (span for _, span in self._recording.spans(piece.key.tag) if Key(*span.key) == piece.key)
            spans = sorted(found, key=lambda span: span.first)
        # One that left messages out holds all that this reader wants only if the reader leaves them out as well.
        whole = [span for span in spans if self.options.every % span.every == 0]
        tasks, at = [], piece.first
        for first, end in _merged(whole):
            first, end = max(first, at), min(end, piece.end)
            if first >= end:
                continue
            if first > at:
                tasks += self._beside(piece._replace(first=at, end=first), spans, inside=at > whole[0].first)
            tasks.append(self._recorded(piece._replace(first=first, end=end)))
            at = end
        if at < piece.end:
            tasks += self._beside(piece._replace(first=at), spans, inside=False)
        return tasks

    def _beside(self, piece: Piece, spans: list[Span], inside: bool) -> list[Task]:
        """What no recording holds whole. `inside` is between two recorded stretches: what the ring does not have there
        the recorder has counted as lost already."""
        ring = self._known.get(piece.key)
        oldest = self._oldest.get(piece.key, piece.end) if ring is not None else piece.end
        if inside:
            piece = piece._replace(first=max(piece.first, min(oldest, piece.end)))
            if piece.first >= piece.end:
                return []
        strict = self.options.fail_on_data_loss and piece.strict
        tasks = []
        if not strict and piece.first < oldest:
            # Better some than none: rows say themselves how many were left out between.
            until = min(oldest, piece.end)
            some = [span for span in spans if span.first < until and span.last >= piece.first]
            tasks += [self._recorded(piece._replace(end=until))] if some else []
            piece = piece._replace(first=until) if some else piece
        if piece.first >= piece.end:
            return tasks
        if ring is not None:
            return [*tasks, Task(piece, self.options.every, ring.info, format_of(ring.attributes))]
        if strict and self.options.live:
            # All of it: the ring went with its publisher, and with the memory that held it.
            raise DataLoss(piece.key.tag, piece.key.publisher, piece.first, piece.end - 1, piece.end - piece.first)
        logger.warning("messages %d to %d of %s are gone with its ring", piece.first, piece.end - 1, piece.key.text())
        return tasks

    def _recorded(self, piece: Piece) -> Task:
        assert self._recording is not None
        return Task(piece, self.options.every, path=str(self._recording.root))

    def value_type(self) -> pa.DataType | None:
        """The one type that the values of all tags here have; None when they have none, or several."""
        shapes: dict[tuple[str, str], pa.DataType | None] = {}
        if self._rings is not None:
            for attributes in self._rings.attributes().values():
                form = format_of(attributes)
                shapes[form.codec, form.schema_id or ""] = arrow_type(attributes.schema)
        if self._recording is not None:
            for _, span in self._recording.spans(self.options.pattern):
                if (span.codec, span.schema_id or "") not in shapes:
                    described = None if span.schema_id is None else self._recording.schema(span.schema_id)
                    shapes[span.codec, span.schema_id or ""] = arrow_type(described)
        if len(shapes) != 1:
            return None
        ((codec, _), kind), *_ = shapes.items()
        return kind if can_decode(codec) else None


def _merged(spans: list[Span]) -> list[tuple[int, int]]:
    """Numbers that are recorded without a break, as (first, end)."""
    found: list[tuple[int, int]] = []
    for span in spans:
        end = span.last + span.every
        if found and span.first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((span.first, end))
    return found


def key_of(info: PublisherInfo) -> Key:
    return Key(info.tag, publisher_name(info), incarnation_text(info.incarnation))

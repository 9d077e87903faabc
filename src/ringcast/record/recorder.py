"""The recorder: a cursor per pattern that reads columns, and one thread that writes them.

Reading never waits for the disk until a bounded amount is in between; what the rings overwrite then is counted as lost,
in the rows and here. On a directory that holds a recording it goes on after the last number committed of each stream,
and fetches from rings whose publishers have left meanwhile what they still hold.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from ringcast.errors import (
    BrokenError,
    ClosedError,
    CorruptRing,
    DaemonUnavailable,
    HistoryError,
    RingcastError,
    TagDestroyed,
)
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes, check_pattern, is_pattern, matches
from ringcast.record.bronze import Batch, Format, format_of, publisher_name, schema_id, to_arrow
from ringcast.record.commits import StreamKey
from ringcast.record.rings import Rings
from ringcast.record.writer import RecordingWriter
from ringcast.session import Session
from ringcast.subscriber import Subscriber

logger = logging.getLogger("ringcast.record")

_BATCH_ROWS = 65_536
_LOOK_S = 0.1
# Short enough for a ring of the default depth at hundreds of thousands of messages a second, and long enough that
# rows come by the hundred.
_GATHER_S = 0.004
_BETWEEN = 512  # batches between reading and writing


class Progress(NamedTuple):
    rows: int
    committed: int
    lost: int
    bytes: int
    streams: int
    elapsed_s: float


@dataclass
class Recorder:
    """`run` reads until `stop` is called. `sinks` get every batch too, as it is written (an MCAP file, say)."""

    session: Session
    patterns: Sequence[str]
    writer: RecordingWriter | None
    start: Literal["new", "earliest"] = "new"
    every: int = 1
    reliable: bool = False
    commit_every_s: float = 5.0
    commit_rows: int = 2_000_000
    sinks: Sequence[Callable[[pa.RecordBatch, dict[str, TagAttributes]], None]] = ()
    on_progress: Callable[[Progress], None] = lambda progress: None

    rows: int = field(default=0, init=False)
    lost: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            check_pattern(pattern)
        self._between: queue.Queue[tuple[Batch, list[Format]] | BaseException | None] = queue.Queue(_BETWEEN)
        self._stopped = threading.Event()
        self._attributes: dict[int, TagAttributes] = {}
        self._by_tag: dict[str, TagAttributes] = {}
        self._streams: set[int] = set()
        self._settled: set[int] = set()
        self.reading = threading.Event()
        """Set once every pattern is subscribed to, or waits for its tag."""
        self._positions = self.writer.positions() if self.writer is not None else {}

    def stop(self) -> None:
        """End soon, with everything read so far committed. From any thread or signal handler."""
        self._stopped.set()

    def run(self) -> None:
        """Raises RecordingError, DiskFull, and as `session.subscribe` does."""
        readers = [
            threading.Thread(target=self._read, args=(number, pattern), daemon=True, name=f"record {pattern}")
            for number, pattern in enumerate(self.patterns)
        ]
        for reader in readers:
            reader.start()
        try:
            self._write(len(readers))
        finally:
            self._stopped.set()
            while any(reader.is_alive() for reader in readers):  # one may wait for room
                try:
                    self._between.get(timeout=_LOOK_S)
                except queue.Empty:
                    pass

    # ---------------------------------------------------------------- reading, a thread per pattern

    def _read(self, number: int, pattern: str) -> None:
        try:
            with self._subscribed(number, pattern) as subscriber:
                self._ready(number)
                if self._positions or self.start == "earliest":
                    self._fetch_left(number, pattern)
                self._follow(number, subscriber)
        except _Stopped:
            pass
        except (ClosedError, TagDestroyed) as exc:
            logger.warning("recording of %s ends: %s", pattern, exc)
        except BaseException as exc:  # told to whoever called `run`
            self._between.put(exc)
            return
        finally:
            self._ready(number)
        self._between.put(None)

    def _ready(self, number: int) -> None:
        self._settled.add(number)
        if len(self._settled) == len(self.patterns):
            self.reading.set()

    def _subscribed(self, number: int, pattern: str) -> Subscriber:
        # Subscribing to a name creates the tag, with a codec that may not be the one its publisher is going to want.
        awaited = False
        while not is_pattern(pattern) and not self._exists(pattern):
            self._ready(number)
            awaited = True
            if self._stopped.wait(_LOOK_S):
                raise _Stopped
        begin = {int(key.incarnation, 16): seq for key, seq in self._positions.items()}
        return self.session.subscribe(
            pattern, start=begin or ("earliest" if awaited else self.start), every=self.every, reliable=self.reliable
        )

    def _exists(self, name: str) -> bool:
        try:
            return bool(self.session.tags(name))
        except DaemonUnavailable:  # being restarted; the session attaches again by itself
            return False

    def _follow(self, number: int, subscriber: Subscriber) -> None:
        while not self._stopped.is_set():
            try:
                columns = subscriber.recv_columns(_BATCH_ROWS, _LOOK_S)
            except TimeoutError:
                continue
            except CorruptRing as exc:
                logger.error("one publisher's ring is not recorded any more: %s", exc)
                continue
            self._hand_over(number, columns)
            if len(columns) < _BATCH_ROWS // 16:
                time.sleep(_GATHER_S)
        # What was sent before the end was asked for belongs to the recording.
        while True:
            try:
                self._hand_over(number, subscriber.recv_columns(_BATCH_ROWS, 0))
            except (TimeoutError, CorruptRing):
                return
            if self._between.full():
                return

    def _fetch_left(self, number: int, pattern: str) -> None:
        rings = Rings(self.session, pattern)
        try:
            for ring in rings.list():
                if ring.alive:
                    continue
                first = self._positions.get(_key(ring.info), 0)
                try:
                    for stretch in rings.stretches(ring.info, first, 2**63 - 1, self.every):
                        if len(stretch.columns):
                            self._hand_over(number, stretch.columns)
                except (HistoryError, CorruptRing, BrokenError) as exc:
                    logger.warning("what %s left behind on %s is not recorded: %s", ring.info, ring.info.tag, exc)
        finally:
            rings.close()

    def _hand_over(self, number: int, columns: Batch) -> None:
        formats = []
        foreign: list[int] = []
        for i, info in enumerate(columns.rings):
            # A tag that several patterns select is recorded by the first of them.
            if any(matches(pattern, info.tag) for pattern in self.patterns[:number]):
                foreign.append(i)
            formats.append(format_of(self._attributes_of(info)))
        if len(foreign) == len(formats):
            return
        if foreign:
            columns = _Chosen(columns, ~np.isin(columns.ring, foreign))
        self._between.put((columns, formats))

    def _attributes_of(self, info: PublisherInfo) -> TagAttributes:
        known = self._attributes.get(info.incarnation)
        if known is None:
            found = [row.attributes for row in self.session.tags(info.tag)]
            known = self._attributes[info.incarnation] = self._by_tag[info.tag] = found[0] if found else TagAttributes()
        return known

    # ---------------------------------------------------------------- writing, on the thread that runs

    def _write(self, readers: int) -> None:
        began = committed = time.monotonic()
        while readers:
            try:
                item = self._between.get(timeout=_LOOK_S)
            except queue.Empty:
                item = ()  # type: ignore[assignment]
            if item is None:
                readers -= 1
            elif isinstance(item, BaseException):
                if self.writer is not None and isinstance(item, RingcastError):
                    self.writer.commit()
                raise item
            elif item:
                self._take(*item)
            now = time.monotonic()
            if self.writer is not None and (
                now - committed >= self.commit_every_s or self.writer.pending >= self.commit_rows
            ):
                self.writer.commit()
                committed = now
            self.on_progress(self._progress(now - began))
        if self.writer is not None:
            self.writer.commit()
        self.on_progress(self._progress(time.monotonic() - began))

    def _take(self, columns: Batch, formats: list[Format]) -> None:
        batch = to_arrow(columns, formats, self.every)
        for info in columns.rings:
            schema = self._attributes[info.incarnation].schema
            if self.writer is not None and schema is not None and info.incarnation not in self._streams:
                self.writer.add_schema(schema_id(schema) or "", schema)
        self.rows += batch.num_rows if self.writer is None else self.writer.write(batch)
        self.lost += int(columns.lost.sum())
        self.bytes += len(columns.payload)
        self._streams.update(info.incarnation for info in columns.rings)
        for sink in self.sinks:
            sink(batch, self._by_tag)

    def _progress(self, elapsed_s: float) -> Progress:
        committed = self.writer.committed if self.writer is not None else self.rows
        return Progress(self.rows, committed, self.lost, self.bytes, len(self._streams), elapsed_s)


class _Stopped(Exception):
    """`stop` was called before there was anything to read."""


class _Chosen:
    """Some rows of a batch."""

    def __init__(self, batch: Batch, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self.rings = batch.rings
        for name in ("ring", "seq", "event_ns", "sent_ns", "received_ns", "lost", "discardable"):
            setattr(self, name, getattr(batch, name)[keep])
        lengths = np.diff(batch.offsets)
        self.payload = batch.payload[np.repeat(keep, lengths)]
        self.offsets = np.concatenate(([0], np.cumsum(lengths[keep]))).astype(np.int32)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    ring: np.ndarray[tuple[int], np.dtype[np.int32]]
    seq: np.ndarray[tuple[int], np.dtype[np.int64]]
    event_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    sent_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    received_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    lost: np.ndarray[tuple[int], np.dtype[np.int64]]
    discardable: np.ndarray[tuple[int], np.dtype[np.uint8]]


def _key(info: PublisherInfo) -> StreamKey:
    return StreamKey(info.tag, publisher_name(info), f"{info.incarnation:016x}")

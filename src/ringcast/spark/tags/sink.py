"""Publishing a DataFrame on a tag: `write` encodes and stages, `commit` publishes.

A task only encodes: its rows travel to the driver inside the commit message, so a task that is run twice has published
nothing twice. The driver publishes them in order of partition. Of a stream, `ledger` remembers what was published.

A row becomes a message: column `payload` as it is; else `value`, else all columns together as a record, by the tag's
codec. `event_ns` or `event_time` is the message's event time, if there is one, and no part of the record.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ringcast.errors import HistoryError
from ringcast.publisher import Publisher
from ringcast.record.bronze import incarnation_text
from ringcast.session import Session
from ringcast.spark.tags.connections import session_at
from ringcast.spark.tags.ledger import ROWS, Ledger, State, local_path, unsent
from ringcast.spark.tags.options import WriteOptions
from ringcast.spark.tags.values import describe

logger = logging.getLogger("ringcast.spark")

_ENCODERS: dict[str, Any] = {"json": msgspec.json.Encoder().encode, "msgpack": msgspec.msgpack.Encoder().encode}
_TIMES = ("event_ns", "event_time")
_publishers: dict[tuple[int, str | None, str, str], Publisher] = {}


class StagedRows(WriterCommitMessage):
    """The rows of one partition, encoded, as an Arrow stream."""

    def __init__(self, query: str, partition: int, rows: bytes) -> None:
        self.query = query
        self.partition = partition
        self.rows = rows


class _Publishing:
    """What both writers do."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = to_arrow_schema(schema, timezone="UTC")
        names = self._schema.names
        self._raw = "payload" in names
        if self._raw and not (pa.types.is_binary(self._schema.field("payload").type)):
            raise ValueError("the column 'payload' is what is sent and has to be binary; name another one otherwise")
        self._codec = options.codec or ("bytes" if self._raw else "json")
        if not self._raw and self._codec not in _ENCODERS:
            raise ValueError(f"columns are encoded by {' or '.join(_ENCODERS)}; for {self._codec!r} bring 'payload'")
        record = [field for field in self._schema if field.name not in _TIMES]
        self._kind = self._schema.field("value").type if "value" in names else pa.struct(record)
        self._description = None if self._raw else describe(self._kind)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        context = TaskContext.get()
        query = (context.getLocalProperty("sql.streaming.queryId") if context else None) or ""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, ROWS) as writer:
            for batch in iterator:
                writer.write_batch(self._encoded(batch))
        return StagedRows(query, context.partitionId() if context else 0, sink.getvalue().to_pybytes())

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._raw:
            payload = batch["payload"]
        else:
            encode = _ENCODERS[self._codec]
            if "value" in batch.schema.names:
                values = batch["value"].to_pylist()
            else:
                names = [name for name in batch.schema.names if name not in _TIMES]
                values = batch.select(names).to_pylist()
            payload = pa.array([encode(value) for value in values], pa.binary())
        return pa.RecordBatch.from_arrays([pc.fill_null(payload, b""), _event_ns(batch)], schema=ROWS)

    def _gathered(self, messages: Iterable[WriterCommitMessage | None]) -> tuple[str, pa.Table]:
        """(the query, all rows)."""
        staged = sorted((m for m in messages if isinstance(m, StagedRows)), key=lambda message: message.partition)
        tables = [pa.ipc.open_stream(message.rows).read_all() for message in staged]
        query = next((message.query for message in staged if message.query), "")
        return query, pa.concat_tables(tables) if tables else ROWS.empty_table()

    def _publisher(self, session: Session) -> Publisher:
        """One for as long as this process lives: Spark uses it again for the next batch."""
        key = (os.getpid(), self._options.socket, self._options.tag, self._codec)
        publisher = _publishers.get(key)
        if publisher is None or publisher.closed:
            depth, capacity = self._options.depth, self._options.capacity_bytes
            if session.tags(self._options.tag):  # as it is, whoever made it
                tag = session.tag(self._options.tag, codec=self._codec)
            else:
                named = {"schema": self._description, "depth": depth, "capacity_bytes": capacity}
                given: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
                tag = session.tag(self._options.tag, codec=self._codec, **given)
            publisher = _publishers[key] = tag.publisher(encoded=True)
        return publisher

    def _check(self, publisher: Publisher, rows: pa.Table) -> None:
        """Raises DecodeError before the first is sent, when the tag was made with a schema that is not ours."""
        attributes, codec = publisher.tag.attributes, publisher.tag.codec
        if attributes.schema is None or codec.decode is None or attributes.schema == self._description:
            return
        for payload in rows["payload"].to_pylist():
            codec.decode(payload)

    def _publish_once(self, query: str, batch: int, rows: pa.Table) -> None:
        with self._ledger(query).locked() as ledger:
            state = ledger.state(query)
            if batch <= state.batch:
                logger.info("batch %d was published on %s before", batch, self._options.tag)
                return
            session = session_at(self._options.socket)
            staged = ledger.staged(query, batch)
            if staged is not None:
                rows, doubtful = unsent(staged, _newest(session, self._options.tag, staged.incarnation))
                logger.info("of batch %d on %s, %d are still to be sent", batch, self._options.tag, rows.num_rows)
                if doubtful:
                    logger.error(
                        "batch %d on %s was interrupted and its ring is gone: up to %d of its messages may be missing",
                        batch, self._options.tag, doubtful,
                    )  # fmt: skip
            if rows.num_rows:
                publisher = self._publisher(session)
                self._check(publisher, rows)
                ledger.stage(query, batch, publisher.incarnation, publisher.next_seq, rows)
                _send(publisher, rows, ledger)
            ledger.done(State(query, batch, state.published + rows.num_rows))

    def _ledger(self, query: str) -> Ledger:
        name = hashlib.blake2b(self._options.tag.encode(), digest_size=8).hexdigest()
        location = self._options.state
        if location is None:  # a checkpoint that only the session's settings name
            base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ringcast" / "sinks"
            return Ledger(base / (query or "batch") / name)
        path = local_path(location)
        if path is None:
            raise ValueError(
                f"what was published is remembered on the driver's disk, and {location} is not there; add "
                "option('stateLocation', DIR)"
            )
        return Ledger(path / "ringcast" / name)


class BatchPublisher(_Publishing, DataSourceArrowWriter):
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _, rows = self._gathered(messages)
        if self._options.batch is not None:
            self._publish_once(*self._options.batch, rows)
            return
        publisher = self._publisher(session_at(self._options.socket))
        self._check(publisher, rows)
        _send(publisher, rows)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was published."""


class StreamPublisher(_Publishing, DataSourceStreamArrowWriter):
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        query, rows = self._gathered(messages)
        self._publish_once(query, batchId, rows)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing was published."""


def _send(publisher: Publisher, rows: pa.Table, ledger: Ledger | None = None) -> None:
    send = publisher.send
    try:
        for payload, event_ns in zip(rows["payload"].to_pylist(), rows["event_ns"].to_pylist(), strict=True):
            send(payload, event_ns)
            if ledger is not None:
                ledger.begin()
                ledger = None
    except BaseException:
        # Whatever it was, the tag's having been destroyed say, the next attempt begins with a ring of its own.
        publisher.close()
        raise


def _newest(session: Session, tag: str, incarnation: int) -> int | None:
    """The last number in that ring; None when there is no such ring any more."""
    from ringcast.record.rings import Rings

    rings = Rings(session, tag)
    try:
        for ring in rings.list():
            if ring.info.incarnation == incarnation:
                bounds = rings.bounds(ring.info)
                return None if bounds is None else bounds[1]
    except HistoryError as exc:
        logger.warning("the ring %s of %s is not readable: %s", incarnation_text(incarnation), tag, exc)
    finally:
        rings.close()
    return None


def _event_ns(batch: pa.RecordBatch) -> pa.Array:
    if "event_ns" in batch.schema.names:
        return batch["event_ns"].cast(pa.int64())
    if "event_time" in batch.schema.names and pa.types.is_timestamp(batch["event_time"].type):
        return pc.multiply(batch["event_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1000)
    return pa.nulls(batch.num_rows, pa.int64())

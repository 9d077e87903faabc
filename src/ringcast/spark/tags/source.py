"""The format `ringcast` for Spark: a tag as a table, read as a stream or as what is held now, and written to.

    spark.readStream.format("ringcast").option("tag", "cam/*/ir").load()

Readers and writers are sent to other processes, so they hold options and nothing that is open.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ringcast.errors import DataLoss, HistoryError
from ringcast.record.bronze import SCHEMA, Batch, to_arrow
from ringcast.record.recording import Recording
from ringcast.spark.tags.connections import rings_at
from ringcast.spark.tags.offsets import Offset, Piece, advance, pieces
from ringcast.spark.tags.options import ReadOptions, read_options, write_options
from ringcast.spark.tags.planning import ASKING, Plan, Task, packed
from ringcast.spark.tags.values import decoded
from ringcast.spark.tags.worker import task_begun

logger = logging.getLogger("ringcast.spark")

VALUE = "value"
NUMBERED = pa.schema(
    [pa.field("stream", pa.int32(), nullable=False)]
    + [SCHEMA.field(name) for name in ("seq", "event_ns", "sent_ns", "received_ns", "lost", "discardable", "payload")]
)
"""A message without names: those of its stream are the same in every row, and most of what a row weighs."""
_RECEIVED = SCHEMA.get_field_index("received_ns")


class RingcastSource(DataSource):
    """Registered by `open_session`, or by `spark.dataSource.register(RingcastSource)`."""

    @classmethod
    def name(cls) -> str:
        return "ringcast"

    def schema(self) -> StructType:
        options = read_options(self.options, streaming=False)
        if options.streams:
            return from_arrow_schema(NUMBERED)
        value = Plan(options).value_type() if options.decode else None
        found = SCHEMA if value is None else SCHEMA.append(pa.field(VALUE, value))
        return from_arrow_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        return HeldReader(read_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(read_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ringcast.spark.tags.sink import BatchPublisher

        return BatchPublisher(write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from ringcast.spark.tags.sink import StreamPublisher

        return StreamPublisher(write_options(self.options), schema)


class Part(InputPartition):
    def __init__(self, tasks: list[Task]) -> None:
        super().__init__(tasks)
        self.tasks = tasks


class _Reading:
    """What both readers do in a task."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._target = to_arrow_schema(schema, timezone="UTC")
        for name in () if options.streams else self._target.names:
            if name != VALUE and name not in SCHEMA.names:
                raise ValueError(f"there is no column {name!r}; there are {', '.join(SCHEMA.names)} and {VALUE}")

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        task_begun()
        for rows in self._rows(partition.tasks):
            for batch in rows:
                if batch.num_rows:
                    yield from self._shaped(batch)

    def _rows(self, tasks: list[Task]) -> Iterator[Iterable[pa.RecordBatch]]:
        """Of each task. Several share a partition when they are small; then other nodes are asked for several at once,
        for the way there takes longer than the rows."""
        if len(tasks) == 1 or not all(map(self._is_remote, tasks)):
            yield from map(self._task, tasks)
            return
        with ThreadPoolExecutor(min(ASKING, len(tasks))) as threads:
            yield from threads.map(lambda task: list(self._task(task)), tasks)

    def _is_remote(self, task: Task) -> bool:
        if task.info is None:
            return False
        return not rings_at(self._options.socket, task.piece.key.tag, start=False).is_local(task.info)

    def _task(self, task: Task) -> Iterator[pa.RecordBatch]:
        return _recorded(task) if task.path is not None else self._live(task)

    def _live(self, task: Task) -> Iterator[pa.RecordBatch]:
        assert task.info is not None
        piece = task.piece
        rings = rings_at(self._options.socket, piece.key.tag, start=False)
        due = (piece.first + task.every - 1) // task.every * task.every
        try:
            for stretch in rings.stretches(task.info, piece.first, piece.end - 1, task.every):
                lost = int(stretch.columns.lost.sum()) + stretch.lost_at_end
                if lost:
                    self._lost(piece, lost)
                due = stretch.following
                local = rings.is_local(task.info)
                if self._options.streams:
                    yield _numbered(stretch.columns, self._options.streams.index(piece.key.incarnation), local)
                else:
                    yield _as_held(to_arrow(stretch.columns, [task.format], task.every), local)
        except HistoryError as exc:
            logger.info("the ring of %s is gone: %s", piece.key.text(), exc)
        if due < piece.end:  # the ring went while it was being read
            self._lost(piece, (piece.end - 1 - due) // task.every + 1)

    def _lost(self, piece: Piece, lost: int) -> None:
        if self._options.fail_on_data_loss and piece.strict:
            raise DataLoss(piece.key.tag, piece.key.publisher, piece.first, piece.end - 1, lost)
        logger.warning(
            "%d of the messages %d to %d of %s were overwritten before they were read",
            lost, piece.first, piece.end - 1, piece.key.text(),
        )  # fmt: skip

    def _shaped(self, batch: pa.RecordBatch) -> Iterator[Any]:
        if self._options.streams:
            yield batch
            return
        columns = []
        for field in self._target:
            column = decoded(batch["payload"], batch["codec"], field.type) if field.name == VALUE else batch[field.name]
            columns.append(column if column.type == field.type else column.cast(field.type))
        shaped = pa.RecordBatch.from_arrays(columns, schema=self._target)
        if self._options.arrow:
            yield shaped
        else:  # for comparison: what it would cost to hand rows over
            yield from map(tuple, zip(*(column.to_pylist() for column in shaped.columns), strict=True))


def _as_held(rows: pa.RecordBatch, local: bool) -> pa.RecordBatch:
    """A message of a ring could be read from the moment it was sent. When it happened to be pulled says something of
    the query's trigger and nothing of the channel, so a pulled message counts as received when it was sent. One of
    another node whose clock is ahead was received at the latest when it was pulled."""
    held = rows["sent_ns"] if local else pc.min_element_wise(rows["sent_ns"], rows["received_ns"])
    return rows.set_column(_RECEIVED, SCHEMA.field(_RECEIVED), held)


def _numbered(rows: Batch, stream: int, local: bool) -> pa.RecordBatch:
    count = len(rows)
    columns = [
        pa.array(np.full(count, stream, np.int32)),
        *(pa.array(one) for one in (rows.seq, rows.event_ns, rows.sent_ns)),
        pa.array(rows.sent_ns if local else np.minimum(rows.sent_ns, rows.received_ns)),
        pa.array(rows.lost),
        pa.array(rows.discardable.astype(np.bool_)),
        pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(rows.offsets), pa.py_buffer(rows.payload)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=NUMBERED)


def _recorded(task: Task) -> Iterator[pa.RecordBatch]:
    assert task.path is not None
    piece = task.piece
    for batch in Recording(task.path).read(piece.key.incarnation, piece.first, piece.end - 1):
        if task.every == 1:
            yield batch
            continue
        due = np.asarray(batch["seq"]) % task.every == 0
        chosen = batch.filter(pa.array(due))
        every = pc.max_element_wise(chosen["every"], task.every)
        yield chosen.set_column(SCHEMA.get_field_index("every"), SCHEMA.field("every"), every)


class HeldReader(_Reading, DataSourceReader):
    """What is held now, once."""

    def partitions(self) -> list[Part]:
        plan = Plan(self._options)
        start = plan.initial()
        tasks = plan.tasks(pieces(start, advance(start, plan.heads(), every=self._options.every)))
        return [Part(some) for some in packed(tasks)]


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What comes, from where the checkpoint says."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._plan: Plan | None = None
        self._initial: dict[str, Any] | None = None
        self._journaled = True
        self._until: dict[Any, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        # Spark asks twice, and the two must agree.
        if self._initial is None:
            self._initial = self._planned().initial().encode()
            self._journaled = False
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_messages
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = {head.key: head.next for head in self._planned().heads()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = Offset.decode(start, self._options.reads)
        if not self._journaled:
            # Returning the start has Spark write it down before anything is read: a query that is killed in its
            # first batch would otherwise begin somewhere else the next time.
            self._journaled = True
            return start
        heads = self._planned().heads()
        if self._until is not None:
            until = self._until
            heads = [head._replace(next=min(head.next, until[head.key])) for head in heads if head.key in until]
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = advance(begin, heads, most, self._options.every)
        return start if end is begin else end.encode()

    def reportLatestOffset(self) -> dict[str, Any]:
        streams = {head.key: head.next for head in self._planned().heads()}
        return Offset(self._options.reads, streams).encode()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Part]:
        begin, stop = Offset.decode(start, self._options.reads), Offset.decode(end, self._options.reads)
        return [Part(some) for some in packed(self._planned().tasks(pieces(begin, stop)))]

    def _planned(self) -> Plan:
        if self._plan is None:
            self._plan = Plan(self._options)
        return self._plan

    def __getstate__(self) -> dict[str, Any]:
        # Sent to the tasks, which need the options and the schema.
        return {**self.__dict__, "_plan": None}

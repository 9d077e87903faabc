"""The bronze schema: a message as it was received, one row each. Recordings, the lake and the Spark source share it.

Columns are never renamed, reordered or removed. `incarnation` is the stream's identity as 16 hexadecimal digits, for no
engine has unsigned 64-bit integers everywhere; `event_ns` stands beside `event_time` because Spark's timestamps end at
microseconds. `publisher` names the process and stays the same when the daemon is restarted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes

SCHEMA = pa.schema(
    [
        pa.field("tag", pa.string(), nullable=False),
        pa.field("publisher", pa.string(), nullable=False),
        pa.field("incarnation", pa.string(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("every", pa.int64(), nullable=False),
        pa.field("event_time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("event_ns", pa.int64(), nullable=False),
        pa.field("sent_ns", pa.int64(), nullable=False),
        pa.field("received_ns", pa.int64(), nullable=False),
        pa.field("lost", pa.int64(), nullable=False),
        pa.field("discardable", pa.bool_(), nullable=False),
        pa.field("codec", pa.string(), nullable=False),
        pa.field("schema_id", pa.string(), nullable=True),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
NAMES: list[str] = SCHEMA.names


class Format(NamedTuple):
    """How a stream's payloads are to be understood."""

    codec: str = "bytes"
    schema_id: str | None = None


class Batch(Protocol):
    """What `_core.Columns` is, and whatever else has columns."""

    def __len__(self) -> int: ...
    @property
    def rings(self) -> Sequence[PublisherInfo]: ...
    @property
    def ring(self) -> NDArray[np.int32]: ...
    @property
    def seq(self) -> NDArray[np.int64]: ...
    @property
    def event_ns(self) -> NDArray[np.int64]: ...
    @property
    def sent_ns(self) -> NDArray[np.int64]: ...
    @property
    def received_ns(self) -> NDArray[np.int64]: ...
    @property
    def lost(self) -> NDArray[np.int64]: ...
    @property
    def discardable(self) -> NDArray[np.uint8]: ...
    @property
    def offsets(self) -> NDArray[np.int32]: ...
    @property
    def payload(self) -> NDArray[np.uint8]: ...


def publisher_name(info: PublisherInfo) -> str:
    return f"{info.node}/{info.program or 'python'}/{info.pid}"


def incarnation_text(incarnation: int) -> str:
    return f"{incarnation:016x}"


def schema_id(description: dict[str, Any] | None) -> str | None:
    """The same for equal schemas, everywhere."""
    if description is None:
        return None
    return hashlib.blake2b(msgspec.json.encode(description, order="sorted"), digest_size=8).hexdigest()


def format_of(attributes: TagAttributes) -> Format:
    return Format(attributes.codec, schema_id(attributes.schema))


def to_arrow(batch: Batch, formats: Sequence[Format], every: int = 1) -> pa.RecordBatch:
    """Rows of the schema. `formats` go with `batch.rings`. The numeric buffers and payloads are not copied."""
    rows = len(batch)
    ring = pa.array(batch.ring)

    def named(values: Sequence[str | None]) -> pa.Array:
        if len(values) == 1:
            return pa.repeat(pa.scalar(values[0], pa.string()), rows)
        return pa.array(values, pa.string()).take(ring)

    rings = batch.rings
    event_ns = batch.event_ns
    columns = [
        named([info.tag for info in rings]),
        named([publisher_name(info) for info in rings]),
        named([incarnation_text(info.incarnation) for info in rings]),
        named([info.node for info in rings]),
        pa.array(batch.seq),
        pa.repeat(pa.scalar(every, pa.int64()), rows),
        # Down, for a negative time too: one that rounds up would lie ahead of what it stands for.
        pa.array(np.floor_divide(event_ns, 1000)).view(pa.timestamp("us", "UTC")),
        pa.array(event_ns),
        pa.array(batch.sent_ns),
        pa.array(batch.received_ns),
        pa.array(batch.lost),
        pa.array(batch.discardable.astype(np.bool_)),
        named([form.codec for form in formats]),
        named([form.schema_id for form in formats]),
        pa.Array.from_buffers(
            pa.binary(), rows, [None, pa.py_buffer(batch.offsets), pa.py_buffer(batch.payload)]
        ),
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

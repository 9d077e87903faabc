"""One look at every message: frames become spots, poses and positions numbers. Runs on Arrow batches, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType

from ringcast.model.tag import matches
from ringcast.rescue.tables import GPS, INFRARED, POSE, VIDEO
from ringcast.rescue.vision.spots import BRIGHT, WARM_CENTIKELVIN, find_spots
from ringcast.spark.pipelines.decoding import reader
from ringcast.spark.pipelines.times import AHEAD_NS
from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRING, TIME, columns, optional
from ringcast.spark.tables.silver import Family
from ringcast.spark.tags.worker import task_begun

FAMILIES: dict[str, Family] = {"infrared": INFRARED, "video": VIDEO, "pose": POSE, "gps": GPS}
KINDS = tuple(FAMILIES)
_LEAST = {"infrared": WARM_CENTIKELVIN, "video": BRIGHT}

_ORIGIN = ("tag", "publisher", "incarnation", "seq", "event_ns", "received_ns", "lost")
SEEN = (*_ORIGIN, "kind", "numbers", "error")
"""`kind` is a number in KINDS. `numbers` are those of a pose or position in the order of the family's columns, or the
spots of a frame: u, v and height of each. `error` is why there are none."""

_ROWS = [
    *columns(event_time=TIME, tag=STRING, publisher=STRING, incarnation=STRING, seq=LONG, event_ns=LONG,
             received_ns=LONG, lost=LONG, kind=INT),
    *optional(numbers=ArrayType(DOUBLE), error=STRING),
]  # fmt: skip


def looked(messages: DataFrame) -> DataFrame:
    """Translated messages to rows of SEEN, with `event_time`."""
    schema = columns()
    for one in _ROWS:
        schema = schema.add(one)
    arrow = to_arrow_schema(schema, timezone="UTC")

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task_begun()
        for batch in batches:
            found = [
                _seen(tag, codec, payload, event_ns - received_ns)
                for tag, codec, payload, event_ns, received_ns in zip(
                    *(batch[name].to_pylist() for name in ("tag", "codec", "payload", "event_ns", "received_ns")),
                    strict=True,
                )
            ]
            made = {
                "kind": pa.array([kind for kind, _, _ in found], pa.int32()),
                "numbers": pa.array([numbers for _, numbers, _ in found], pa.list_(pa.float64())),
                "error": pa.array([error for _, _, error in found], pa.string()),
            }
            arrays = [made[name] if name in made else batch[name] for name in arrow.names]
            yield pa.RecordBatch.from_arrays(
                [array.cast(field.type) for array, field in zip(arrays, arrow, strict=True)], schema=arrow
            )

    return messages.select("event_time", *_ORIGIN, "codec", "payload").mapInArrow(look, schema)


def _seen(tag: str, codec: str, payload: bytes, ahead_ns: int) -> tuple[int, list[float] | None, str | None]:
    kind = _kind(tag)
    if ahead_ns > AHEAD_NS:
        return KINDS.index(kind), None, "its event time is after it was received"
    value = _reader(kind)(codec, payload)
    if value.get("error") is not None:
        return KINDS.index(kind), None, value["error"]
    least = _LEAST.get(kind)
    if least is None:
        return KINDS.index(kind), [value[name] for name in FAMILIES[kind].values.fieldNames()], None
    shape = value["shape"]
    if len(shape) != 2:
        return KINDS.index(kind), [], None
    spots = find_spots(np.frombuffer(value["data"], value["dtype"]).reshape(shape), least)
    return KINDS.index(kind), np.column_stack([spots.pixels, spots.height]).ravel().tolist(), None


@cache
def _kind(tag: str) -> str:
    return next(name for name, family in FAMILIES.items() if matches(family.pattern, tag))


@cache
def _reader(kind: str) -> Callable[[str, bytes], dict[str, Any]]:
    return reader(FAMILIES[kind])

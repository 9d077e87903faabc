"""`dispatch`: from detections by tick to people, each with a position: the list that teams are sent by (paper 004,
section 2.1)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ringcast.rescue.tables import DETECTIONS, DISPATCH
from ringcast.rescue.vision.people import people
from ringcast.spark.declaration import NothingToDo, own_job
from ringcast.spark.settling import as_declared

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

_FOUND = StructType([field for field in DISPATCH.schema if field.name != "run_id"])
_USED = ("event_ns", "x", "y", "z", "confidence", "warmth_k")


def dispatch(detections: DataFrame) -> DataFrame:
    """The columns of `gold.dispatch` but `run_id`."""
    schema = to_arrow_schema(_FOUND, timezone="UTC")

    def follow(rows: pa.Table) -> pa.Table:
        places = np.column_stack([rows[axis].to_numpy() for axis in "xyz"])
        each = (rows[name].to_pylist() for name in ("event_ns", "confidence", "warmth_k"))
        at_ns, confidences, warmths = each
        found = []
        for number, one in enumerate(people(at_ns, places, confidences, warmths), 1):
            x, y, z = map(float, one.place)
            found.append(
                {
                    "person": f"P{number}", "event_time": _time(one.at_ns[-1]), "first_seen": _time(one.at_ns[0]),
                    "x": x, "y": y, "z": z, "accuracy_m": one.accuracy_m, "ticks": len(one.at_ns),
                    "confidence": float(np.mean(one.confidences)), "warmth_k": float(np.median(one.warmths)),
                }
            )  # fmt: skip
        return pa.Table.from_pylist(found, schema)

    # One group: whoever is followed may be anywhere in it. A number would be taken for a column's place.
    return detections.select(*_USED).groupBy(F.lit("everybody")).applyInArrow(follow, _FOUND)


def _time(ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ns // 1_000_000_000, dt.UTC) + dt.timedelta(microseconds=ns // 1000 % 1_000_000)


@own_job("dispatch", "people to send teams to, from detections", reads={"detections": DETECTIONS}, writes=DISPATCH)
def dispatch_job(job: Job) -> None:
    job.hold(DISPATCH)
    detections = job.read(DETECTIONS)
    if detections.isEmpty():
        raise NothingToDo("dispatch", "there are no detections; run fuse first")
    found = dispatch(detections).withColumn("run_id", F.lit(job.run.id))
    job.run.wrote(DISPATCH.name, job.lake.replace(DISPATCH, as_declared(found, DISPATCH), job.run.id).rows)

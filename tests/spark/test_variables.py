"""Chunks of variables in bronze become rows: a name, a value, a time."""

from __future__ import annotations

import datetime as dt

from ringcast import _core
from ringcast.spark.pipelines.variables import rows
from ringcast.spark.tables.bronze import MESSAGES

T0 = 1_700_000_000_000_000_000


def bronze(spark, chunks):
    found = [
        ("plant", "p", "1", "n", seq, 1, dt.datetime.fromtimestamp(T0 / 1e9, dt.UTC), T0, T0, T0 + 5, 0, False,
         "variables", None, bytearray(chunk))
        for seq, chunk in enumerate(chunks)
    ]  # fmt: skip
    return spark.createDataFrame(found, MESSAGES.schema)


def test_values_with_names_and_times(spark):
    owner = _core.VariableTable()
    owner.add("rpm", 1.0, T0)
    owner.add("state", "idle", T0)
    before_names = [b"no chunk at all"]
    chunks = before_names + owner.collect(full=True, period_ns=1, frame_ms=1, limit=1000)
    owner.set("rpm", 2.5, T0 + 7)
    chunks += owner.collect(full=False, period_ns=1, frame_ms=1, limit=1000)
    chunks += owner.collect(full=True, period_ns=1, frame_ms=1, limit=1000)
    once = bronze(spark, chunks)
    found = rows(once.unionAll(once)).collect()
    told = sorted((row.name, row.number, row.text, row.event_ns, row.type) for row in found)
    assert told == [
        ("rpm", 1.0, None, T0, "float"),
        ("rpm", 2.5, None, T0 + 7, "float"),
        ("state", None, "idle", T0, "str"),
    ]

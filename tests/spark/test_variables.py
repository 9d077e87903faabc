"""Chunks of variables in bronze become rows: a name, a value, a time."""

from __future__ import annotations

import datetime as dt

from ringcast import _core
from ringcast.spark.pipelines.variables import rows
from ringcast.spark.tables.bronze import MESSAGES

T0 = 1_700_000_000_000_000_000


AHEAD = 1000
"""By which the recorder's clock is ahead of the owner's."""


def bronze(spark, chunks):
    """`chunks` with the event times of their messages, by the owner's clock."""
    found = [
        ("plant", "p", "1", "n", seq, 1, dt.datetime.fromtimestamp(T0 / 1e9, dt.UTC), event_ns + AHEAD, T0, T0 + 5, 0,
         False, "variables", None, bytearray(chunk))
        for seq, (chunk, event_ns) in enumerate(chunks)
    ]  # fmt: skip
    return spark.createDataFrame(found, MESSAGES.schema)


def test_values_with_names_and_times(spark):
    owner = _core.VariableTable()
    owner.add("rpm", 1.0, T0)
    owner.add("state", "idle", T0)
    chunks = [(b"no chunk at all", T0)]

    def send(full):
        made = owner.collect(full=full, period_ns=1, frame_ms=1, limit=1000)
        chunks.extend((chunk, owner.newest_ns) for chunk in made)

    send(full=True)
    owner.set("rpm", 2.5, T0 + 7)
    send(full=False)
    send(full=True)
    once = bronze(spark, chunks)
    found = rows(once.unionAll(once)).collect()
    told = sorted((row.name, row.number, row.text, row.event_ns, row.type) for row in found)
    assert told == [
        ("rpm", 1.0, None, T0 + AHEAD, "float"),
        ("rpm", 2.5, None, T0 + AHEAD + 7, "float"),
        ("state", None, "idle", T0 + AHEAD, "str"),
    ]

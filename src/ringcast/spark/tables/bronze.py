"""`bronze.messages`: what was received, as it was received. Append-only; nothing is decoded, dropped or corrected.
`bronze.results`: what experiments and benchmarks measured (`ringcast.record.results` writes it without Spark).

The same columns in the same order are what the recorder writes and what the source gives (`ringcast.record.bronze`).
Times ending in `_ns` are nanoseconds since 1970: `event_ns` and `sent_ns` by the publisher's clock, `received_ns` by
the receiver's.
"""

from __future__ import annotations

from ringcast.record import results
from ringcast.spark.tables.columns import BOOL, BYTES, DOUBLE, INT, LONG, STRING, TIME, columns, join, optional
from ringcast.spark.tables.table import HOURLY, Table

KEY = ("tag", "publisher", "incarnation", "seq")
"""What makes a message itself. Two rows with an equal key are the same message, received twice."""

ORIGIN = columns(
    tag=STRING, publisher=STRING, incarnation=STRING, node=STRING, seq=LONG, every=LONG, event_time=TIME,
    event_ns=LONG, sent_ns=LONG, received_ns=LONG, lost=LONG, discardable=BOOL,
)  # fmt: skip

MESSAGES = Table(
    "bronze.messages",
    "messages as received",
    join(ORIGIN, columns(codec=STRING), optional(schema_id=STRING), columns(payload=BYTES)),
    HOURLY,
)

RESULTS = Table(
    results.TABLE,
    results.ABOUT,
    join(
        columns(experiment=STRING, configuration=STRING, repetition=INT, metric=STRING, value=DOUBLE, unit=STRING,
                machine=STRING, version=STRING, run_id=STRING),
        optional(measured_at=TIME),
    ),
    "experiment",
)  # fmt: skip

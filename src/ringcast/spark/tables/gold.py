"""Gold tables: what the pipelines find out. Every row carries the id of the run that wrote it."""

from __future__ import annotations

from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRING, TIME, columns, join, optional
from ringcast.spark.tables.table import HOURLY, Table

RUN = columns(run_id=STRING)

QOS = Table(
    "gold.qos",
    "quality of service per channel and window",
    join(
        columns(
            event_time=TIME, window_s=DOUBLE, tag=STRING, publisher=STRING, incarnation=STRING, node=STRING,
            expected=LONG, received=LONG, lost=LONG, loss=DOUBLE,
            latency_mean_ns=DOUBLE, latency_p50_ns=DOUBLE, latency_p95_ns=DOUBLE, latency_p99_ns=DOUBLE,
            jitter_latency_ns=DOUBLE,
        ),
        optional(jitter_period_ns=DOUBLE, queue_p50_ns=DOUBLE, transfer_p50_ns=DOUBLE),
        columns(relate=DOUBLE, relate2=DOUBLE, deadline_misses=LONG),
        RUN,
    ),
    HOURLY,
)  # fmt: skip

FITS = Table(
    "gold.fits",
    "lines through measurements: y = a + b n/dt",
    join(
        columns(model=STRING, transport=STRING, side=STRING, load=STRING, subscribers=INT, points=LONG, a=DOUBLE,
                b=DOUBLE),
        optional(a_error=DOUBLE, b_error=DOUBLE, r2=DOUBLE),
        RUN,
    ),
)  # fmt: skip

TRAINING = Table(
    "gold.training",
    "experiment results, one value per row, that models are trained on",
    join(
        columns(experiment=STRING, configuration=STRING, repetition=INT, metric=STRING, value=DOUBLE, unit=STRING,
                machine=STRING, version=STRING),
        RUN,
    ),
    "experiment",
)  # fmt: skip

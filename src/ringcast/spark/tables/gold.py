"""Gold tables: what the pipelines find out. Every row carries the id of the run that wrote it."""

from __future__ import annotations

from ringcast.spark.tables.columns import BOOL, DOUBLE, INT, LONG, STRING, TIME, columns, join, optional
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
    "lines through measurements: y = a + b x, where x is a rate, a size or a number of hops",
    join(
        columns(model=STRING, transport=STRING, side=STRING, load=STRING, subscribers=INT, points=LONG, a=DOUBLE,
                b=DOUBLE),
        optional(a_error=DOUBLE, b_error=DOUBLE, r2=DOUBLE),
        RUN,
        optional(experiment=STRING, proxy=STRING, hops=INT),
    ),
)  # fmt: skip

ARRANGED = join(
    columns(experiment=STRING, hops=INT, proxy=STRING, subscribers=INT, transport=STRING, scaling=STRING, size=INT)
)
"""Where the ends and the proxy of a round trip were, and how many bytes it had."""

ROUND_TRIPS = Table(
    "gold.round_trips",
    "round trips of the push-pull papers: the repetition with the middle mean, and percentiles of all",
    join(
        ARRANGED,
        columns(repetitions=LONG, samples=LONG, mean_us=DOUBLE, std_us=DOUBLE, p50_us=DOUBLE, p99_us=DOUBLE),
        RUN,
    ),
)

CONTRASTS = Table(
    "gold.contrasts",
    "round trips that differ in one thing, compared repetition by repetition: medians",
    join(
        ARRANGED,
        columns(varied=STRING, against=STRING, repetitions=LONG, ratio=DOUBLE, difference_us=DOUBLE),
        RUN,
    ),
)
"""`varied` is what differs (proxy, subscribers or hops), `against` its value in what is compared with."""

COMPONENTS = Table(
    "gold.components",
    "what the delay from publisher to subscriber is made of, by the place of the proxy (paper 001, Table 4)",
    join(columns(experiment=STRING, place=STRING, component=STRING, us=DOUBLE, samples=LONG), RUN),
)

GRID = Table(
    "gold.grid",
    "transports by environment and metric: mean of repetitions, and which is how good there",
    join(
        columns(experiment=STRING, environment=STRING),
        optional(receivers=INT, loss_percent=DOUBLE, burst=DOUBLE, rate_hz=DOUBLE, payload_bytes=INT,
                 delay_us=DOUBLE, bandwidth_mbit=DOUBLE, real=INT),
        columns(transport=STRING, metric=STRING, unit=STRING, repetitions=LONG, mean=DOUBLE, least=DOUBLE,
                most=DOUBLE, place=INT),
        RUN,
    ),
    "experiment",
)  # fmt: skip

RUNS = Table(
    "gold.runs",
    "single runs of paper 004's grid: its reliable multicast and Ricochet",
    join(
        columns(experiment=STRING, receivers=INT, loss_percent=DOUBLE, burst=DOUBLE, rate_hz=DOUBLE, transport=STRING,
                repetition=INT, metric=STRING, value=DOUBLE, unit=STRING),
        RUN,
    ),
)  # fmt: skip

CELLS = Table(
    "gold.cells",
    "every configuration of an experiment, by metric: all its samples, of all repetitions",
    join(
        columns(experiment=STRING, configuration=STRING, metric=STRING, unit=STRING, repetitions=LONG, samples=LONG,
                mean=DOUBLE, std=DOUBLE, p50=DOUBLE, p99=DOUBLE, least=DOUBLE, most=DOUBLE),
        optional(p95=DOUBLE, total=DOUBLE),
        RUN,
    ),
    "experiment",
)  # fmt: skip

BENCHMARKS = Table(
    "gold.benchmarks",
    "the history of every figure: each run's value beside the one before, on the same machine",
    join(
        columns(event_time=TIME, experiment=STRING, figure=STRING, quick=BOOL, machine=STRING, version=STRING,
                value=DOUBLE, unit=STRING),
        optional(reference=DOUBLE, target=DOUBLE, met=BOOL, before=DOUBLE, change=DOUBLE),
        columns(number=LONG, latest=BOOL),
        RUN,
    ),
)  # fmt: skip

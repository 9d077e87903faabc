"""What is kept of every run: one line per metric, in one schema, as Parquet so that Spark reads it.

| column | |
|---|---|
| experiment | "adamant", "adamant crowd", "adamant environments", "adamant field" |
| configuration | flat JSON: transport, and as numbers the environment and `updates`, how long it was looked at,
                  and real: 1 where it was measured on a network, 0 where it was simulated |
| repetition | from 0; it is the seed less one |
| metric, value, unit | as in METRICS |
| machine, version | what it ran on, and which Ringcast |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np

from ringcast.errors import RingcastError
from ringcast.lab.simulation.packet_loss import Outcome
from ringcast.measure import latency, relate, traffic, video

ENDLESS_MBIT = 1e6
"""How a line without an end is written: JSON has no infinity, and to a model more is more."""


class Result(msgspec.Struct, frozen=True):
    """One run's figures."""

    experiment: str
    configuration: dict[str, str]
    repetition: int
    metrics: dict[str, float]


class ParquetMissing(RingcastError):
    """Results are kept as Parquet, and pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__("results are written as Parquet by pyarrow: 'pip install ringcast[lab]'")


def _mean_ms(outcome: Outcome) -> float:
    return 1e3 * float(outcome.latencies_s.mean()) if outcome.latencies_s.size else math.inf


def _of(formula: Callable[[float, int, int], float]) -> Callable[[Outcome], float]:
    return lambda outcome: formula(_mean_ms(outcome), outcome.received.size, int(outcome.received.sum()))


def _with_std(outcome: Outcome) -> float:
    std_ms = 1e3 * latency.deviation_jitter(outcome.latencies_s)
    return relate.relate2_jit(_mean_ms(outcome), outcome.received.size, int(outcome.received.sum()), std_ms)


def _with_traffic(outcome: Outcome) -> float:
    """Bandwidth is what all hosts sent, while the publisher did."""
    kilobytes_per_s = outcome.wire_bytes / outcome.scenario.updates * outcome.scenario.rate_hz / 1e3
    return relate.relate2_net(_mean_ms(outcome), outcome.received.size, int(outcome.received.sum()), kilobytes_per_s)


def _period_jitter_ms(outcome: Outcome) -> float:
    came = np.flatnonzero(outcome.received[0])
    arrivals = came / outcome.scenario.rate_hz + outcome.latency_of(0)
    return 1e3 * latency.period_jitter(arrivals)


def _overhead(outcome: Outcome) -> float:
    useful = outcome.scenario.updates * outcome.scenario.payload_bytes
    return traffic.overhead(useful, outcome.wire_bytes)


METRICS: dict[str, tuple[str, Callable[[Outcome], float]]] = {
    "delivered": ("%", lambda outcome: 100 * outcome.delivered_share),
    "latency_mean": ("ms", _mean_ms),
    "latency_p99": ("ms", lambda outcome: 1e3 * latency.summarise(outcome.latencies_s).p99),
    "latency_std": ("ms", lambda outcome: 1e3 * latency.deviation_jitter(outcome.latencies_s)),
    "period_jitter": ("ms", _period_jitter_ms),
    "late_or_lost_100ms": ("%", lambda o: 100 * latency.missed_share(o.latencies_s, o.received.size, 0.1)),
    "relate": ("ms", _of(relate.relate)),
    "relate2": ("ms", _of(relate.relate2)),
    "relate2_jit": ("ms^2", _with_std),
    "relate2_net": ("ms*kB/s", _with_traffic),
    "usable_frames": ("%", lambda outcome: 100 * float(video.usable_frames(outcome.received).mean())),
    "wire_datagrams_per_update": ("1", lambda outcome: outcome.datagrams / outcome.scenario.updates),
    "wire_bytes_per_update": ("B", lambda outcome: outcome.wire_bytes / outcome.scenario.updates),
    "overhead": ("1", _overhead),
    "naks": ("1", lambda outcome: outcome.receivers["nak"][0]),
    "stalled_receivers": ("1", lambda outcome: outcome.stalled),
    "out_of_order": ("1", lambda outcome: outcome.out_of_order),
}


def summarise(experiment: str, outcome: Outcome, *, real: bool = False, name: str = "") -> Result:
    """`name` is the transport's, where what was simulated is called otherwise."""
    s = outcome.scenario
    configuration = {
        "transport": name or s.transport,
        "receivers": str(s.receivers),
        "loss_percent": f"{100 * s.loss:g}",
        "burst": f"{s.burst:g}",
        "rate_hz": f"{s.rate_hz:g}",
        "updates": str(s.updates),
        "payload_bytes": str(s.payload_bytes),
        "real": str(int(real)),
        "delay_us": f"{s.delay_us:g}",
        "bandwidth_mbit": f"{min(s.bandwidth_mbit, ENDLESS_MBIT):g}",
    }
    metrics = {name: float(of(outcome)) for name, (_, of) in METRICS.items()}
    return Result(experiment, configuration, s.seed - 1, metrics)


def flat(configuration: dict[str, str]) -> str:
    """As `ringcast pipeline run train` reads it: `transport` is a name, everything else a number."""
    named = {k: v if k == "transport" else msgspec.json.decode(v) for k, v in configuration.items()}
    return msgspec.json.encode(named).decode()


def write_parquet(results: Iterable[Result], path: Path, *, machine: str, version: str) -> None:
    """Raises ParquetMissing, OSError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ParquetMissing from exc
    schema = pa.schema(
        [
            ("experiment", pa.string()),
            ("configuration", pa.string()),
            ("repetition", pa.int32()),
            ("metric", pa.string()),
            ("value", pa.float64()),
            ("unit", pa.string()),
            ("machine", pa.string()),
            ("version", pa.string()),
        ]
    )
    lines = [
        (r.experiment, flat(r.configuration), r.repetition, metric, value, METRICS[metric][0], machine, version)
        for r in results
        for metric, value in r.metrics.items()
    ]
    columns = [pa.array([line[i] for line in lines], type=column.type) for i, column in enumerate(schema)]
    pq.write_table(pa.table(columns, schema=schema), path, compression="zstd")

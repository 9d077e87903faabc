"""What is kept of every run: its figures by METRICS, and as values of the one results schema (`record.results`).

The experiments are "adamant", "adamant crowd", "adamant environments" and "adamant field". A configuration has the
transport, and as numbers the environment, `updates` (how long it was looked at), and `real`: 1 where it was measured on
a network, 0 where it was simulated. A repetition is the seed less one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np

from ringcast.lab.simulation.packet_loss import Outcome
from ringcast.measure import latency, relate, traffic, video
from ringcast.record.figures import Measured

ENDLESS_MBIT = 1e6
"""How a line without an end is written: JSON has no infinity, and to a model more is more."""


class Result(msgspec.Struct, frozen=True):
    """One run's figures."""

    experiment: str
    configuration: dict[str, str]
    repetition: int
    metrics: dict[str, float]


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


ON_THE_WIRE = ("relate2_net", "wire_datagrams_per_update", "wire_bytes_per_update", "overhead", "naks")
"""Metrics that count what was sent."""


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


def measured(results: Iterable[Result]) -> Iterator[Measured]:
    """As values of the one results schema: `transport` is a name, everything else in a configuration a number."""
    for result in results:
        named = {k: v if k == "transport" else msgspec.json.decode(v) for k, v in result.configuration.items()}
        for metric, value in result.metrics.items():
            yield Measured(result.experiment, named, result.repetition, metric, value, METRICS[metric][0])

"""ReLate and its relatives: one number for latency and loss together. Pure. Lower is better.

| metric | formula | source |
|---|---|---|
| ReLate | mean latency / (received / sent) | paper 004, section 3.2.3 |
| ReLate2 | mean latency * (percent lost + 1) | paper 004, section 3.2.3 |
| ReLate2Jit | ReLate2 * standard deviation of latency | follow-up work of the same authors |
| ReLate2Net | ReLate2 * mean bandwidth | the same |
| ReLate2Burst | ReLate2 * standard deviation of bandwidth | the same |

They ignore tails, and dropping what is slow makes them better: read them beside p99 and missed deadlines. The unit of
latency is the caller's. What never arrived has no latency: with nothing received every metric is infinite.
"""

from __future__ import annotations

import math


def percent_lost(sent: int, received: int) -> float:
    """Raises ValueError for counts that cannot be."""
    _check(sent, received)
    return 100 * (sent - received) / sent


def relate(mean_latency: float, sent: int, received: int) -> float:
    _check(sent, received)
    return mean_latency * sent / received if received else math.inf


def relate2(mean_latency: float, sent: int, received: int) -> float:
    lost = percent_lost(sent, received)
    return mean_latency * (lost + 1) if received else math.inf


def relate2_jit(mean_latency: float, sent: int, received: int, latency_std: float) -> float:
    return relate2(mean_latency, sent, received) * latency_std


def relate2_net(mean_latency: float, sent: int, received: int, mean_bandwidth: float) -> float:
    return relate2(mean_latency, sent, received) * mean_bandwidth


def relate2_burst(mean_latency: float, sent: int, received: int, bandwidth_std: float) -> float:
    return relate2(mean_latency, sent, received) * bandwidth_std


def _check(sent: int, received: int) -> None:
    if sent <= 0 or not 0 <= received <= sent:
        raise ValueError(f"received {received} of {sent} sent")

"""What a channel is worth, from two looks at the counters of one of its ends. Pure.

Counters only grow, so the difference between two looks is what happened between them, whoever else looked. A channel
that was opened again counts from 0: what was known of it is forgotten. What an end does not count (a publisher's node
does not see what arrives) is None; so is what has no meaning, as a latency by clocks that disagree.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Mapping

import msgspec

from ringcast.measure import relate, traffic

LOOKS = 10
"""Values are of the time between this many looks; bandwidth deviates between one look and the next."""
_WRAP = 1 << 63


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """One look. `counters` is what the native end counts, by its names."""

    time_s: float
    messages: int
    bytes: int
    lost: int
    counters: Mapping[str, int]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, bandwidth in bytes per second, loss as a share. `overhead` is bytes on the wire besides the
    messages' own, per byte of theirs, both ways, without UDP's and IP's headers."""

    hz: float | None = None
    bandwidth: float | None = None
    bandwidth_std: float | None = None
    loss: float | None = None
    overhead: float | None = None
    latency_s: float | None = None
    latency_std_s: float | None = None
    jitter_s: float | None = None
    """Mean difference between one latency and the next."""
    relate: float | None = None
    relate2: float | None = None
    relate2_jit: float | None = None
    relate2_net: float | None = None
    relate2_burst: float | None = None


class Gauge:
    """Looks at one channel."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks: deque[Counts] = deque(maxlen=looks + 1)

    def add(self, counts: Counts) -> Reading:
        """What the channel did since the oldest look that is kept; after the first, since it was opened."""
        if self._looks and counts.messages < self._looks[-1].messages:
            self._looks.clear()
        self._looks.append(counts)
        return measured(list(self._looks))


def measured(looks: list[Counts]) -> Reading:
    """Raises IndexError without a look."""
    last = looks[-1]
    opened = Counts(time_s=last.time_s, messages=0, bytes=0, lost=0, counters={})
    first = looks[0] if len(looks) > 1 else opened
    received, lost = last.messages - first.messages, last.lost - first.lost
    mean, std = _bandwidth(looks)
    elapsed = last.time_s - first.time_s
    found = Reading(
        hz=received / elapsed if elapsed > 0 else None,
        bandwidth=mean,
        bandwidth_std=std,
        loss=traffic.loss_share(received + lost, received) if received + lost > 0 else None,
        overhead=_overhead(first, last),
    )
    if "delay_sum_ns" not in last.counters or received + lost <= 0:
        return found
    found = msgspec.structs.replace(found, **_latency(first, last, received))
    return msgspec.structs.replace(found, **_scores(found, received + lost, received))


def _bandwidth(looks: list[Counts]) -> tuple[float | None, float | None]:
    rates = [
        (after.bytes - before.bytes) / (after.time_s - before.time_s)
        for before, after in itertools.pairwise(looks)
        if after.time_s > before.time_s
    ]
    if not rates:
        return None, None
    mean = sum(rates) / len(rates)
    return mean, math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))


def _overhead(first: Counts, last: Counts) -> float | None:
    useful = last.bytes - first.bytes
    if useful <= 0 or "wire_bytes" not in last.counters:
        return None
    on_wire = sum(_grown(first, last, name) for name in ("wire_bytes", "sent_bytes"))
    # What was under way at the first look may be delivered at the second.
    return traffic.overhead(useful, max(on_wire, useful))


def _latency(first: Counts, last: Counts, received: int) -> dict[str, float]:
    if received == 0:
        return {}
    beyond_s = _grown(first, last, "delay_sum_ns") / received * 1e-9
    square_s2 = (_grown(first, last, "delay_square_us2") % _WRAP) / received * 1e-12
    differences = received if first.messages else max(received - 1, 1)
    return {
        "latency_s": last.counters["delay_base_ns"] * 1e-9 + beyond_s,
        "latency_std_s": math.sqrt(max(square_s2 - beyond_s**2, 0.0)),
        "jitter_s": _grown(first, last, "jitter_sum_ns") / differences * 1e-9,
    }


def _scores(found: Reading, sent: int, received: int) -> dict[str, float]:
    if received == 0:
        return dict.fromkeys(("relate", "relate2", "relate2_jit", "relate2_net", "relate2_burst"), math.inf)
    mean = found.latency_s
    if mean is None or mean <= 0 or found.latency_std_s is None:
        return {}
    scores = {
        "relate": relate.relate(mean, sent, received),
        "relate2": relate.relate2(mean, sent, received),
        "relate2_jit": relate.relate2_jit(mean, sent, received, found.latency_std_s),
    }
    if found.bandwidth is not None and found.bandwidth_std is not None:
        scores["relate2_net"] = relate.relate2_net(mean, sent, received, found.bandwidth)
        scores["relate2_burst"] = relate.relate2_burst(mean, sent, received, found.bandwidth_std)
    return scores


def _grown(first: Counts, last: Counts, name: str) -> int:
    return last.counters.get(name, 0) - first.counters.get(name, 0)

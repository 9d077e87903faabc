"""Offset and drift of one other clock: an age-decayed, delay-weighted line, and a bound that holds. Pure.

The line is the LabMap paper's (section VIII): samples with longer round trips and older ones count less. The bound is
not the line's: every exchange confines the offset to half its delay around it, whatever the two directions took.
Carried on to now by the drift, and widened by what is not known of that, these intervals overlap, and the truth is in
all of them. A sample that contradicts them means that a clock was set: then the line begins anew with it.

Only exchanges feed it. A message that came one way says how late it is or how far the clocks are apart, never which.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringcast.clock.exchange import RESOLUTION_NS, Exchange
from ringcast.clock.reading import ClockReading

SAMPLES = 400
AGE_NS = 20e9
"""A sample that old counts 1/e of a new one."""
LEAST_SPREAD_NS = 2_000.0
NEARLY_FASTEST = 4
"""How many are faster than the one whose delay says how much the fast ones differ. A quarter would be slow ones, where
traffic fills a queue in one direction most of the time."""
UNKNOWN_DRIFT = 100e-6
"""Of a clock that nothing is known of: crystals are within it."""
WANDER = 0.3e-6
"""How much a crystal's drift changes within seconds, with its temperature above all."""
CONFINING_NS = 10e9
"""Older samples confine nothing: the drift may have changed since."""
TOLD_NS = 100_000
"""A contradiction by less is a drift that changed, and is not called a step."""

_Floats = npt.NDArray[np.float64]


class Step(NamedTuple):
    """Between the last two exchanges one of the two clocks was set: the other is now that much farther ahead."""

    by_ns: int


class _Line(NamedTuple):
    at_ns: float
    offset_ns: float
    drift: float
    bound_ns: float
    unsure: float
    """Of the drift: the bound grows by it."""


class Estimator:
    """`add` exchanges in the order in which they were answered."""

    def __init__(self) -> None:
        self._at = np.zeros(SAMPLES)
        self._offset = np.zeros(SAMPLES)
        self._delay = np.zeros(SAMPLES)
        self._count = 0
        self._base_ns = 0  # offsets are kept relative to it: clocks may be years apart, and a float has 53 bits
        self._began_ns = 0
        self._drift = 0.0
        self._line: _Line | None = None

    def add(self, exchange: Exchange) -> Step | None:
        """A step that it shows, if any. One that cannot be is left out."""
        if not exchange.possible:
            return None
        if self._count == 0:
            self._base_ns, self._began_ns = int(exchange.offset_ns), exchange.taken_ns
        at, delay = float(exchange.taken_ns - self._began_ns), max(0.0, float(exchange.delay_ns))
        offset = (
            (exchange.heard_ns - exchange.asked_ns - self._base_ns)
            + (exchange.answered_ns - exchange.received_ns - self._base_ns)
        ) / 2
        step = self._contradicted(at, offset, delay)
        if step is not None:
            self._restart(exchange)
            at, offset = 0.0, 0.0
        elif self._count == SAMPLES:
            for column in (self._at, self._offset, self._delay):
                column[:-1] = column[1:]
            self._count -= 1
        self._at[self._count], self._offset[self._count], self._delay[self._count] = at, offset, delay
        self._count += 1
        self._line = self._fit()
        return step if step is not None and abs(step.by_ns) >= TOLD_NS else None

    def own_step(self, by_ns: int) -> None:
        """This node's clock was set ahead by so much; the other was not."""
        self._base_ns -= by_ns

    def reading(self, now_ns: int) -> ClockReading | None:
        """`now_ns` is of the clock that `taken_ns` is of; None before the first exchange."""
        line = self._line
        if line is None:
            return None
        later = float(now_ns - self._began_ns) - line.at_ns
        delays = self._delay[: self._count]
        return ClockReading(
            offset_ns=self._base_ns + round(line.offset_ns + line.drift * later), drift=line.drift,
            bound_ns=1 + math.ceil(line.bound_ns + line.unsure * max(0.0, later)),
            half_round_trip_ns=round(float(delays.mean()) / 2), fastest_ns=int(delays.min()), probes=self._count,
        )  # fmt: skip

    # ------------------------------------------------------------------

    def _contradicted(self, at: float, offset: float, delay: float) -> Step | None:
        line = self._line
        if line is None:
            return None
        later = max(0.0, at - line.at_ns)
        beside = offset - (line.offset_ns + line.drift * later)
        allowed = line.bound_ns + line.unsure * later + delay / 2 + RESOLUTION_NS
        return Step(round(beside)) if abs(beside) > allowed else None

    def _restart(self, exchange: Exchange) -> None:
        # The crystal is the same; how fast it runs may not be, when somebody disciplines it.
        self._drift = self._line.drift if self._line is not None else 0.0
        self._count = 0
        self._base_ns, self._began_ns = int(exchange.offset_ns), exchange.taken_ns

    def _fit(self) -> _Line:
        n = self._count
        at, offset, delay = self._at[:n], self._offset[:n], self._delay[:n]
        now = float(at[-1])
        fastest = float(delay.min())
        nearly = min(n - 1, NEARLY_FASTEST)
        spread = max(LEAST_SPREAD_NS, float(np.partition(delay, nearly)[nearly]) - fastest)
        weight = np.exp((at - now) / AGE_NS)
        weight /= RESOLUTION_NS**2 + ((delay - fastest) / 2) ** 2 + (spread / 4) ** 2
        total = float(weight.sum())
        middle_at, middle = float(weight @ at) / total, float(weight @ offset) / total
        away = at - middle_at
        extent = float(weight @ away**2) / total
        drift, unsure = self._drift, UNKNOWN_DRIFT
        if extent > 0:
            slope = float(weight @ (away * (offset - middle))) / total / extent
            residual = offset - middle - slope * away
            scatter = max(RESOLUTION_NS**2, float(weight @ residual**2) / total)
            # What the samples say of the drift against what is known of crystals: few samples say nothing.
            effective = max(0.0, total**2 / float(weight @ weight) - 2)  # two of them only say where a line is
            # Slow samples that happen to lie on a line say no more than their delays allow.
            precision, prior = extent * min(effective / scatter, total), UNKNOWN_DRIFT**-2
            drift = (slope * precision + self._drift * prior) / (precision + prior)
            unsure = min(UNKNOWN_DRIFT + abs(drift - self._drift), 4 / math.sqrt(precision + prior) + WANDER)
        estimate = middle + drift * (now - middle_at)
        low, high = _confined(now, at, offset, delay, drift, unsure)
        estimate = min(max(estimate, low), high)
        return _Line(now, estimate, drift, max(high - estimate, estimate - low) + RESOLUTION_NS, unsure)


def _confined(
    now: float, at: _Floats, offset: _Floats, delay: _Floats, drift: float, unsure: float
) -> tuple[float, float]:
    """Where the offset is now by all samples of late. Where they contradict each other the newer ones are believed."""
    recent = slice(int(np.searchsorted(at, now - CONFINING_NS)), None)
    age = (now - at[recent])[::-1]
    middle = offset[recent][::-1] + drift * age
    half = delay[recent][::-1] / 2 + unsure * age
    low, high = np.maximum.accumulate(middle - half), np.minimum.accumulate(middle + half)
    last = int(np.count_nonzero(low <= high)) - 1
    return float(low[last]), float(high[last])

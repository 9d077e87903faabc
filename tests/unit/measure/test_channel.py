"""Two looks at counters give what the messages between them would have given one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.measure import latency, relate
from ringcast.measure.channel import Counts, Gauge, measured

MS = 1_000_000


class End:
    """Counts as the native mirror does."""

    def __init__(self) -> None:
        self.delays: list[int] = []
        self.bytes = self.lost = self.wire = self.square = 0

    def receive(self, delay_ns: int, size: int = 100) -> None:
        self.delays.append(delay_ns)
        self.bytes += size
        self.wire += 48 + size
        self.square += (abs(delay_ns - self.delays[0]) // 1000) ** 2

    def look(self, time_s: float, **more: int) -> Counts:
        beyond = [delay - self.delays[0] for delay in self.delays]
        counters = {
            "delay_base_ns": self.delays[0] if self.delays else 0,
            "delay_sum_ns": sum(beyond),
            "delay_square_us2": self.square % 2**63,
            "jitter_sum_ns": sum(abs(b - a) for a, b in zip(self.delays, self.delays[1:], strict=False)),
            "wire_bytes": self.wire,
            **more,
        }
        return Counts(time_s=time_s, messages=len(self.delays), bytes=self.bytes, lost=self.lost, counters=counters)


@given(
    before=st.lists(st.integers(1, 50), max_size=30),
    between=st.lists(st.integers(1, 50), min_size=2, max_size=30),
    lost=st.integers(0, 20),
    skew_ms=st.sampled_from([0, 5, 3_600_000]),
)
def test_as_if_the_messages_between_had_been_measured_one_by_one(
    before: list[int], between: list[int], lost: int, skew_ms: int
) -> None:
    end = End()
    for ms in before:
        end.receive((ms + skew_ms) * MS)
    first = end.look(10.0)
    for ms in between:
        end.receive((ms + skew_ms) * MS)
    end.lost += lost
    found = measured([first, end.look(12.0)])
    delays = [(ms + skew_ms) * 1e-3 for ms in between]
    sent = len(between) + lost
    assert found.hz == pytest.approx(len(between) / 2)
    assert found.loss == pytest.approx(lost / sent)
    assert found.latency_s == pytest.approx(np.mean(delays))
    assert found.latency_std_s == pytest.approx(latency.deviation_jitter(delays), abs=1e-6)
    assert found.relate == pytest.approx(relate.relate(float(np.mean(delays)), sent, len(between)))
    assert found.relate2 == pytest.approx(relate.relate2(float(np.mean(delays)), sent, len(between)))
    assert found.relate2_jit == pytest.approx(found.relate2 * found.latency_std_s)
    assert found.overhead == pytest.approx(0.48)


def test_jitter_is_between_one_message_and_the_next() -> None:
    end = End()
    for ms in (1, 3, 1, 3):
        end.receive(ms * MS)
    assert measured([end.look(1.0)]).jitter_s == pytest.approx(0.002)
    first = end.look(1.0)
    end.receive(7 * MS)
    assert measured([first, end.look(2.0)]).jitter_s == pytest.approx(0.004)


def test_bandwidth_deviates_between_looks() -> None:
    gauge, end = Gauge(), End()
    end.receive(MS, 0)
    gauge.add(end.look(0.0))
    for second, size in enumerate((1000, 3000), 1):
        end.receive(MS, size)
        found = gauge.add(end.look(float(second)))
    assert (found.bandwidth, found.bandwidth_std) == (2000.0, 1000.0)
    assert found.relate2_net == pytest.approx(0.001 * 2000)
    assert found.relate2_burst == pytest.approx(0.001 * 1000)


def test_what_is_old_is_forgotten() -> None:
    gauge, end = Gauge(looks=2), End()
    for second, ms in enumerate((100, 1, 1, 1)):
        end.receive(ms * MS)
        found = gauge.add(end.look(float(second)))
    assert found.latency_s == pytest.approx(0.001)


def test_a_channel_that_was_opened_again_counts_from_its_beginning() -> None:
    gauge, old, new = Gauge(), End(), End()
    for _ in range(5):
        old.receive(100 * MS)
    gauge.add(old.look(1.0))
    new.receive(2 * MS)
    found = gauge.add(new.look(2.0))
    assert (found.latency_s, found.hz) == (pytest.approx(0.002), None)


def test_requests_and_repairs_are_overhead() -> None:
    end = End()
    end.receive(MS, 100)
    assert measured([end.look(1.0, sent_bytes=52)]).overhead == pytest.approx(1.0)


def test_the_square_may_begin_again() -> None:
    end = End()
    end.receive(MS)
    end.square = 2**63 - 1
    first = end.look(1.0)
    end.receive(3 * MS)
    end.receive(5 * MS)
    assert measured([first, end.look(2.0)]).latency_std_s == pytest.approx(0.001, abs=1e-6)


@pytest.mark.parametrize(
    ("delays", "lost", "counters", "expected"),
    [
        ([], 0, None, {"loss": None, "latency_s": None, "relate": None}),
        ([], 3, None, {"loss": 1.0, "latency_s": None, "relate": math.inf, "relate2_net": math.inf}),
        ([-5 * MS], 0, None, {"latency_s": -0.005, "relate": None, "relate2": None}),
        ([MS], 1, {}, {"loss": 0.5, "latency_s": None, "overhead": None, "relate": None}),
    ],
)
def test_what_cannot_be_said_is_not_said(
    delays: list[int], lost: int, counters: dict[str, int] | None, expected: dict[str, Any]
) -> None:
    end = End()
    for delay in delays:
        end.receive(delay)
    end.lost = lost
    look = end.look(1.0)
    if counters is not None:
        look = Counts(time_s=1.0, messages=look.messages, bytes=look.bytes, lost=lost, counters=counters)
    found = measured([look])
    assert {name: getattr(found, name) for name in expected} == expected

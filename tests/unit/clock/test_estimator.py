"""The estimate against the truth of simulated clocks: always within the bound, whatever the network does."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.clock.estimator import Estimator
from ringcast.clock.exchange import Exchange
from ringcast.clock.reading import ClockReading
from tests.unit.clock.simulated import PERIOD_NS, START_NS, Delays, Pair, idle, one_way_load

SECOND = 1e9


def readings(pair: Pair, estimator: Estimator, count: int) -> Iterator[tuple[ClockReading, float]]:
    """After each exchange and just before the next: what is believed, and by how much it is off."""
    for _ in range(count):
        estimator.add(pair.exchange())
        for at in (pair.now_ns - PERIOD_NS + 5e6, pair.now_ns):
            reading = estimator.reading(START_NS + int(at))
            assert reading is not None
            yield reading, reading.offset_ns - pair.offset_ns(at)


def rms(errors: list[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


@pytest.mark.parametrize("ahead_s", [0.0, 3.7, -86_400.0])
@pytest.mark.parametrize("drift", [0.7e-6, 7e-6, -7e-6])
@pytest.mark.parametrize("delays", [idle, one_way_load])
def test_the_error_is_within_the_bound(ahead_s: float, drift: float, delays: Delays) -> None:
    pair, estimator = Pair(ahead_s * SECOND, drift, delays), Estimator()
    settled = []
    for number, (reading, error) in enumerate(readings(pair, estimator, 600)):
        assert abs(error) <= reading.bound_ns
        if number >= 200:  # 10 s
            settled.append((reading, error))
    assert rms([error for _, error in settled]) < 5_000
    assert max(reading.bound_ns for reading, _ in settled) < 200_000
    assert abs(settled[-1][0].drift - drift) < (0.3e-6 if delays is idle else 3e-6)


def test_the_papers_bound_is_beside_ours() -> None:
    pair, estimator = Pair(0, 0), Estimator()
    reading = [reading for reading, _ in readings(pair, estimator, 300)][-1]
    assert reading.half_round_trip_ns == pytest.approx(98_000, rel=0.05)
    assert 180_000 <= reading.fastest_ns <= 2 * reading.half_round_trip_ns
    assert reading.probes == 300


@settings(max_examples=40, deadline=None)
@given(
    ahead=st.floats(-1e12, 1e12), drift=st.floats(-50e-6, 50e-6), seed=st.integers(0, 2**32),
    shortest=st.floats(0, 1e6), queue_there=st.floats(0, 1e7), queue_back=st.floats(0, 1e7), busy=st.floats(0, 1),
)  # fmt: skip
def test_no_network_puts_it_beyond_the_bound(
    ahead: float, drift: float, seed: int, shortest: float, queue_there: float, queue_back: float, busy: float
) -> None:
    def delays(rng: object) -> tuple[float, float]:
        queued = rng.random() < busy  # type: ignore[attr-defined]
        there = rng.uniform(0, queue_there) if queued else 0.0  # type: ignore[attr-defined]
        return shortest + there, rng.uniform(0, queue_back)  # type: ignore[attr-defined]

    pair, estimator = Pair(ahead, drift, delays, seed), Estimator()
    for reading, error in readings(pair, estimator, 120):
        assert abs(error) <= reading.bound_ns


@pytest.mark.parametrize("by_ns", [1e6, -1e6, 3600e9, 300_000, -300_000])
@pytest.mark.parametrize("delays", [idle, one_way_load])
def test_a_step_of_the_other_clock_is_noticed_within_a_second(by_ns: float, delays: Delays) -> None:
    pair, estimator = Pair(5e9, 7e-6, delays), Estimator()
    for _ in readings(pair, estimator, 300):
        pass
    pair.ahead_ns += by_ns
    told = [
        step for step in (estimator.add(pair.exchange()) for _ in range(40 if delays is one_way_load else 10)) if step
    ]
    assert len(told) == 1
    assert told[0].by_ns == pytest.approx(by_ns, abs=200_000 if delays is idle else 2_000_000)
    for reading, error in readings(pair, estimator, 300):
        assert abs(error) <= reading.bound_ns


def test_without_a_step_none_is_told() -> None:
    for delays in (idle, one_way_load):
        pair, estimator = Pair(5e9, 7e-6, delays), Estimator()
        assert not [step for step in (estimator.add(pair.exchange()) for _ in range(3000)) if step]


def test_a_step_of_ones_own_clock_moves_the_line_and_is_no_news_of_the_other() -> None:
    pair, estimator = Pair(5e9, 7e-6), Estimator()
    for _ in readings(pair, estimator, 100):
        pass
    pair.own_ns += 2e9
    estimator.own_step(2_000_000_000)
    for _ in range(100):
        assert estimator.add(pair.exchange()) is None
    for reading, error in readings(pair, estimator, 10):
        assert abs(error) <= reading.bound_ns
        assert reading.probes > 200


def test_a_clock_that_is_led_to_the_right_time_stays_within_the_bound() -> None:
    """A daemon that disciplines the clock makes it run 500 us/s faster for a while, and then does not."""
    pair, estimator = Pair(0, 0), Estimator()
    for _ in readings(pair, estimator, 200):
        pass
    for drift in (500e-6, 0.0, -500e-6, 0.0):
        pair.ahead_ns += (pair.drift - drift) * pair.now_ns
        pair.drift = drift
        late = 0
        for reading, error in readings(pair, estimator, 100):
            late += abs(error) > reading.bound_ns
        assert late <= 8  # until the first exchange that could show it


def test_a_node_that_does_not_answer_for_an_hour() -> None:
    """The machine was suspended, or the network was: the bound grows, and the first answer makes it small again."""
    pair, estimator = Pair(5e9, 7e-6), Estimator()
    for _ in readings(pair, estimator, 300):
        pass
    before = estimator.reading(START_NS + int(pair.now_ns))
    pair.skip(3600 * SECOND)
    reading = estimator.reading(START_NS + int(pair.now_ns))
    assert before is not None
    assert reading is not None
    assert reading.bound_ns > 10 * before.bound_ns
    assert abs(reading.offset_ns - pair.offset_ns(pair.now_ns)) <= reading.bound_ns
    for later, error in readings(pair, estimator, 50):
        assert abs(error) <= later.bound_ns
    assert later.bound_ns < 200_000


def test_nothing_is_known_before_the_first_answer() -> None:
    assert Estimator().reading(START_NS) is None


def test_times_that_cannot_be_are_left_out() -> None:
    estimator = Estimator()
    assert estimator.add(Exchange(100, 150, 140, 200, 200)) is None, "answered before it was heard"
    assert estimator.add(Exchange(100, 150, 5350, 200, 200)) is None, "on the way for less than nothing"
    assert estimator.reading(300) is None


def test_an_exchange_is_off_by_at_most_half_its_delay() -> None:
    equal, there = Exchange(1000, 51_300, 51_377, 1677, 0), Exchange(1000, 55_000, 55_077, 5077, 0)
    assert (equal.offset_ns, equal.delay_ns) == (50_000, 600)
    assert abs(there.offset_ns - 50_000) <= there.delay_ns / 2

"""Rates are the publisher's, whatever the windows are through which it is looked at."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.cli.parts.window import NOTHING, Intervals, Sample, Stretch

MS = 1_000_000
S = 1_000_000_000
T0 = 1_700_000_000 * S


def look(stretch: Stretch, messages: list[tuple[int, int]], now: int, kept: int | None = None) -> None:
    times = [at for _, at in messages]
    stretch.add(Sample(*messages[-1]), times if kept is None else times[-kept:], now)


@pytest.mark.parametrize("rate", [2.0, 29.97, 1000.0])
@pytest.mark.parametrize("offset_ms", [0, 1, 17, 333])
def test_a_steady_rate_is_exact_wherever_the_window_falls(rate: float, offset_ms: int) -> None:
    step = round(S / rate)
    begin = T0 + 10 * S + offset_ms * MS
    before = max((begin - T0) // step, 0)
    stretch = Stretch(Sample(before, T0 + before * step), begin)
    messages = [(n, T0 + n * step) for n in range(before + 1, (begin + S - T0) // step + 1)]
    look(stretch, messages, begin + S)
    figures = stretch.figures(begin + S)
    assert figures.rate_hz == pytest.approx(S / step, rel=1e-9)
    assert figures.sent == figures.intervals == len(messages)
    assert figures.interval_min_ns == figures.interval_max_ns == step


def test_a_history_that_lost_the_beginning_costs_intervals_and_no_messages() -> None:
    stretch = Stretch(Sample(999, T0), T0)
    messages = [(1000 + n, T0 + (n + 1) * 1000) for n in range(500_000)]
    look(stretch, messages, T0 + S // 2, kept=4096)
    figures = stretch.figures(T0 + S // 2)
    assert figures.rate_hz == pytest.approx(1e6)
    assert figures.sent == 500_000
    assert figures.intervals == 4095


def test_without_any_history_the_rate_stands_on_numbers_alone() -> None:
    stretch = Stretch(Sample(0, T0), T0)
    stretch.add(Sample(100, T0 + S), [], T0 + S)
    figures = stretch.figures(T0 + S)
    assert (figures.rate_hz, figures.intervals, figures.interval_std_ns) == (100.0, 0, None)


def test_one_message_a_window_takes_the_interval_before_it() -> None:
    stretch = Stretch(Sample(4, T0 - 1700 * MS), T0)
    look(stretch, [(5, T0 + 300 * MS)], T0 + S)
    assert stretch.figures(T0 + S).rate_hz == pytest.approx(0.5)


def test_the_first_message_ever_has_no_rate() -> None:
    stretch = Stretch(NOTHING, T0)
    look(stretch, [(0, T0 + 5)], T0 + 10)
    figures = stretch.figures(T0 + 10)
    assert (figures.sent, figures.rate_hz, figures.intervals) == (1, None, 0)


def test_a_publisher_born_in_the_window_is_measured_from_its_first_message() -> None:
    stretch = Stretch(NOTHING, T0)
    look(stretch, [(n, T0 + 900 * MS + n * MS) for n in range(100)], T0 + S)
    assert stretch.figures(T0 + S).rate_hz == pytest.approx(1000.0)


def test_an_hour_of_silence_before_the_window_is_not_part_of_it() -> None:
    stretch = Stretch(Sample(7, T0 - 3600 * S), T0)
    look(stretch, [(8 + n, T0 + n * 10 * MS) for n in range(100)], T0 + S)
    figures = stretch.figures(T0 + S)
    assert figures.rate_hz == pytest.approx(100.0)
    assert figures.interval_max_ns == 10 * MS


def test_silence_is_a_rate_of_nothing_and_says_since_when() -> None:
    figures = Stretch(Sample(7, T0 - 3 * S), T0).figures(T0 + S)
    assert (figures.sent, figures.rate_hz, figures.silent_ns) == (0, 0.0, 4 * S)
    assert Stretch(NOTHING, T0).figures(T0 + S).silent_ns is None


def test_a_publisher_that_stopped_does_not_keep_its_rate() -> None:
    stretch = Stretch(Sample(0, T0), T0)
    look(stretch, [(n, T0 + n * 10 * MS) for n in range(1, 51)], T0 + 10 * S)
    assert stretch.figures(T0 + 10 * S).rate_hz == pytest.approx(5.0)


def test_messages_of_one_moment_have_no_finite_rate() -> None:
    stretch = Stretch(NOTHING, T0)
    look(stretch, [(n, T0) for n in range(10)], T0)
    assert stretch.figures(T0).rate_hz is None


@given(st.lists(st.integers(min_value=1, max_value=50), min_size=1, max_size=8), st.integers(1, 400))
def test_many_looks_add_up_to_one(counts: list[int], step_ms: int) -> None:
    many = Stretch(Sample(0, T0), T0)
    seq = 0
    for count in counts:
        new = [(seq + n, T0 + (seq + n) * step_ms * MS) for n in range(1, count + 1)]
        seq += count
        look(many, new, new[-1][1])
    one = Stretch(Sample(0, T0), T0)
    look(one, [(n, T0 + n * step_ms * MS) for n in range(1, seq + 1)], T0 + seq * step_ms * MS)
    assert many.figures(T0 + seq * step_ms * MS) == one.figures(T0 + seq * step_ms * MS)


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=50))
def test_running_deviation_is_the_deviation(gaps: list[int]) -> None:
    intervals = Intervals()
    for gap in gaps:
        intervals.add(gap)
    mean = sum(gaps) / len(gaps)
    expected = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    assert intervals.deviation == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert (intervals.shortest, intervals.longest) == (min(gaps), max(gaps))

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.cli.parts import units


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("4096", 4096), ("64K", 65536), ("64k", 65536), ("4MiB", 4 << 20), ("1.5 GB", 3 << 29)]
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert units.size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4X", "K", "1 2", "nan", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size"):
        units.size(text)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "x", "", str(1 << 63)])
def test_a_count_is_a_whole_number_from_one(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        units.count(text)
    assert units.count("1") == 1


def test_an_index_may_be_zero() -> None:
    assert units.index("0") == 0
    with pytest.raises(argparse.ArgumentTypeError):
        units.index("-1")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "1e10", "fast", ""])
def test_a_rate_is_a_number_that_a_clock_can_follow(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        units.positive(text)


def test_zero_seconds_are_a_duration_and_no_rate() -> None:
    assert units.not_negative("0") == 0.0
    assert units.positive("0.25") == 0.25
    with pytest.raises(argparse.ArgumentTypeError):
        units.not_negative("nan")


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_bytes_are_shown_in_the_unit_that_fits(number: int, shown: str) -> None:
    assert units.show_bytes(number) == shown


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(None, "-"), (0.0, "0 Hz"), (0.5, "0.50 Hz"), (29.97, "29.97 Hz"), (999.996, "1.000 kHz"), (2.5e6, "2.500 MHz")],
)
def test_rates(rate: float | None, shown: str) -> None:
    assert units.show_hz(rate) == shown


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (None, "-"), (0, "0 ns"), (999, "999 ns"), (53_100, "53.1 us"), (999_960, "1.00 ms"), (1_200_000, "1.20 ms"),
        (3_500_000_000, "3.5 s"), (125_000_000_000, "2 min 5 s"), (3_840_000_000_000, "1 h 4 min"),
        (200_000 * 10**9, "2 d 7 h"), (-2_000, "-2.0 us"),
    ],
)  # fmt: skip
def test_durations(duration: float | None, shown: str) -> None:
    assert units.show_ns(duration) == shown


def test_never_has_no_age_and_the_future_none_below_zero() -> None:
    assert units.show_age(0, 10**18) == "-"
    assert units.show_age(1000, 500) == "0 ns"


@given(st.integers(min_value=1, max_value=1 << 50))
def test_a_plain_number_of_bytes_means_itself(number: int) -> None:
    assert units.size(str(number)) == number

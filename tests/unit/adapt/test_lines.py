"""What is left of senders' lines: less what others send, not less what the tag itself sends."""

from __future__ import annotations

import pytest

from ringcast.adapt.lines import LEAST_LEFT, Line, Taken, left, own, thinnest

TAKEN = [Taken(100.0, 200.0), Taken(90.0, 200.0)]


def test_a_stream_for_all_is_sent_once_and_others_to_each() -> None:
    assert own(TAKEN, ["multicast+nak"]) == 100 * 260
    assert own(TAKEN, ["nak"]) == own(TAKEN, ["udp"]) == own(TAKEN, ["tcp"]) == 190 * 260
    assert own([], ["multicast"]) == 0.0


def test_something_is_always_left() -> None:
    assert left(1_000.0, 300.0) == 700.0
    assert left(1_000.0, -300.0) == 1_000.0
    assert left(1_000.0, 5_000.0) == LEAST_LEFT * 1_000.0


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], 0.0), ([Line(0.0, 0.0)], 0.0), ([Line(250_000.0, 26_000.0)], 250_000.0),
        ([Line(250_000.0, 126_000.0)], 150_000.0), ([Line(250_000.0, 0.0), Line(1_000.0, 0.0)], 1_000.0),
        ([Line(250_000.0, 26_000.0), Line(300_000.0, 226_000.0)], 100_000.0),
    ],
)  # fmt: skip
def test_the_line_with_the_least_left_counts(lines: list[Line], found: float) -> None:
    assert thinnest(lines, 26_000.0) == found

"""What is left of senders' lines: less what others send, not less what the tag itself sends."""

from __future__ import annotations

import pytest

from ringcast.adapt.lines import LEAST_LEFT, Left, Line, Taken, left, own, thinnest


def taken(transport: str, *rates_hz: float) -> list[Taken]:
    return [Taken(transport, rate_hz, 200.0) for rate_hz in rates_hz]


def test_a_stream_for_all_is_sent_once_and_others_to_each() -> None:
    assert own(taken("multicast+nak", 100.0, 90.0), 1, 0.0) == 100 * 260
    for each in ("nak", "udp", "tcp"):
        assert own(taken(each, 100.0, 90.0), 1, 0.0) == 190 * 260
    assert own([], 1, 0.0) == 0.0


def test_repairs_and_what_is_asked_for_again_are_the_tags_own() -> None:
    assert own(taken("multicast+parity:r=4,c=4", 100.0, 90.0), 1, 0.1) > 1.9 * 100 * 260
    assert own(taken("multicast+nak", 100.0, 90.0), 1, 0.1) == pytest.approx(100 * 260 * 1.2)
    assert own(taken("multicast", 100.0, 90.0), 1, 0.1) == 100 * 260, "nobody asks"


def test_while_a_stream_changes_its_transport_it_is_sent_by_both() -> None:
    both = [*taken("multicast", 40.0, 40.0), *taken("udp", 60.0, 60.0)]
    assert own(both, 1, 0.0) == (40 + 120) * 260


def test_something_is_always_left() -> None:
    assert left(1_000.0, 300.0) == 700.0
    assert left(1_000.0, -300.0) == 1_000.0
    assert left(1_000.0, 5_000.0) == LEAST_LEFT * 1_000.0


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], None), ([Line(0.0, 0.0)], None), ([Line(250_000.0, 26_000.0)], 250_000.0),
        ([Line(250_000.0, 126_000.0)], 150_000.0), ([Line(250_000.0, 0.0), Line(1_000.0, 0.0)], 1_000.0),
        ([Line(250_000.0, 26_000.0), Line(300_000.0, 226_000.0)], 100_000.0),
    ],
)  # fmt: skip
def test_the_line_with_the_least_left_counts(lines: list[Line], found: float | None) -> None:
    assert thinnest(lines, 26_000.0, 1) == (None if found is None else Left(found, 1))


def test_publishers_of_one_line_share_it_and_each_line_carries_its_own_publishers() -> None:
    told_of_none = Line(250_000.0, 52_000.0)
    assert thinnest([told_of_none], 52_000.0, 2) == Left(250_000.0, 2)
    one_each = [Line(250_000.0, 26_000.0, 1), Line(200_000.0, 26_000.0, 1)]
    assert thinnest(one_each, 52_000.0, 2) == Left(200_000.0, 1)
    crowded = [Line(250_000.0, 78_000.0, 3), Line(100_000.0, 26_000.0, 1)]
    found = thinnest(crowded, 104_000.0, 4)
    assert found == Left(250_000.0, 3), "of the wider line each of three has less"
    assert found.each == pytest.approx(250_000.0 / 3)

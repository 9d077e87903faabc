"""The offset of a clock from four times: exact where both ways take equally long, and within its bound where not."""

from __future__ import annotations

import pytest

from ringcast.lab.measuring.clocks import Ahead, Exchange, believed

AHEAD = 50_000_000


def exchange(there_ns: int, back_ns: int, asked_ns: int = 1000, at_work_ns: int = 77) -> Exchange:
    heard = asked_ns + there_ns + AHEAD
    return Exchange(asked_ns, heard, heard + at_work_ns, asked_ns + there_ns + at_work_ns + back_ns)


def test_equal_ways_give_the_offset_itself() -> None:
    assert believed([exchange(300, 300)]) == Ahead(AHEAD, 300)


def test_the_fastest_exchange_is_believed() -> None:
    slow, fast = exchange(9000, 100), exchange(210, 190)
    assert (slow.delay_ns, fast.delay_ns) == (9100, 400)
    assert believed([slow, fast, slow]) == Ahead(AHEAD + 10, 200)


@pytest.mark.parametrize(("there", "back"), [(0, 4000), (4000, 0), (1, 2)])
def test_unequal_ways_stay_within_the_bound(there: int, back: int) -> None:
    found = believed([exchange(there, back)])
    assert abs(found.offset_ns - AHEAD) <= found.bound_ns


def test_without_an_exchange_nothing_is_believed() -> None:
    with pytest.raises(ValueError, match="empty"):
        believed([])

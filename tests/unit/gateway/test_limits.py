"""Limits, and the allowance that says how long to wait."""

from __future__ import annotations

import pytest

from ringcast.gateway.gate import LEAST_BYTES, MOST_BYTES, allowed_bytes
from ringcast.gateway.limits import Allowance, Limits


def test_an_allowance_of_ten_a_second() -> None:
    allowance = Allowance(10.0)
    assert [allowance.take(1, 100.0) for _ in range(10)] == [0.0] * 10
    assert allowance.take(1, 100.0) == pytest.approx(0.1)
    assert allowance.take(1, 100.3) == 0.0
    assert allowance.take(50, 200.0) == pytest.approx(4.0)


def test_limits_are_more_than_nothing() -> None:
    assert Limits().check() == Limits()
    with pytest.raises(ValueError, match="pages"):
        Limits(pages=0).check()


def test_what_may_be_under_way_to_a_page() -> None:
    """A thin link gets two packets; a long fat one what fits into its round trip."""
    assert allowed_bytes(12_500, 0.0) == LEAST_BYTES
    assert allowed_bytes(1_250_000, 0.05) == 125_000
    assert allowed_bytes(1e12, 1.0) == MOST_BYTES

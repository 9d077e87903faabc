"""What a publisher may declare, and the bucket that holds it to that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.model.declared import Bucket, Declared, declared


def test_nothing_declared():
    assert declared(None, None, 0.0, None) is None


def test_a_tenth_of_the_period_is_allowed_early():
    assert declared(0.1, 64, 0.01, None) == Declared(0.1, 64, 0.01, pytest.approx(0.01))


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ((0.1, None, 0.0, None), "together"),
        ((None, 64, 0.0, None), "together"),
        ((None, None, 0.5, None), "belong to a declared stream"),
        ((0.0, 64, 0.0, None), "period_s"),
        ((float("inf"), 64, 0.0, None), "period_s"),
        ((0.1, 0, 0.0, None), "max_bytes"),
        ((0.1, 64, -1.0, None), "compute_s"),
        ((0.1, 64, 0.0, -1.0), "jitter_s"),
    ],
)
def test_what_cannot_be_declared(given_, says):
    with pytest.raises(ValueError, match=says):
        declared(*given_)


@given(st.lists(st.integers(0, 3000), max_size=50))
def test_what_is_let_through_keeps_to_the_declaration(gaps):
    """In any stretch of time there are no more messages than a periodic stream with that jitter has."""
    bucket, now, passed = Bucket(Declared(1e-6, 1, jitter_s=3e-7)), 0, []
    for gap in gaps:
        now += gap
        if not bucket.wait_ns(now):
            bucket.take(now)
            passed.append(now)
    for i, first in enumerate(passed):
        for count, last in enumerate(passed[i:], 1):
            assert count <= (last - first + 300) // 1000 + 1


def test_who_waits_as_long_as_told_may_send():
    bucket = Bucket(Declared(1e-6, 1))
    bucket.take(100)
    assert bucket.wait_ns(200) == 900
    assert bucket.wait_ns(1100) == 0

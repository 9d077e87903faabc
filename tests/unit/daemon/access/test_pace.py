"""Tokens that come with time."""

from __future__ import annotations

from ringcast.daemon.access.pace import Bucket


def test_a_burst_and_then_so_many_a_second() -> None:
    bucket = Bucket(10, 3, now_s=0.0)
    assert [bucket.wait_s(0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.1]
    assert bucket.wait_s(0.1) == 0.0
    assert bucket.wait_s(0.1) > 0
    assert [bucket.wait_s(100.0) > 0 for _ in range(4)] == [False, False, False, True]


def test_time_that_goes_back_gives_nothing() -> None:
    bucket = Bucket(10, 1, now_s=5.0)
    assert bucket.wait_s(5.0) == 0.0
    assert bucket.wait_s(1.0) > 0


def test_without_a_rate_there_is_no_limit() -> None:
    bucket = Bucket(0, 0, now_s=0.0)
    assert all(bucket.wait_s(0.0) == 0.0 for _ in range(1000))

"""The same thing a few times, then a sum; nothing is left out of the sums."""

from __future__ import annotations

from random import Random

from ringcast.daemon.observe.rate_limit import WINDOW_NS, RateLimit


def test_a_few_are_said_and_the_rest_summed_up_after_a_minute() -> None:
    limit = RateLimit(per_window=3)
    assert [limit.admits("x", 10, f"no. {i}") for i in range(10)] == [True] * 3 + [False] * 7
    assert limit.due_ns() == 10 + WINDOW_NS
    assert limit.take_sums(9 + WINDOW_NS) == []
    assert limit.take_sums(10 + WINDOW_NS) == [(7, "no. 9")]
    assert limit.due_ns() is None
    assert limit.admits("x", 11 + WINDOW_NS)
    assert limit.suppressed == 7


def test_one_that_is_loud_does_not_silence_another() -> None:
    limit = RateLimit(per_window=1)
    assert limit.admits("loud", 0)
    assert not limit.admits("loud", 0)
    assert limit.admits("other", 0)
    assert limit.due_ns() == WINDOW_NS


def test_keys_are_bounded_and_everything_is_said_or_summed_up() -> None:
    rng, limit = Random(3), RateLimit(per_window=2, max_keys=4)
    said = summed = 0
    for now_ns in range(0, 5 * WINDOW_NS, WINDOW_NS // 200):
        said += limit.admits(rng.randrange(50), now_ns, "x")
        summed += sum(count for count, _ in limit.take_sums(now_ns))
        assert len(limit._windows) <= 5
    summed += sum(count for count, _ in limit.take_sums(10 * WINDOW_NS))
    assert said + summed == 1000
    assert summed == limit.suppressed
    assert said <= 5 * 2 * 6

"""What several looks at a node's counters say together."""

from __future__ import annotations

import pytest

from ringcast.adapt.looks import Look, differ, rate, total, usual_rate


def look(messages: int, elapsed_s: float = 1.0, skipped: int = 0) -> Look:
    return Look(elapsed_s, messages, 100 * messages, messages + skipped, skipped, skipped, 1)


def test_together_they_are_one_longer_look() -> None:
    both = total([look(100, 1.0), look(20, 0.2)])
    assert (both.messages, both.elapsed_s) == (120, pytest.approx(1.2))
    assert rate(both) == pytest.approx(100.0)


def test_a_pause_during_one_of_them_leaves_the_rate_that_most_have() -> None:
    assert usual_rate([look(100), look(100), look(20), look(100)]) == 100.0
    assert usual_rate([look(100), look(30, 0.3), look(0)]) == 100.0


def test_few_messages_say_no_usual_rate() -> None:
    assert usual_rate([]) == 0.0
    assert usual_rate([look(1), look(0), look(1)]) == 0.0


def test_chance_is_no_other_environment_and_many_losses_are() -> None:
    assert not differ(look(1_000, 10.0, 10), look(100, 1.0, 3))
    assert differ(look(1_000, 10.0, 10), look(100, 1.0, 20))
    assert differ(look(1_000, 10.0), look(200))
    assert not differ(look(1_000, 10.0), look(50)), "a stream may have stopped"

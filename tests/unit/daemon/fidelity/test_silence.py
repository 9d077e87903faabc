"""Packets come for a subscription with a range, and no message becomes whole of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ringcast.daemon.fidelity.ranges import LATE_S, LOOK_S, _Followed
from ringcast.scaling.fidelity import Range


class Reader:
    """A subscription whose reader got so many messages so far."""

    deadline_s = None

    def __init__(self, hz):
        self.options = SimpleNamespace(range=Range(hz), rate_hz=hz[1], size=None)
        self.received = 0

    def status(self):
        return SimpleNamespace(counters={"received": self.received}, latency=[])


def looks_until_less(followed, pieces_each=10, most=100):
    """How many looks, with so many packets each and no message, until it has less than the best."""
    best, pieces = followed.now().rate_hz, 0
    for number in range(1, most):
        pieces += pieces_each
        followed.look(pieces, 0)
        if followed.now().rate_hz < best:
            return number
    return None


def test_it_falls_to_the_least_and_says_why():
    followed = _Followed(Reader((5.0, 50.0)))
    assert looks_until_less(followed) * LOOK_S > LATE_S
    assert followed.now().rate_hz == 5.0
    assert "no message became whole" in followed.now().why


def test_a_message_that_may_take_its_time_is_waited_for():
    slow = _Followed(Reader((0.2, 50.0)))
    assert looks_until_less(slow) * LOOK_S > 2 / 0.2


@pytest.mark.parametrize("pieces", [0, 10])
def test_without_packets_or_with_messages_it_stays(pieces):
    reader = Reader((5.0, 50.0))
    followed = _Followed(reader)
    for number in range(20):
        reader.received += 5 if pieces else 0
        followed.look(number * pieces, reader.received)
    assert followed.now().rate_hz == 50.0


def test_a_reader_that_receives_nothing_of_what_came_is_not_silence():
    followed = _Followed(Reader((5.0, 50.0)))
    for number in range(20):
        followed.look(10 * number, number)
    assert followed.now().rate_hz == 50.0

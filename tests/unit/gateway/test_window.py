"""A window follows the delay with which a page takes its messages."""

from __future__ import annotations

import pytest

from ringcast.errors import BadMessage
from ringcast.gateway.frames import WRAP
from ringcast.gateway.window import FIRST, LEAST, MOST, Window


def drive(window: Window, rounds: int, delay_s: float, number: int = 0) -> int:
    """Fill the window and take all of it, so many times; returns the page's running number."""
    now_s = 0.0
    for _ in range(rounds):
        sent = 0
        while window.is_open:
            window.sent()
            sent += 1
        now_s += delay_s
        number = (number + sent) % WRAP
        window.took(window.newly_taken(number), delay_s, now_s)
    return number


def test_it_grows_while_messages_are_taken_at_once() -> None:
    window = Window()
    drive(window, 20, 0.001)
    assert window.limit == MOST


def test_it_shrinks_when_they_wait_and_grows_again() -> None:
    window = Window()
    number = drive(window, 1, 0.01)
    number = drive(window, 30, 1.0, number)
    assert window.limit < FIRST
    assert window.limit >= LEAST
    drive(window, 20, 0.01, number)
    assert window.limit == MOST


def test_it_does_not_grow_without_need() -> None:
    window = Window()
    for number in range(1, 100):
        window.sent()
        window.took(window.newly_taken(number), 0.001, number)
    assert window.limit == FIRST


def test_numbers_wrap() -> None:
    window = Window()
    window._taken = WRAP - 1
    window.sent()
    window.sent()
    assert window.newly_taken(1) == 2


def test_a_page_cannot_have_taken_what_was_not_sent() -> None:
    window = Window()
    window.sent()
    with pytest.raises(BadMessage):
        window.newly_taken(2)
    with pytest.raises(BadMessage):
        window.newly_taken(WRAP - 1)
    with pytest.raises(BadMessage):
        window.resume(2)


def test_what_did_not_arrive() -> None:
    window = Window()
    for _ in range(5):
        window.sent()
    window.took(window.newly_taken(1), 0.0, 0.0)
    assert window.resume(3) == 2
    assert window.in_flight == 2

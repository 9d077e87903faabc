"""How far another node's clock is ahead of ours, from the four timestamps of a question and its answer.

The timestamps are those that every message carries, so the clock that is measured is the one that stamps messages. Of
several exchanges the fastest is used. Its error is at most half its delay, plus what the two directions differ, which
no exchange can see.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import ringcast

ASK, ANSWER = "clock/{}/ask", "clock/{}/answer"
WAIT_S = 10.0


class Exchange(NamedTuple):
    """Sent and received by our clock, heard and answered by theirs."""

    asked_ns: int
    heard_ns: int
    answered_ns: int
    received_ns: int

    @property
    def ahead_ns(self) -> int:
        return ((self.heard_ns - self.asked_ns) + (self.answered_ns - self.received_ns)) // 2

    @property
    def delay_ns(self) -> int:
        return (self.received_ns - self.asked_ns) - (self.answered_ns - self.heard_ns)


class Ahead(NamedTuple):
    """`offset_ns` is off by at most `bound_ns`, if both ways take equally long."""

    offset_ns: int
    bound_ns: int


def believed(exchanges: Iterable[Exchange]) -> Ahead:
    """Raises ValueError when there is none."""
    best = min(exchanges, key=lambda exchange: exchange.delay_ns)
    return Ahead(best.ahead_ns, max(1, (best.delay_ns + 1) // 2))


class Timekeeper:
    """Answers on the node whose clock is measured; an end of `lab/testbed/worker.py`."""

    def __init__(self, session: ringcast.Session, node: str) -> None:
        self._publisher = session.tag(ANSWER.format(node), codec="json").publisher()
        self._subscriber = session.tag(ASK.format(node), codec="json").subscribe()
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._subscriber.close()
        self._thread.join()
        self._publisher.close()

    def _answer(self) -> None:
        with contextlib.suppress(ringcast.ClosedError):
            for message in self._subscriber:
                heard = {"number": message.data, "asked_ns": message.sent_ns, "heard_ns": message.received_ns}
                self._publisher.send(heard)


def ask(session: ringcast.Session, node: str, count: int = 40) -> Ahead:
    """Measure the clock of a node that has a timekeeper. Raises TimeoutError when it does not answer."""
    publisher = session.tag(ASK.format(node), codec="json").publisher()
    subscriber = session.tag(ANSWER.format(node), codec="json").subscribe()
    with publisher, subscriber:
        publisher.wait_for_subscribers(1, timeout=WAIT_S)
        return believed(_exchange(publisher, subscriber, number) for number in range(count))


def _exchange(publisher: ringcast.Publisher, subscriber: ringcast.Subscriber[Any], number: int) -> Exchange:
    publisher.send(number)
    while True:
        answer = subscriber.recv(timeout=WAIT_S)
        if answer.data["number"] == number:
            heard = answer.data
            return Exchange(heard["asked_ns"], heard["heard_ns"], answer.sent_ns, answer.received_ns)

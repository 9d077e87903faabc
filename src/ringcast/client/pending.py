"""Requests under way: which answer belongs to whom.

Must not know sockets: whoever reads them hands answers in, and says when no more will come.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ringcast.control.answers import Answer, Refused
from ringcast.control.descriptor import Descriptor
from ringcast.control.refusal import refusal
from ringcast.errors import ResourceLimit

Then = Callable[[Any], None]


class Waiting:
    """One request. `then` runs with its answer, before whoever waits is woken."""

    __slots__ = ("answers", "error", "fds", "finished", "orphan", "then")

    def __init__(self, then: Then | None) -> None:
        self.finished = threading.Event()
        self.answers: list[Any] = []
        self.error: Exception | None = None
        self.then = then
        self.fds: list[Descriptor] = []
        """What came beside the answers."""
        self.orphan = False
        """Nobody waits any more: he was interrupted, or out of patience."""


class Pending:
    """All requests of a connection. Thread-safe."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Waiting] = {}

    def add(self, then: Then | None) -> tuple[int, Waiting]:
        """A number for a request, and what to wait for."""
        number, waiting = next(self._numbers), Waiting(then)
        with self._lock:
            self._waiting[number] = waiting
        return number, waiting

    def discard(self, number: int) -> None:
        with self._lock:
            self._waiting.pop(number, None)

    def answered(
        self, answer: Answer, orphaned: Callable[[Answer], None], fds: Sequence[Descriptor] = (),
        limit: ResourceLimit | None = None,
    ) -> None:  # fmt: skip
        """Hand an answer to whoever asked; `orphaned` has it when he no longer waits. Others are ignored. `limit` says
        that there was no room for the descriptors beside it."""
        more = bool(getattr(answer, "more", False))
        with self._lock:
            waiting = self._waiting.get(answer.id) if more else self._waiting.pop(answer.id, None)
        if waiting is None:
            return
        try:
            if isinstance(answer, Refused):
                waiting.error = refusal(answer)
            elif waiting.orphan:
                orphaned(answer)
            elif limit is not None:
                waiting.error = limit
            else:
                waiting.fds.extend(fds)
                waiting.answers.append(answer)
                if waiting.then is not None:
                    waiting.then(answer)
        except Exception as exc:  # the asker is told, not the thread that reads
            waiting.error = exc
        finally:
            if not more:
                waiting.finished.set()

    def failed(self, number: int, error: Exception) -> None:
        """A request could not be sent, after all."""
        with self._lock:
            waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting.error = error
            waiting.finished.set()

    def fail(self, error: Exception) -> None:
        """No more answers will come."""
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
        for one in waiting:
            one.error = error
            one.finished.set()

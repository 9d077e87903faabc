"""A process of a task set: `python -m ringcast.lab.bounds.worker SOCKET`. It does what lines of JSON on its standard
input say, and answers each with a line.

A publisher sleeps until its period begins, computes and sends; a subscriber receives, computes, and notes when the
period began and when it was done. Computing is counted in the thread's own processor time, so that being preempted does
not make it less, and all that the thread does beside is part of it. Both note when a core was taken away from them.
"""

from __future__ import annotations

import gc
import json
import os
import struct
import sys
import time
from typing import Any

import ringcast
from ringcast.lab.bounds.witness import OwnTime, Taken

_TIMES = struct.Struct("<QQ")
"""When the period began, and when the message was sent."""


def spin(until_ns: int) -> None:
    """Until this thread has had so much time."""
    clock = time.thread_time_ns
    while clock() < until_ns:
        pass


def urgent(priority: int) -> None:
    """Raises PermissionError."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def normal() -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def sleep_until(when_ns: int) -> None:
    left = when_ns - time.monotonic_ns()
    if left > 0:
        time.sleep(left * 1e-9)


class Worker:
    def __init__(self, socket: str) -> None:
        self._session = ringcast.connect(socket)
        self._end: Any = None
        self._own = OwnTime()
        self._taken: list[Taken] = []

    def prepare(self, role: str, tag: str) -> None:
        """Raises RingcastError."""
        self._end = None
        if role == "publisher":
            self._end = self._session.tag(tag).publisher()
        elif role == "subscriber":
            self._end = self._session.tag(tag).subscribe()

    def finish(self) -> list[Taken]:
        """When its core was taken away."""
        if self._end is not None:
            self._end.close()
        self._end = None
        taken, self._taken = self._taken, []
        return taken

    def publish(self, period_ns: int, compute_ns: int, size: int, begin_ns: int, count: int, fifo: int) -> None:
        body = bytes(size - _TIMES.size)
        urgent(fifo)
        try:
            for i in range(count):
                nominal = begin_ns + i * period_ns
                self._own.begin()
                used = time.thread_time_ns()
                sleep_until(nominal)
                spin(used + compute_ns)
                self._end.send(_TIMES.pack(nominal, time.monotonic_ns()) + body)
                self._own.notice(nominal, self._taken)
        finally:
            normal()

    def subscribe(self, compute_ns: int, count: int, fifo: int, timeout_s: float) -> list[tuple[int, int]]:
        """(began, done) of every message that came."""
        seen: list[tuple[int, int]] = []
        urgent(fifo)
        try:
            for _ in range(count):
                self._own.begin()
                message = self._end.recv(timeout_s)
                used = time.thread_time_ns()
                began, sent = _TIMES.unpack_from(message.data)
                spin(used + compute_ns)
                seen.append((began, time.monotonic_ns()))
                self._own.notice(sent, self._taken)
        except TimeoutError:
            pass
        finally:
            normal()
        return seen


def main() -> int:
    worker = Worker(sys.argv[1])
    gc.disable()
    for line in sys.stdin:
        what = json.loads(line)
        try:
            answer: Any = {"done": getattr(worker, what.pop("do"))(**what)}
        except (ringcast.RingcastError, PermissionError) as exc:
            answer = {"failed": str(exc)}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

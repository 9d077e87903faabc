"""A process of a task set: `python -m ringcast.lab.bounds.worker SOCKET`. It does what lines of JSON on its standard
input say, and answers each with a line.

A publisher sleeps until its period begins, computes and sends; a subscriber receives, computes, and notes when the
period began and when it was done. Computing is counted in the thread's own processor time, so that being preempted does
not make it less.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

import ringcast


def spin(compute_ns: int) -> None:
    clock = time.thread_time_ns
    end = clock() + compute_ns
    while clock() < end:
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

    def prepare(self, role: str, tag: str) -> None:
        """Raises RingcastError."""
        self._end = None
        if role == "publisher":
            self._end = self._session.tag(tag).publisher()
        elif role == "subscriber":
            self._end = self._session.tag(tag).subscribe()

    def finish(self) -> None:
        if self._end is not None:
            self._end.close()
        self._end = None

    def publish(self, period_ns: int, compute_ns: int, size: int, begin_ns: int, count: int, fifo: int) -> list[int]:
        body = bytes(size - 8)
        urgent(fifo)
        try:
            for i in range(count):
                nominal = begin_ns + i * period_ns
                sleep_until(nominal)
                spin(compute_ns)
                self._end.send(nominal.to_bytes(8, "little") + body)
        finally:
            normal()
        return []

    def subscribe(self, compute_ns: int, count: int, fifo: int, timeout_s: float) -> list[tuple[int, int]]:
        """(began, done) of every message that came."""
        seen: list[tuple[int, int]] = []
        urgent(fifo)
        try:
            for _ in range(count):
                message = self._end.recv(timeout_s)
                spin(compute_ns)
                seen.append((int.from_bytes(message.data[:8], "little"), time.monotonic_ns()))
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

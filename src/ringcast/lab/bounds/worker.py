"""A process of a task set: `python -m ringcast.lab.bounds.worker SOCKET`. It does what lines of JSON on its standard
input say, and answers each with a line.

A publisher sleeps until its period begins, computes and sends; a subscriber receives, computes, and notes when the
period began and when it was done. Computing is counted in the thread's own processor time, so that being preempted does
not make it less, and all that the thread does beside is part of it: also reading the kernel's counters, which say how
long the thread waited behind others. Both note when a core was taken away from them.
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
from ringcast.lab.bounds.witness import LATE_NS, OwnTime, Taken

_TIMES = struct.Struct("<QQQ")
"""When the period began, when the message was sent, and how long its publisher waited behind others."""
READING_NS = 20_000
"""Before a thread is done with computing it reads its counters; what is left of its time is computed afterwards."""


def spin(until_ns: int, taken: list[Taken]) -> None:
    """Until this thread has had so much time. Notes when its core stood still, though the kernel counts that as its
    time: whoever was to run there next waited as long."""
    clock = time.thread_time_ns
    now = clock()
    while now < until_ns:
        before, now = now, clock()
        if now - before > LATE_NS:
            done = time.monotonic_ns()
            taken.append((done - (now - before), done))


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

    def prepare(self, role: str, tag: str, transport: str = "") -> None:
        """Raises RingcastError."""
        self._end = None
        opened = self._session.tag(tag, prefault=True)  # as rings of channels with a schedule are
        if role == "publisher":
            self._end = opened.publisher()
        elif role == "subscriber":
            self._end = opened.subscribe(transport=transport)

    def finish(self) -> list[Taken]:
        """When its core was taken away."""
        if self._end is not None:
            self._end.close()
        self._end = None
        taken, self._taken = self._taken, []
        return taken

    def publish(
        self, period_ns: int, compute_ns: int, size: int, begin_ns: int, count: int, fifo: int, until_ns: int
    ) -> None:
        body = bytes(size - _TIMES.size)
        urgent(fifo)
        try:
            for i in range(count):
                nominal = begin_ns + i * period_ns
                used = time.thread_time_ns()
                self._own.begin()
                sleep_until(nominal)
                spin(used + compute_ns - READING_NS, self._taken)
                waited = self._own.notice(nominal, self._taken)
                spin(used + compute_ns, self._taken)
                self._end.send(_TIMES.pack(nominal, time.monotonic_ns(), waited) + body)
            sleep_until(until_ns)
        finally:
            normal()

    def subscribe(self, compute_ns: int, count: int, fifo: int, until_ns: int) -> list[tuple[int, ...]]:
        """Of every message that came: when its period began, it was sent, received and done; how long its publisher
        waited behind others, and its subscriber. Nobody leaves before all are done: ending is in no bound."""
        seen: list[tuple[int, ...]] = []
        urgent(fifo)
        try:
            for _ in range(count):
                self._own.begin()
                message = self._end.recv(max(0.0, (until_ns - time.monotonic_ns()) * 1e-9))
                used, received = time.thread_time_ns(), time.monotonic_ns()
                began, sent, before = _TIMES.unpack_from(message.data)
                spin(used + compute_ns - READING_NS, self._taken)
                waited = self._own.notice(sent, self._taken)
                spin(used + compute_ns, self._taken)
                seen.append((began, sent, received, time.monotonic_ns(), before, waited))
            sleep_until(until_ns)
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

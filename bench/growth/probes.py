"""What is measured at every size: a message, subscribing, finding a tag, connecting, memory, an idle daemon."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import ringcast
from growth.curve import Curve, Curves
from harness.machine import cpu_ns
from harness.rows import Row

US = 1e6
KIB = 1024
PATIENCE_S = 300.0
IDLE = 0.1
"""Percent of a core: less is not measurable."""
Found = Iterator[Curve | Row]


def best(seconds: Callable[[], float], tries: int = 7) -> float:
    """The lowest: what else the machine does only adds."""
    return min(seconds() for _ in range(tries))


def per_message(pub: ringcast.Publisher[bytes], sub: ringcast.Subscriber[bytes], count: int = 2000) -> float:
    """Seconds to send and receive one, in one thread: nobody sleeps and nobody is woken."""
    begin = time.perf_counter()
    for _ in range(count):
        pub.send(b"x" * 64)
        sub.recv_nowait()
    return (time.perf_counter() - begin) / count


def median_of(call: Callable[[], object], tries: int, undo: Callable[..., object] = lambda _: None) -> float:
    """Seconds of the call; `undo` is given what it returned, and not timed."""
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        made = call()
        taken.append(time.perf_counter() - begin)
        undo(made)
    return statistics.median(taken)


def idle_percent(pids: Sequence[int], seconds: float) -> float:
    time.sleep(1.0)
    before, begin = sum(map(cpu_ns, pids)), time.monotonic_ns()
    time.sleep(seconds)
    return 100 * (sum(map(cpu_ns, pids)) - before) / (time.monotonic_ns() - begin)


def memory_bytes(pid: int) -> int:
    """What a process has for itself and its share of what is shared."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def own_bytes(pid: int) -> int:
    """What a process has for itself alone, which does not depend on who shares the rest."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


class OwnMemory:
    """What a process takes for itself for each thing more. For the first ones it had room already: parts of pages of
    things alike that were there before."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = (0, own_bytes(pid))

    def each(self, n: int) -> float:
        """KiB, of those since it was asked last; `n` are there now."""
        (then, bytes_then), self._before = self._before, (n, own_bytes(self._pid))
        return max((self._before[1] - bytes_then) / (n - then) / KIB, 0.1)


class Probe:
    """A tag with a publisher and a subscriber of its own, beside whatever else the daemon has."""

    def __init__(self, path: str, session: ringcast.Session) -> None:
        self._path, self._session = path, session
        self._tag = session.tag("probe", depth=64, capacity_bytes=64 * KIB)
        self._pub, self._sub = self._tag.publisher(), self._tag.subscribe()

    def measure(self, curves: Curves, n: int, *, message: bool = True) -> None:
        """What must not depend on what else is there, p50."""
        if message:
            curves.add(n, "cost per message", US * best(self.message), "us", "constant")
        curves.add(n, "subscribe to a tag", US * self.subscribe(), "us", "constant")
        curves.add(n, "find a tag", US * self.find(), "us", "constant")
        curves.add(n, "connect", US * self.connect(), "us", "constant")

    def message(self) -> float:
        return per_message(self._pub, self._sub)

    def subscribe(self, tries: int = 51) -> float:
        return median_of(lambda: self._session.subscribe("probe"), tries, lambda sub: sub.close())

    def find(self, tries: int = 101) -> float:
        return median_of(lambda: self._session.tag("probe", create=False), tries)

    def connect(self, tries: int = 31) -> float:
        return median_of(lambda: ringcast.connect(self._path, start=False), tries, lambda session: session.close())

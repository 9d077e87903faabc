"""What a peer must be able to do to stand in a benchmark.

A peer opens *ends*; each end lives in a process of its own and is driven by `worker.py`, which calls the end's methods
by name. The loops that are timed live here, so that every peer runs the same ones; an adapter overrides a loop only
where its library has another natural shape (a callback, an event loop), never to skip work: each side always has the
payload in hand as Python bytes, or as a buffer where the peer has views.

Invariant: no end waits for ever on what may be lost. A lossy peer's `recv` raises `TimeoutError`.
"""

from __future__ import annotations

import os
import resource
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

PAYLOAD = bytes(range(64))
STOP = b"stop".ljust(len(PAYLOAD), b"\0")
"""As long as the payload, for peers whose types have a fixed length."""
IDLE_S = 3.0
"""A sink that hears nothing for this long takes the rest for lost."""


LOOPBACK = "127.0.0.1"
PATIENCE_NS = 50_000_000
"""How long a paced source waits for its sinks to sleep again."""


class NotOffered(Exception):
    """The peer has no such thing; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where the ends of one measurement meet: private to it, so that runs beside each other never hear one another."""

    folder: Path
    port: int
    token: str
    host: str = LOOPBACK
    """Where the first end listens. Another than loopback: the ends are on different nodes, and share no memory."""

    @property
    def remote(self) -> bool:
        return self.host != LOOPBACK


def wait_for(condition: Callable[[], object], timeout_s: float) -> None:
    """Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the other side did not appear")
        time.sleep(0.005)


class End:
    """One process's part in a measurement."""

    def match(self, others: int, timeout_s: float) -> None:
        """Return when messages can no longer be missed by the other `others` ends; peers that queue need nothing.

        Raises:
            TimeoutError: the others did not appear.
        """

    def store_us(self) -> float:
        """What writing a mebibyte takes this core now, 128 KiB of this process's own over and over: microseconds.

        It does not depend on any peer, nor on the other end. Where it rises by half, the core is shared: a hypervisor
        has its other hyperthread compute for another machine.
        """
        own, clock = np.empty(16384, dtype=np.uint64), time.perf_counter_ns
        taken = []
        for _ in range(31):
            start = clock()
            for value in range(8):
                own.fill(value)
            taken.append(clock() - start)
        return sorted(taken)[len(taken) // 2] / 1e3

    def close(self) -> None:
        """Release everything, shared memory included."""


class Link(End):
    """One end of a two-way exchange. Subclasses give `send` and `recv`, both blocking."""

    send: Callable[[bytes], object]
    recv: Callable[[], bytes]

    def ping(self, count: int, limit_s: float) -> list[int]:
        """Nanoseconds of up to `count` round trips, ending early after `limit_s`."""
        send, recv, clock = self.send, self.recv, time.perf_counter_ns
        samples = array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            send(PAYLOAD)
            recv()
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    def pong(self) -> None:
        """Echo until `STOP` comes; the runner's deadline bounds it."""
        send = self.send
        for data in iter(self.recv, STOP):
            send(data)

    def stop(self) -> None:
        """End the other side's `pong`."""
        self.send(STOP)


class Asking(Link):
    """One end of questions and answers: "ping" asks, "pong" serves. Subclasses give `ask`, or `serve`, which returns
    when it was asked `STOP`; the answer to a question is the question."""

    ask: Callable[[bytes], bytes]

    def ping(self, count: int, limit_s: float) -> list[int]:
        ask, clock = self.ask, time.perf_counter_ns
        samples = array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            ask(PAYLOAD)
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    def pong(self) -> None:
        self.serve()

    def serve(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.ask(STOP)


def asleep(state: int) -> bool:
    """Whether the process behind an open `/proc/PID/stat` sleeps: the letter after its name in brackets."""
    return os.pread(state, 256, 0).rpartition(b")")[2][1:2] == b"S"


class Source(End):
    """The sending end of a stream. Subclasses give `send`; it blocks rather than lose, where the peer can."""

    send: Callable[[bytes], object]

    def flush(self) -> None:
        """Hand over what the library still holds back."""

    def pump(self, count: int) -> None:
        """One call per message."""
        send = self.send
        for _ in repeat(None, count):
            send(PAYLOAD)
        self.flush()

    def pump_many(self, count: int, batch: int) -> None:
        """`count` messages, `batch` to a call."""
        raise NotOffered("no call that sends many messages")

    def pump_large(self, count: int, size: int) -> None:
        """`count` messages of `size` bytes, every byte written anew. Here: into private memory, then sent."""
        body = np.empty(size // 8, dtype=np.uint64)
        for value in range(count):
            body.fill(value)
            self.send_large(body)
        self.flush()

    def send_large(self, body: np.ndarray[Any, Any]) -> None:
        """Send one large message; the default copies, for peers that take bytes only."""
        self.send(body.tobytes())

    def pace(self, count: int, gap_ns: int, sleepers: list[int]) -> list[int]:
        """Nanoseconds of each of `count` sends, `gap_ns` apart and not before all `sleepers` (process ids) sleep again.

        The gap is spun, not slept: a sleeping core would add its own wake-up to the first thing it does.
        """
        send, clock = self.send, time.perf_counter_ns
        samples = array("q")
        states = [os.open(f"/proc/{pid}/stat", os.O_RDONLY) for pid in sleepers]
        for _ in repeat(None, count):
            due = clock() + gap_ns
            while clock() < due:
                pass
            late = due + PATIENCE_NS
            while not all(asleep(state) for state in states) and clock() < late:
                pass
            start = clock()
            send(PAYLOAD)
            samples.append(clock() - start)
        for state in states:
            os.close(state)
        self.flush()
        return samples.tolist()


class Sink(End):
    """The receiving end of a stream. Subclasses give `recv`, which blocks."""

    recv: Callable[[], Any]

    def expect(self, count: int, large: bool = False) -> None:
        """What the next `drain` is for, told before anything is sent: sinks that count in a callback begin to."""

    def drain(self, count: int) -> dict[str, int]:
        """Receive `count` messages; `first_ns` and `last_ns` are when the first and the last were in hand."""
        recv, clock = self.recv, time.perf_counter_ns
        received, first = 0, 0
        try:
            recv()
            first = clock()
            # Counted by enumeration: adding one per message would be timed with it.
            for received in range(1, count):  # noqa: B007 - read after the loop
                recv()
            received = count
        except TimeoutError:
            pass
        return {"first_ns": first, "last_ns": clock(), "received": received}

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        """`drain` with calls that return up to `batch` messages."""
        raise NotOffered("no call that receives many messages")

    def drain_large(self, count: int, size: int) -> dict[str, int]:
        """`drain` of large messages, every byte read; `total` is the sum of all words, which proves it."""
        clock = time.perf_counter_ns
        received, first, total = 0, 0, 0
        try:
            for received in range(1, count + 1):
                total += self.sum_large()
                if received == 1:
                    first = clock()
        except TimeoutError:
            received -= 1
        return {"first_ns": first, "last_ns": clock(), "received": received, "total": total}

    def sum_large(self) -> int:
        """Receive one large message and add up its words, in place where the peer has views."""
        return int(np.frombuffer(self.recv(), dtype=np.uint64).sum())

    def listen(self, count: int) -> dict[str, int]:
        """`drain`, telling how often this process went to sleep: the proof that it waited for each message."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        seen = self.drain(count)
        seen["sleeps"] = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
        return seen

    def rest(self) -> None:
        """Wait for one message, however long it takes."""
        while self.drain(1)["received"] == 0:
            pass

    def toil(self, seconds: float) -> None:
        """Hold the subscription open and compute, never receiving."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass


class Keeper(End):
    """Publishes, and keeps a history that others pull from."""

    def keep(self, count: int) -> int:
        """Publish `count` messages and return the sequence number of the last."""
        raise NotOffered("no history")

    def answer(self, seconds: float) -> None:
        """Stay reachable for pulls; peers that answer on threads of their own only wait."""
        time.sleep(seconds)


class Puller(End):
    """Reads a history. Subclasses give `latest`, and `at` where messages can be had by number."""

    latest: Callable[[], bytes]

    def at(self, seq: int) -> bytes:
        raise NotOffered("messages have no number to ask for")

    def pull_latest(self, count: int) -> list[int]:
        """Nanoseconds of each of `count` pulls of the newest message."""
        latest, clock = self.latest, time.perf_counter_ns
        samples = array("q")
        for _ in repeat(None, count):
            start = clock()
            latest()
            samples.append(clock() - start)
        return samples.tolist()

    def pull_at(self, count: int, seq: int) -> list[int]:
        """Nanoseconds of each of `count` pulls by number, walking back from `seq`."""
        at, clock = self.at, time.perf_counter_ns
        samples = array("q")
        for back in range(count):
            wanted = seq - back % 64
            start = clock()
            at(wanted)
            samples.append(clock() - start)
        return samples.tolist()


class Peer:
    """A library, or one way of using it. `offers` names what it can do; the runner asks for nothing else.

    The words: `block`, `poll`, `asyncio` (ways a link waits); `ask` and `ask-network` (a link that asks and answers, by
    the fastest way, and by one that could be between nodes); `stream`, `batch`, `large` (throughput); `fan-out`;
    `pull` and `pull-at` (the latest, and by number); `network` (its ends may be on different nodes); `crowd` (many
    topics in one process).
    """

    name: str
    offers: frozenset[str]
    serves = False
    """Whether it needs a process between the ends."""
    leftovers: tuple[str, ...] = ()
    """Patterns of the names that a killed process leaves in /dev/shm."""

    def version(self) -> str:
        raise NotImplementedError

    def server(self, place: Place) -> list[str]:
        """The command that serves this place, when `serves`."""
        raise NotImplementedError

    def served(self, place: Place) -> bool:
        """Whether the server answers already."""
        raise NotImplementedError

    def link(self, place: Place, side: str, waits: str) -> Link:
        """`side` is "ping" or "pong"; `waits` one of the ways in `offers`."""
        raise NotOffered("no round trip")

    def source(self, place: Place, fan_out: bool) -> Source:
        """`fan_out`: every sink gets every message, and may miss some; otherwise there is one sink and it gets all."""
        raise NotOffered("no stream")

    def sink(self, place: Place, fan_out: bool) -> Sink:
        """The other end of `source`."""
        raise NotOffered("no stream")

    def keeper(self, place: Place) -> Keeper:
        """The end that holds a history."""
        raise NotOffered("no history")

    def puller(self, place: Place) -> Puller:
        """The end that reads it."""
        raise NotOffered("no history")

    def crowd(self, place: Place) -> End:
        """An `ends.crowd.Crowd`."""
        raise NotOffered("no measure of many topics")

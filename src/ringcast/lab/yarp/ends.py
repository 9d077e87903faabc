"""The processes of paper 003's Figure 4: a channel whose round trip is measured, and one that makes load.

Threads that receive the measured messages take the schedule of their channel. The load comes in bursts, so that at any
share of the link there are times when it is full: a smooth load below 100 % would never make anybody wait.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from typing import Any

import ringcast
from ringcast.transport.urgent import scheduling

WAIT_S = 10.0
LOST_AFTER_S = 1.0
PAUSE_S = (0.001, 0.007)
"""Between two round trips, at random: not in step with the bursts."""
LEFT_OUT_S = 0.0003
"""After a message that a proxy leaves out."""
WARM_UP = 5
"""Round trips before the first that counts: a channel that was set just now has new threads and sockets."""
_NUMBER = struct.Struct("<Q")


class Ping:
    """Publishes on `there`, receives on `back`. With `every` above 1 a proxy leaves the others out: those are sent
    before a round trip is timed, and are done with by then."""

    def __init__(self, session: ringcast.Session, there: str, back: str, transport: str, every: int = 1) -> None:
        self._every = every
        self._publisher = session.tag(there).publisher()
        self._subscriber = session.tag(back).subscribe(transport=transport, reliable=transport == "tcp")
        self._number = 0

    def match(self) -> None:
        """Raises TimeoutError."""
        self._publisher.wait_for_subscribers(1, timeout=WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while self._round_trip(_NUMBER.size) is None:
            if time.monotonic() > deadline:
                raise TimeoutError("no message came back")

    def ping(self, count: int, size: int, seed: int) -> dict[str, Any]:
        """Nanoseconds of `count` round trips with `size` bytes, how many did not come back, and the schedule that the
        kernel has of the thread that sends and receives them."""
        self._subscriber.take_schedule()
        pauses = random.Random(seed)
        taken = []
        for number in range(WARM_UP + count):
            time.sleep(pauses.uniform(*PAUSE_S))
            took = self._round_trip(size)
            if number >= WARM_UP:
                taken.append(took)
        schedule = scheduling.of(threading.get_native_id())
        return {"taken_ns": [ns for ns in taken if ns is not None], "lost": taken.count(None), "schedule": schedule}

    def _round_trip(self, size: int) -> int | None:
        self._number += 1
        body = _NUMBER.pack(self._number).ljust(size, b"\0")
        while self._publisher.next_seq % self._every:
            self._publisher.send(body)
            time.sleep(LEFT_OUT_S)
        start = time.perf_counter_ns()
        self._publisher.send(body)
        try:
            while True:
                data: Any = self._subscriber.recv(timeout=LOST_AFTER_S).data
                if _NUMBER.unpack_from(data)[0] == self._number:
                    return time.perf_counter_ns() - start
        except TimeoutError:
            return None

    def close(self) -> None:
        self._publisher.close()
        self._subscriber.close()


class Echo:
    """Sends everything that comes on `there` back on `back`. `at` is where a proxy passes every n-th message only."""

    def __init__(
        self, session: ringcast.Session, there: str, back: str, transport: str, every: int = 1, at: str = "publisher"
    ) -> None:
        self._publisher = session.tag(back).publisher()
        self._subscriber = session.tag(there).subscribe(
            transport=transport, reliable=transport == "tcp", every=every, at=at
        )
        self._thread = 0
        self._service = self._subscriber.on_message(self._answer)

    def _answer(self, message: ringcast.Message[Any]) -> None:
        self._publisher.send(message.data)
        self._thread = self._thread or threading.get_native_id()

    def schedule(self) -> str:
        """What the kernel has of the thread that answers."""
        return scheduling.of(self._thread)

    def close(self) -> None:
        self._service.close()
        self._subscriber.close()
        self._publisher.close()


class Load:
    """Sends bursts on `tag`: of each `period_s`, as many messages as make that share of the link, back to back."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._publisher = session.tag(tag, depth=8192, capacity_bytes=16 << 20).publisher(on_slow="skip")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def match(self) -> None:
        """Raises TimeoutError."""
        self._publisher.wait_for_subscribers(1, timeout=WAIT_S)

    def begin(self, messages: int, size: int, period_s: float) -> None:
        """`messages` of `size` bytes in each burst."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=([bytes(size)] * messages, period_s), daemon=True)
        self._thread.start()

    def end(self) -> int:
        """How many messages were sent so far."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        return self._publisher.next_seq

    def _run(self, burst: list[bytes], period_s: float) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._publisher.send_many(burst)
            due += period_s

    def close(self) -> None:
        self.end()
        self._publisher.close()


class Sink:
    """Receives the load and counts it."""

    def __init__(self, session: ringcast.Session, tag: str, transport: str) -> None:
        self._subscriber = session.tag(tag, depth=8192, capacity_bytes=16 << 20).subscribe(transport=transport)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._subscriber.recv_many(256)
        except ringcast.ClosedError:
            return

    def received(self) -> dict[str, int]:
        return self._subscriber.counters()

    def close(self) -> None:
        self._subscriber.close()
        self._thread.join()


class Steady:
    """Sends small numbered messages all the time, for whoever counts what is lost while a priority is set."""

    def __init__(self, session: ringcast.Session, tag: str, period_s: float) -> None:
        self._publisher = session.tag(tag, depth=65536).publisher()
        self._period_s = period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._publisher.send(b"x")

    def end(self) -> int:
        """How many were sent."""
        self._stop.set()
        self._thread.join()
        return self._publisher.next_seq

    def close(self) -> None:
        self.end()
        self._publisher.close()


class Flood:
    """Opens and destroys tags all the time, and lists them: work for the daemon, which tells all others of it."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._session = session
        self._tag = tag
        self._done = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._session.tag(f"{self._tag}/{self._done % 50}").destroy(force=True)
            self._session.tags("**")
            self._done += 1

    def end(self) -> int:
        """How many tags were opened and destroyed since the last time."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        done, self._done = self._done, 0
        return done

    def close(self) -> None:
        self.end()

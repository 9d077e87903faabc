"""The ends of the papers' round trip: a message on one tag, answered on a second tag, timed where it began.

The subscription on the forward tag may go through a proxy (`at`): with factor 1, which passes everything, with a factor
(`every`), when messages that it leaves out are sent before the one that is timed, or at a `size`, when messages are
arrays that have that size already. The way back has no proxy. `Listener` is a subscriber that does not answer. `Relay`
is a proxy in a process of its own, for a publisher and a subscriber on one node: there is no channel between them that
could have a proxy.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from typing import Any

import ringcast

FRAME_BYTES = 64
WAIT_S = 10.0
"""For ends to find each other. Round trips have no time limit here, because it would be timed with them; the process
that asks for them has one."""


def frames_tag(session: ringcast.Session, name: str, frames: bool) -> ringcast.Tag[Any]:
    return session.tag(name, codec="numpy") if frames else session.tag(name)


def square(size: int) -> Any:
    """A square array of `size` bytes."""
    import numpy as np

    side = math.isqrt(size)
    return np.zeros((side, side), dtype=np.uint8)


class Ping:
    """Publishes on `there`, subscribes to `back`."""

    def __init__(
        self, session: ringcast.Session, there: str, back: str, transport: str = "", frames: bool = False
    ) -> None:
        self._publisher = frames_tag(session, there, frames).publisher()
        self._frames = frames
        self._next = 0
        self._subscriber = session.tag(back).subscribe(transport=transport)

    def match(self, subscribers: int) -> None:
        """Return when that many subscribe and one message has come back. Raises TimeoutError."""
        self._publisher.wait_for_subscribers(subscribers, timeout=WAIT_S)
        self.ping(1, FRAME_BYTES if self._frames else 1)

    def ping(self, count: int, size: int, every: int = 1, pause_s: float = 0.0) -> list[int]:
        """Nanoseconds of each of `count` round trips with `size` bytes, of messages whose number is a multiple of
        `every`; what stands between them is sent before, and then there is a pause. Raises ValueError for other bytes.
        """
        send, recv, clock = self._publisher.send, self._subscriber.recv, time.perf_counter_ns
        body = square(size) if self._frames else bytes(size)
        samples = array("q", bytes(8 * count))
        for at in range(count):
            while self._next % every:
                self._next = send(body) + 1
            if pause_s:
                time.sleep(pause_s)
            start = clock()
            self._next = send(body) + 1
            data: Any = recv().data
            samples[at] = clock() - start
            if len(data) != size:
                raise ValueError(f"{len(data)} bytes came back and {size} were sent")
        return samples.tolist()

    def close(self) -> None:
        self._publisher.close()
        self._subscriber.close()


class _Loop:
    """Waits for messages on a thread, which ends when the subscriber is closed."""

    def __init__(self, subscriber: ringcast.Subscriber) -> None:
        self._subscriber = subscriber
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop()
        except ringcast.ClosedError:
            pass

    def loop(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._subscriber.close()
        self._thread.join()


class Echo(_Loop):
    """Sends everything that comes on `there` back on `back`."""

    def __init__(
        self, session: ringcast.Session, there: str, back: str, at: str = "publisher", transport: str = "",
        every: int = 1, frames: bool = False, side: int = 0,
    ) -> None:  # fmt: skip
        self._publisher = session.tag(back).publisher()
        tag, size = frames_tag(session, there, frames), (side, side) if side else None
        super().__init__(tag.subscribe(every=every, at=at, transport=transport, size=size))

    def loop(self) -> None:
        recv, send = self._subscriber.recv, self._publisher.send
        while True:
            send(recv().data)

    def match(self) -> None:
        """Return when the other end subscribes. Raises TimeoutError."""
        self._publisher.wait_for_subscribers(1, timeout=WAIT_S)

    def close(self) -> None:
        super().close()
        self._publisher.close()


class Listener(_Loop):
    """Receives and does not answer."""

    def __init__(self, session: ringcast.Session, there: str, at: str = "publisher", transport: str = "") -> None:
        super().__init__(session.tag(there).subscribe(every=1, at=at, transport=transport))

    def loop(self) -> None:
        recv = self._subscriber.recv
        while True:
            recv().data  # noqa: B018 - taking the payload is part of receiving


class Relay(_Loop):
    """Publishes on `onward` what comes on `there`."""

    def __init__(self, session: ringcast.Session, there: str, onward: str) -> None:
        self._publisher = session.tag(onward).publisher()
        super().__init__(session.tag(there).subscribe())

    def loop(self) -> None:
        recv, send = self._subscriber.recv, self._publisher.send
        while True:
            send(recv().data)

    def close(self) -> None:
        super().close()
        self._publisher.close()

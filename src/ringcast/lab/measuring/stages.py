"""Ends that measure the parts of a message's delay: what `send` costs, when it was received, what `recv` costs."""

from __future__ import annotations

import time
from array import array
from itertools import repeat

import ringcast


class Pacer:
    """Publishes on `tag`, with or without subscribers."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._publisher = session.tag(tag).publisher()

    def send(self, count: int, gap_ns: int, size: int) -> list[int]:
        """Nanoseconds of each of `count` calls of `send`, `gap_ns` apart.

        The gap is a busy loop: receivers should sleep again before the next message, but this core should not.
        """
        send, clock = self._publisher.send, time.perf_counter_ns
        body = bytes(size)
        samples = array("q")
        for _ in repeat(None, count):
            due = clock() + gap_ns
            while clock() < due:
                pass
            start = clock()
            send(body)
            samples.append(clock() - start)
        return samples.tolist()

    def match(self, subscribers: int) -> None:
        """Raises TimeoutError."""
        self._publisher.wait_for_subscribers(subscribers, timeout=10.0)

    def close(self) -> None:
        self._publisher.close()


class Reader:
    """Subscribes to `tag`, and receives on command."""

    def __init__(self, session: ringcast.Session, tag: str, at: str = "publisher") -> None:
        self._subscriber = session.tag(tag).subscribe(every=1, at=at)

    def follow(self, count: int) -> dict[str, int]:
        """Receive `count` messages as they come; returns when the last was sent and received. Raises TimeoutError."""
        for _ in repeat(None, count):
            message = self._subscriber.recv(10.0)
        return {"sent_ns": message.sent_ns, "received_ns": message.received_ns, "seq": message.seq}

    def take(self, count: int) -> list[int]:
        """Nanoseconds of each of `count` calls of `recv`, for messages that have arrived. Raises WouldBlock."""
        recv, clock = self._subscriber.recv_nowait, time.perf_counter_ns
        samples = array("q")
        for _ in repeat(None, count):
            start = clock()
            recv().data  # noqa: B018 - taking the payload is part of receiving
            samples.append(clock() - start)
        return samples.tolist()

    def skip(self) -> None:
        """Forget what has not been received."""
        try:
            while True:
                self._subscriber.recv_nowait()
        except ringcast.WouldBlock:
            pass

    def close(self) -> None:
        self._subscriber.close()

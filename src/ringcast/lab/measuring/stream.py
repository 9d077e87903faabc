"""The ends of a stream that must be complete: as fast as possible, 64 bytes or a mebibyte at a time.

Their commands are those of the benchmarks' ends (`bench/ends/interface.py`), so that a peer's source and sink are asked
the same questions: `pump` and `drain`, `pump_large` and `drain_large`. Time runs from the first to the last message
received.
"""

from __future__ import annotations

import time
from itertools import repeat
from typing import Any

import numpy as np

import ringcast

MAX_WAIT_S = 10.0
SMALL: dict[str, Any] = {"max_wait_s": MAX_WAIT_S}
LARGE: dict[str, Any] = {"depth": 64, "capacity_bytes": 8 << 20, "max_wait_s": MAX_WAIT_S}
PAYLOAD = bytes(range(64))


class Source:
    """Publishes on `tag`, and large messages on `tag`/large."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._small = session.tag(tag, **SMALL).publisher()
        self._large = session.tag(f"{tag}/large", **LARGE).publisher()

    def match(self) -> None:
        """Raises TimeoutError."""
        for publisher in (self._small, self._large):
            publisher.wait_for_subscribers(1, timeout=MAX_WAIT_S)

    def pump(self, count: int) -> None:
        """One call per message. Raises SlowSubscriber."""
        send = self._small.send
        for _ in repeat(None, count):
            send(PAYLOAD)

    def pump_many(self, count: int, batch: int) -> None:
        """`batch` to a call. Raises SlowSubscriber."""
        send_many, bodies = self._small.send_many, [PAYLOAD] * batch
        for _ in repeat(None, count // batch):
            send_many(bodies)

    def pump_large(self, count: int, size: int) -> None:
        """Every byte written anew, in the ring itself. Raises SlowSubscriber."""
        reserve = self._large.reserve
        for value in range(count):
            room = reserve(size)
            np.frombuffer(memoryview(room), dtype=np.uint64).fill(value)
            room.commit()

    def close(self) -> None:
        self._small.close()
        self._large.close()


class Sink:
    """Subscribes reliably to what a `Source` publishes."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._small = session.tag(tag, **SMALL).subscribe(reliable=True)
        self._large = session.tag(f"{tag}/large", **LARGE).subscribe(reliable=True)

    def drain(self, count: int) -> dict[str, int]:
        """Receive `count` messages. Sequence numbers have no gaps: the first and the last prove that none is missing.

        Raises TimeoutError.
        """
        recv, clock = self._small.recv, time.perf_counter_ns
        message = recv(MAX_WAIT_S)
        first_ns, first = clock(), message.seq
        for _ in repeat(None, count - 1):
            message = recv()
            message.data  # noqa: B018 - taking the payload is part of receiving
        return {"first_ns": first_ns, "last_ns": clock(), "received": 2 * count - (message.seq - first + 1)}

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        """The same with calls that return up to `batch`. Raises TimeoutError."""
        recv_many, clock = self._small.recv_many, time.perf_counter_ns
        messages = recv_many(batch)
        first_ns, first, received = clock(), messages[0].seq, len(messages)
        while received < count:
            messages = recv_many(batch)
            received += len(messages)
        span = messages[-1].seq - first + 1
        return {"first_ns": first_ns, "last_ns": clock(), "received": 2 * received - span}

    def drain_large(self, count: int, size: int) -> dict[str, int]:
        """Every byte read where it lies; `total` is the sum of all words, which proves it. Raises RuntimeError."""
        recv, clock = self._large.recv, time.perf_counter_ns
        first_ns = total = 0
        for number in range(count):
            message = recv(copy=False)
            total += int(np.frombuffer(message.data, dtype=np.uint64).sum())
            if not message.valid:
                raise RuntimeError("a message was overwritten while it was read")
            first_ns = clock() if number == 0 else first_ns
        return {"first_ns": first_ns, "last_ns": clock(), "received": count, "total": total}

    def close(self) -> None:
        self._small.close()
        self._large.close()

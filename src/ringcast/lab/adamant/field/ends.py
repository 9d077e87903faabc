"""The ends of a stream under loss: one publishes at a steady rate, the other records how long each update took.

Latency is from `send` to the return of `recv`, by the one clock of the machine that all nodes share.
"""

from __future__ import annotations

import time
from array import array

import ringcast

WAIT_S = 10.0
DEPTH = 4096
"""Deep enough that what a receiver may still request is not overwritten."""


class SteadyPublisher:
    """Publishes on `tag`."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        self._publisher = session.tag(tag, depth=DEPTH).publisher()

    def match(self, subscribers: int) -> None:
        """Raises TimeoutError."""
        self._publisher.wait_for_subscribers(subscribers, timeout=WAIT_S)

    def publish(self, count: int, rate_hz: float, size: int) -> int:
        """Send `count` updates, each when it is due; returns by how many nanoseconds the latest one was late."""
        send, clock, gap_ns = self._publisher.send, time.monotonic_ns, round(1e9 / rate_hz)
        body, begun, latest = bytes(size), time.monotonic_ns(), 0
        for number in range(count):
            due = begun + number * gap_ns
            if (left := due - clock()) > 0:
                time.sleep(left * 1e-9)
            send(body)
            latest = max(latest, clock() - due)
        return latest

    def close(self) -> None:
        self._publisher.close()


class LatencyRecorder:
    """Subscribes to `tag` by a transport."""

    def __init__(self, session: ringcast.Session, tag: str, transport: str, ordered: bool = True) -> None:
        self._subscriber = session.tag(tag, depth=DEPTH).subscribe(transport=transport, ordered=ordered)
        self._ordered = ordered

    def record(self, last: int, limit_s: float) -> dict[str, list[int]]:
        """Everything up to the update numbered `last`, or until `limit_s` have passed.

        `seqs`, the `latencies_ns` of them, and `lost` in all as the messages said it.
        """
        seqs, latencies, lost = array("q"), array("q"), 0
        deadline = time.monotonic() + limit_s
        while (left := deadline - time.monotonic()) > 0:
            try:
                message = self._subscriber.recv(left)
            except TimeoutError:
                break
            lost += message.lost
            seqs.append(message.seq)
            latencies.append(message.received_ns - message.sent_ns)
            # Without an order, others may come after the last one.
            if message.seq >= last if self._ordered else len(seqs) > last:
                break
        return {"seqs": seqs.tolist(), "latencies_ns": latencies.tolist(), "lost": [lost]}

    def close(self) -> None:
        self._subscriber.close()

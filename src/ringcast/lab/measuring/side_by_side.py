"""The ends of several streams side by side: one process publishes all of them, one on each node records them. The
publishing one may do so from several nodes, through a session with each one's daemon: so streams that leave by lines of
their own are still sent evenly apart.

Latency is from `send` to the return of `recv`, by the one clock of the machine that all nodes share.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import ringcast

WAIT_S = 10.0
DEPTH = 4096
ROUNDS, SEED = 10, 1
"""Messages of each tag that are sent in the same order, and what the next order is drawn by."""
_SLICE_S = 0.2
"""How soon a thread that waits for a message sees that it is to end."""


class SideBySide:
    """Publishes on several tags, each from the node whose daemon has its socket in `homes`, or else from this one."""

    def __init__(
        self, session: ringcast.Session, tags: Sequence[str], homes: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        homes = homes or {}
        self._sessions = {
            socket: ringcast.connect(socket, start=False, program="ringcast lab") for socket in {*homes.values()}
        }
        at = {tag: self._sessions[homes[tag]] if tag in homes else session for tag in tags}
        self._publishers = {tag: at[tag].tag(tag, depth=DEPTH).publisher() for tag in tags}
        self._sent = dict.fromkeys(tags, 0)

    def match(self, subscribers: int) -> None:
        """Raises TimeoutError."""
        for publisher in self._publishers.values():
            publisher.wait_for_subscribers(subscribers, timeout=WAIT_S)

    def publish(self, tags: Sequence[str], count: int, rate_hz: float, size: int) -> dict[str, int]:
        """Send `count` messages on each of these tags, one tag after the other, evenly apart: sent together, each would
        wait until the receivers had dealt with the others. What a tag's repairs meet, always so long after its
        messages, is another one after each `ROUNDS`. Returns the number of the first one by tag."""
        firsts = {tag: self._sent[tag] for tag in tags}
        order = [self._publishers[tag].send for tag in tags]
        body, period_ns, begun = bytes(size), 1e9 / rate_hz, time.monotonic_ns()
        chance = random.Random(SEED)
        for number in range(count):
            if number % ROUNDS == 0:
                chance.shuffle(order)
            for at, send in enumerate(order):
                due_ns = begun + round((number + at / len(order)) * period_ns)
                if (left := due_ns - time.monotonic_ns()) > 0:
                    time.sleep(left * 1e-9)
                send(body)
        for tag in tags:
            self._sent[tag] += count
        return firsts

    def close(self) -> None:
        for publisher in self._publishers.values():
            publisher.close()
        for session in self._sessions.values():
            session.close()


class Recorders:
    """Subscribes to tags: `asked` has a transport for each, and whether an order is wanted. A thread reads each."""

    def __init__(self, session: ringcast.Session, asked: Mapping[str, tuple[str, bool]]) -> None:
        self._subscribers = {
            tag: session.tag(tag, depth=DEPTH).subscribe(transport=transport, ordered=ordered)
            for tag, (transport, ordered) in asked.items()
        }
        self._seqs = {tag: array("q") for tag in asked}
        self._latencies = {tag: array("q") for tag in asked}
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(tag,)) for tag in asked]
        for thread in self._threads:
            thread.start()

    def _read(self, tag: str) -> None:
        subscriber, seqs, latencies = self._subscribers[tag], self._seqs[tag], self._latencies[tag]
        while not self._ended.is_set():
            with suppress(TimeoutError):
                message = subscriber.recv(_SLICE_S)
                seqs.append(message.seq)
                latencies.append(message.received_ns - message.sent_ns)

    def taken(self, quiet_s: float) -> dict[str, Any]:
        """By tag, numbers and latencies of all that came, in that order, when nothing came for so long. Nothing comes
        any more afterwards."""
        before = -1
        while (now := sum(map(len, self._seqs.values()))) != before:
            before = now
            time.sleep(quiet_s)
        self._ended.set()
        for thread in self._threads:
            thread.join()
        return {tag: [self._seqs[tag].tolist(), self._latencies[tag].tolist()] for tag in self._seqs}

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for subscriber in self._subscribers.values():
            subscriber.close()

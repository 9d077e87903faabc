"""What the command post sees while it runs: the streams that come in, and the detections that come back.

A subscriber of the sensors on one node and of the detections on another, each on a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import msgspec

from ringcast.demo.rescue.roles import DETECTIONS, SENSORS
from ringcast.errors import RingcastError
from ringcast.session import Session
from ringcast.subscriber import Subscriber

_RECENT = 200


class Stream(msgspec.Struct):
    """All tags of a kind: infrared, pose, ..."""

    publishers: int = 0
    received: int = 0
    lost: int = 0
    bytes: int = 0
    per_s: float = 0.0
    delay_ms: float = 0.0


class Found(msgspec.Struct, frozen=True):
    """A survivor, as its message says; `delay_s` from the event to us."""

    event_ns: int
    x: float
    y: float
    z: float
    confidence: float
    delay_s: float


class Gauge:
    def __init__(self, base: Session, street: Session) -> None:
        self.found: list[Found] = []
        self._lock = threading.Lock()
        self._streams: dict[str, Stream] = {}
        self._delays: dict[str, deque[float]] = {}
        self._tags: dict[str, set[str]] = {}
        self._before: tuple[float, dict[str, int]] = (time.monotonic(), {})
        self._subscribers = [base.subscribe(pattern) for pattern in SENSORS]
        # By a pattern, so that it is the sink that makes the tag, with the schema of what it publishes.
        self._detections = street.subscribe(DETECTIONS.replace("detections", "*"))
        self._threads = [
            threading.Thread(target=self._follow, args=(one, self._count), daemon=True) for one in self._subscribers
        ]
        self._threads.append(threading.Thread(target=self._follow, args=(self._detections, self._find), daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        for subscriber in (*self._subscribers, self._detections):
            subscriber.close()
        for thread in self._threads:
            thread.join()

    def streams(self) -> dict[str, Stream]:
        """What came by kind of tag, the rate since the last call."""
        now = time.monotonic()
        with self._lock:
            at, before = self._before
            for kind, stream in self._streams.items():
                recent = sorted(self._delays[kind])
                stream.delay_ms = recent[len(recent) // 2]
                stream.per_s = (stream.received - before.get(kind, 0)) / max(1e-3, now - at)
            self._before = now, {kind: stream.received for kind, stream in self._streams.items()}
            return {kind: msgspec.structs.replace(stream) for kind, stream in sorted(self._streams.items())}

    def _follow(self, subscriber: Subscriber, each: Any) -> None:
        try:
            for message in subscriber:
                each(message)
        except RingcastError:
            return  # closed: it is over

    def _count(self, message: Any) -> None:
        kind = str(message.tag).rsplit("/", 1)[-1]
        with self._lock:
            stream = self._streams.setdefault(kind, Stream())
            tags = self._tags.setdefault(kind, set())
            tags.add(str(message.tag))
            stream.publishers = len(tags)
            stream.received += 1
            stream.lost += message.lost
            stream.bytes += getattr(message.data, "nbytes", 0)
            self._delays.setdefault(kind, deque(maxlen=_RECENT)).append((message.received_ns - message.sent_ns) / 1e6)

    def _find(self, message: Any) -> None:
        value = message.data
        self.found.append(
            Found(
                message.event_ns, value["x"], value["y"], value["z"], value["confidence"],
                (message.received_ns - message.event_ns) / 1e9,
            )
        )  # fmt: skip

"""Eclipse eCAL over its shared-memory layer.

Its Python API receives by callback only, on a thread of the library. So everything happens in callbacks here: the pong
side answers from its own, and the ping side sends the next message from its own; handing over to the main thread would
add a wake-up that an eCAL program need not have. For the stream the publisher waits for each acknowledgement: without
it, shared memory is overwritten before a slow subscriber has read it.
"""

from __future__ import annotations

import threading
import time
from array import array
from importlib.metadata import version
from typing import Any

import ecal.nanobind_core as ecal

from ends.interface import IDLE_S, PAYLOAD, STOP, Link, Peer, Place, Sink, Source, wait_for
from ends.tally import Tally

REFRESH_MS = 100
ACKNOWLEDGE_MS = 1000


def _start(place: Place) -> None:
    config = ecal.Configuration()
    # Ends find each other by periodic announcements, every second by default: a benchmark need not wait that long.
    config.registration.registration_refresh = REFRESH_MS
    config.logging.provider.console.enable = False
    config.logging.provider.file.enable = False
    config.logging.provider.udp.enable = False
    ecal.initialize(config, f"ringcast-bench-{place.token}")


def _topic(place: Place, name: str) -> str:
    # All eCAL processes of a host share one space of names.
    return f"ringcast-bench/{place.token}/{name}"


def _publisher(topic: str, acknowledged: bool) -> Any:
    config = ecal.get_publisher_configuration()
    config.layer.shm.acknowledge_timeout_ms = ACKNOWLEDGE_MS if acknowledged else 0
    return ecal.Publisher(topic, config=config)


class _Link(Link):
    def __init__(self, place: Place, side: str) -> None:
        _start(place)
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._publisher = _publisher(_topic(place, out), acknowledged=False)
        self.send = self._publisher.send
        self._subscriber = ecal.Subscriber(_topic(place, heard))
        self._over = threading.Event()
        self._samples = array("q")
        self._left = 0
        self._start_ns = self._end_ns = 0
        self._subscriber.set_receive_callback(self._take if side == "ping" else self._echo)

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._publisher.get_subscriber_count() and self._subscriber.get_publisher_count(), timeout_s)
        # Counting a partner comes before having mapped its memory file; there is nothing to ask for the latter.
        time.sleep(3 * REFRESH_MS / 1000)

    def _take(self, _publisher: Any, _type: Any, data: Any) -> None:
        assert data.buffer
        now = time.perf_counter_ns()
        self._samples.append(now - self._start_ns)
        self._left -= 1
        if self._left == 0 or now > self._end_ns:
            self._over.set()
        else:
            self._start_ns = time.perf_counter_ns()
            self.send(PAYLOAD)

    def _echo(self, _publisher: Any, _type: Any, data: Any) -> None:
        if (body := data.buffer) == STOP:
            self._over.set()
        else:
            self.send(body)

    def ping(self, count: int, limit_s: float) -> list[int]:
        self._over.clear()
        self._samples, self._left = array("q"), count
        self._end_ns = time.perf_counter_ns() + int(limit_s * 1e9)
        self._start_ns = time.perf_counter_ns()
        self.send(PAYLOAD)
        if not self._over.wait(limit_s + IDLE_S):
            raise TimeoutError(f"an answer was lost after {len(self._samples)} round trips")
        return self._samples.tolist()

    def pong(self) -> None:
        self._over.wait()

    def close(self) -> None:
        self._subscriber.remove_receive_callback()
        ecal.finalize()


class _Source(Source):
    def __init__(self, place: Place, fan_out: bool) -> None:
        _start(place)
        self._publisher = _publisher(_topic(place, "stream"), acknowledged=not fan_out)
        self.send = self._publisher.send

    def match(self, others: int, timeout_s: float) -> None:
        wait_for(lambda: self._publisher.get_subscriber_count() >= others, timeout_s)
        time.sleep(3 * REFRESH_MS / 1000)

    def close(self) -> None:
        ecal.finalize()


class _Sink(Sink):
    def __init__(self, place: Place) -> None:
        _start(place)
        self._over = threading.Event()
        self._tally = Tally(self._over.set)
        self._subscriber = ecal.Subscriber(_topic(place, "stream"))
        self._subscriber.set_receive_callback(self._take)

    def _take(self, _publisher: Any, _type: Any, data: Any) -> None:
        self._tally.add(data.buffer)

    def expect(self, count: int, large: bool = False) -> None:
        self._over.clear()
        self._tally.begin(count, sums=large)

    def drain(self, count: int) -> dict[str, int]:
        before = -1
        # Silence for a whole interval means that the rest is lost.
        while not self._over.wait(IDLE_S) and self._tally.received != before:
            before = self._tally.received
        return self._tally.report()

    def drain_large(self, count: int, size: int) -> dict[str, int]:
        return self.drain(count)

    def close(self) -> None:
        self._subscriber.remove_receive_callback()
        ecal.finalize()


class Ecal(Peer):
    name = "ecal"
    # No poll and no asyncio: there is nothing to call that receives.
    offers = frozenset({"block", "stream", "large", "fan-out"})
    leftovers = ("ecal_*",)

    def version(self) -> str:
        return version("eclipse-ecal")

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _Link(place, side)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place, fan_out)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place)


PEERS = [Ecal()]

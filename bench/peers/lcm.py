"""LCM over UDP multicast that never leaves the host (ttl 0).

LCM promises no delivery. Its receive thread keeps a queue per subscription, without a bound here, so that only the
kernel can lose messages; what is lost is counted by the sink. The queue is read by `handle`, which calls back on this
thread.
"""

from __future__ import annotations

import time
from array import array
from importlib.metadata import version
from itertools import repeat

import lcm

from ends.interface import IDLE_S, PAYLOAD, STOP, Link, Peer, Place, Sink, Source

BUFFER_BYTES = 1 << 23
IDLE_MS = int(IDLE_S * 1000)


def _open(place: Place) -> lcm.LCM:
    return lcm.LCM(f"udpm://239.255.76.67:{place.port}?ttl=0&recv_buf_size={BUFFER_BYTES}")


class _Link(Link):
    """The other side answers from inside its handler: that is how LCM programs are written."""

    def __init__(self, place: Place, side: str, waits: str) -> None:
        self._lcm = _open(place)
        self._out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._over = False
        self._got = b""
        self._polls = waits == "poll"
        handler = self._take if side == "ping" else self._echo
        self._lcm.subscribe(heard, handler).set_queue_capacity(0)

    def _take(self, _channel: str, data: bytes) -> None:
        self._got = data

    def _echo(self, _channel: str, data: bytes) -> None:
        if data == STOP:
            self._over = True
        else:
            self._lcm.publish(self._out, data)

    def ping(self, count: int, limit_s: float) -> list[int]:
        publish, handle, clock = self._lcm.publish, self._lcm.handle_timeout, time.perf_counter_ns
        wait_ms = 0 if self._polls else IDLE_MS
        out, samples = self._out, array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            publish(out, PAYLOAD)
            while not handle(wait_ms):
                if clock() > end + int(IDLE_S * 1e9):
                    raise TimeoutError("a datagram was lost")
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    def pong(self) -> None:
        handle = self._lcm.handle_timeout
        wait_ms = 0 if self._polls else IDLE_MS
        while not self._over:
            handle(wait_ms)

    def stop(self) -> None:
        self._lcm.publish(self._out, STOP)


class _Source(Source):
    def __init__(self, place: Place) -> None:
        self._lcm = _open(place)

    def send(self, data: bytes) -> None:
        self._lcm.publish("stream", data)

    def pump(self, count: int) -> None:
        publish = self._lcm.publish
        for _ in repeat(None, count):
            publish("stream", PAYLOAD)


class _Sink(Sink):
    def __init__(self, place: Place) -> None:
        self._lcm = _open(place)
        self._got = b""
        self._lcm.subscribe("stream", self._take).set_queue_capacity(0)

    def _take(self, _channel: str, data: bytes) -> None:
        self._got = data

    def recv(self) -> bytes:
        if not self._lcm.handle_timeout(IDLE_MS):
            raise TimeoutError("silence")
        return self._got


class Lcm(Peer):
    name = "lcm"
    offers = frozenset({"block", "poll", "stream", "large", "fan-out"})

    def version(self) -> str:
        return version("lcm")

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _Link(place, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place)


PEERS = [Lcm()]

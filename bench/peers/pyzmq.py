"""ZeroMQ through pyzmq, over ipc and over tcp.

PAIR for the round trip and PUSH/PULL for the stream: both block at the high-water mark and lose nothing. PUB/SUB for
the fan-out, because PUSH hands each message to one reader only.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import zmq
import zmq.asyncio

from ends.asynchronous import AsyncLink
from ends.interface import PAYLOAD, STOP, Asking, Link, Peer, Place, Sink, Source

LINGER_MS = 1000


def _address(place: Place, scheme: str) -> str:
    return f"ipc://{place.folder}/zmq" if scheme == "ipc" else f"tcp://{place.host}:{place.port}"


class _Held:
    """A context and one socket, released together."""

    def __init__(self, context: zmq.Context[Any], kind: int) -> None:
        self.context = context
        self.socket = context.socket(kind)
        self.socket.linger = LINGER_MS

    def close(self) -> None:
        self.socket.close()
        self.context.term()


class _Link(Link):
    def __init__(self, address: str, side: str, waits: str) -> None:
        self._held = _Held(zmq.Context(), zmq.PAIR)
        socket = self._held.socket
        socket.bind(address) if side == "ping" else socket.connect(address)
        self.send = socket.send
        self.recv = socket.recv if waits == "block" else partial(_spin, socket.recv, zmq.NOBLOCK)
        self.close = self._held.close  # type: ignore[method-assign]


def _spin(recv: Any, flag: int) -> bytes:
    again = zmq.Again
    while True:
        try:
            return recv(flag)  # type: ignore[no-any-return]
        except again:
            continue


class _Asking(Asking):
    """REQ and REP."""

    def __init__(self, address: str, side: str) -> None:
        self._held = _Held(zmq.Context(), zmq.REQ if side == "ping" else zmq.REP)
        self._socket = socket = self._held.socket
        socket.bind(address) if side == "ping" else socket.connect(address)
        self.close = self._held.close  # type: ignore[method-assign]

    def ask(self, data: bytes) -> bytes:
        self._socket.send(data)
        return self._socket.recv()  # type: ignore[no-any-return]

    def serve(self) -> None:
        send, recv = self._socket.send, self._socket.recv
        while (data := recv()) != STOP:
            send(data)
        send(STOP)


class _AsyncLink(AsyncLink):
    """The same pair driven by `zmq.asyncio`."""

    def __init__(self, address: str, side: str) -> None:
        super().__init__()
        self._held = _Held(zmq.asyncio.Context(), zmq.PAIR)
        socket = self._held.socket
        socket.bind(address) if side == "ping" else socket.connect(address)
        self.send_async = socket.send
        self.recv_async = socket.recv

    def close(self) -> None:
        self._held.close()
        super().close()


class _Source(Source):
    def __init__(self, address: str, fan_out: bool) -> None:
        self._held = _Held(zmq.Context(), zmq.XPUB if fan_out else zmq.PUSH)
        self._fan_out = fan_out
        self._socket = self._held.socket
        self._socket.bind(address)
        self.send = self._socket.send
        self.close = self._held.close  # type: ignore[method-assign]

    def match(self, others: int, timeout_s: float) -> None:
        if not self._fan_out:
            return
        # An XPUB sees each subscription arrive; before that, messages to it would vanish.
        self._socket.rcvtimeo = int(timeout_s * 1000)
        self._socket.xpub_verboser = True
        for _ in range(others):
            try:
                self._socket.recv()
            except zmq.Again as exc:
                raise TimeoutError("a subscription did not arrive") from exc

    def pump_many(self, count: int, batch: int) -> None:
        frames = [PAYLOAD] * batch
        send = self._socket.send_multipart
        for _ in repeat(None, count // batch):
            send(frames)

    def pump_large(self, count: int, size: int) -> None:
        # Sent without a copy, a buffer belongs to the library until it is delivered, so each message is made in a new
        # one.
        for value in range(count):
            self._socket.send(np.full(size // 8, value, dtype=np.uint64), copy=False)


class _Sink(Sink):
    def __init__(self, address: str, fan_out: bool) -> None:
        self._held = _Held(zmq.Context(), zmq.SUB if fan_out else zmq.PULL)
        socket = self._held.socket
        if fan_out:
            socket.subscribe(b"")
        socket.connect(address)
        self.recv = socket.recv
        self._multipart = socket.recv_multipart
        self.close = self._held.close  # type: ignore[method-assign]

    def drain_many(self, count: int, batch: int) -> dict[str, int]:
        recv, clock = self._multipart, time.perf_counter_ns
        received = len(recv())
        first = clock()
        while received < count:
            received += len(recv())
        return {"first_ns": first, "last_ns": clock(), "received": received}

    def sum_large(self) -> int:
        frame = self._held.socket.recv(copy=False)
        return int(np.frombuffer(frame.buffer, dtype=np.uint64).sum())


class Zmq(Peer):
    offers = frozenset({"block", "poll", "asyncio", "stream", "batch", "large", "fan-out", "ask"})

    def __init__(self, scheme: str) -> None:
        self.name = f"pyzmq {scheme}"
        if scheme == "tcp":
            self.offers |= {"network", "ask-network"}
        self._scheme = scheme

    def version(self) -> str:
        return f"{zmq.pyzmq_version()} (libzmq {zmq.zmq_version()})"

    def link(self, place: Place, side: str, waits: str) -> Link:
        address = _address(place, self._scheme)
        if waits.startswith("ask"):
            return _Asking(address, side)
        return _AsyncLink(address, side) if waits == "asyncio" else _Link(address, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(_address(place, self._scheme), fan_out)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(_address(place, self._scheme), fan_out)


PEERS = [Zmq("ipc"), Zmq("tcp")]

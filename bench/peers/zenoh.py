"""Zenoh peer to peer over a Unix socket, no scouting, blocking congestion control, so that nothing is dropped.
Between nodes over tcp, and without shared memory.

The round trip uses the low-latency transport, as Zenoh's own ping does, the pong side answering from its callback. The
stream uses the default transport, which batches small messages on the wire, and shared memory for large ones.
"""

from __future__ import annotations

import threading
import time
from importlib.metadata import version
from typing import Any

import numpy as np
import zenoh
import zenoh.shm

from ends.crowd import Crowd
from ends.interface import PAYLOAD, STOP, Asking, Keeper, Link, Peer, Place, Puller, Sink, Source

POOL_BYTES = 32 << 20
QUEUE = 256


def _session(place: Place, listens: bool, low_latency: bool, tcp: bool = False) -> zenoh.Session:
    zenoh.init_log_from_env_or("error")
    endpoint = (
        f'["tcp/{place.host}:{place.port}"]' if place.remote or tcp else f'["unixsock-stream/{place.folder}/zenoh"]'
    )
    shared = not low_latency and not place.remote and not tcp
    config = zenoh.Config()
    for key, value in {
        "mode": '"peer"',
        "scouting/multicast/enabled": "false",
        "listen/endpoints": endpoint if listens else "[]",
        "connect/endpoints": "[]" if listens else endpoint,
        "transport/shared_memory/enabled": "true" if shared else "false",
        "transport/unicast/lowlatency": "true" if low_latency else "false",
        "transport/unicast/qos/enabled": "false" if low_latency else "true",
    }.items():
        config.insert_json5(key, value)
    return zenoh.open(config)


def _publisher(session: zenoh.Session, key: str, express: bool) -> zenoh.Publisher:
    return session.declare_publisher(key, congestion_control=zenoh.CongestionControl.BLOCK, express=express)


def _await_match(publisher: zenoh.Publisher, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not publisher.matching_status.matching:
        if time.monotonic() > deadline:
            raise TimeoutError("the other side did not appear")
        time.sleep(0.005)


class _Link(Link):
    def __init__(self, place: Place, side: str, waits: str) -> None:
        self._session = _session(place, side == "ping", low_latency=True)
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._publisher = _publisher(self._session, out, express=True)
        self.send = self._publisher.put
        self._over = threading.Event()
        self._callback = side == "pong" and waits == "block"
        if self._callback:
            self._subscriber: Any = self._session.declare_subscriber(heard, self._echo)
        else:
            self._subscriber = self._session.declare_subscriber(heard)
        self.recv = self._poll if waits == "poll" else self._block

    def match(self, others: int, timeout_s: float) -> None:
        _await_match(self._publisher, timeout_s)

    def _block(self) -> bytes:
        return self._subscriber.recv().payload.to_bytes()  # type: ignore[no-any-return]

    def _poll(self) -> bytes:
        ask = self._subscriber.try_recv
        while (sample := ask()) is None:
            pass
        return sample.payload.to_bytes()  # type: ignore[no-any-return]

    def _echo(self, sample: zenoh.Sample) -> None:
        data = sample.payload.to_bytes()
        if data == STOP:
            self._over.set()
        else:
            self._publisher.put(data)

    def pong(self) -> None:
        if self._callback:
            self._over.wait()
        else:
            super().pong()

    def close(self) -> None:
        self._session.close()


class _Asking(Asking):
    """A queryable that answers from its callback, and a querier that was declared once. The default transport: queries
    do not run over the low-latency one."""

    def __init__(self, place: Place, side: str, network: bool) -> None:
        self._session = _session(place, side == "ping", low_latency=False, tcp=network)
        self._over = threading.Event()
        self._asked = f"asked/{place.token}"
        if side == "pong":
            self._queryable = self._session.declare_queryable(self._asked, self._answer)
        else:
            self._querier = self._session.declare_querier(self._asked)

    def match(self, others: int, timeout_s: float) -> None:
        if hasattr(self, "_querier"):
            deadline = time.monotonic() + timeout_s
            while not self._querier.matching_status.matching:
                if time.monotonic() > deadline:
                    raise TimeoutError("the queryable did not appear")
                time.sleep(0.005)

    def ask(self, data: bytes) -> bytes:
        for reply in self._querier.get(payload=data):
            return reply.ok.payload.to_bytes()  # type: ignore[union-attr, no-any-return]
        raise TimeoutError("no reply")

    def _answer(self, query: zenoh.Query) -> None:
        with query:
            assert query.payload is not None
            data = query.payload.to_bytes()
            query.reply(self._asked, data)
        if data == STOP:
            self._over.set()

    def serve(self) -> None:
        self._over.wait()

    def close(self) -> None:
        self._session.close()


class _Source(Source):
    def __init__(self, place: Place, fan_out: bool) -> None:
        self._session = _session(place, listens=True, low_latency=False)
        self._publisher = _publisher(self._session, "stream", express=fan_out)
        self.send = self._publisher.put
        self._pool: Any = None
        self._remote = place.remote

    def match(self, others: int, timeout_s: float) -> None:
        _await_match(self._publisher, timeout_s)

    def pump_large(self, count: int, size: int) -> None:
        if self._remote:
            super().pump_large(count, size)
            return
        # A shared-memory buffer takes bytes by assignment only: it has no buffer protocol to write through.
        self._pool = self._pool or zenoh.shm.ShmProvider.default_backend(POOL_BYTES)
        policy = zenoh.shm.BlockOn(zenoh.shm.Defragment(zenoh.shm.GarbageCollect()))
        body = bytearray(size)
        words = np.frombuffer(body, dtype=np.uint64)
        for value in range(count):
            words.fill(value)
            buffer = self._pool.alloc(size, policy)
            buffer[:] = body
            self._publisher.put(buffer)

    def close(self) -> None:
        self._session.close()


class _Sink(Sink):
    def __init__(self, place: Place, fan_out: bool) -> None:
        self._session = _session(place, listens=False, low_latency=False)
        # A full FIFO holds the sender back, which is what a reliable stream wants and a fan-out must not.
        channel: Any = zenoh.handlers.RingChannel(QUEUE) if fan_out else zenoh.handlers.FifoChannel(QUEUE)
        self._subscriber: Any = self._session.declare_subscriber("stream", channel)

    def recv(self) -> bytes:
        return self._subscriber.recv().payload.to_bytes()  # type: ignore[no-any-return]

    def close(self) -> None:
        self._session.close()


class _Keeper(Keeper):
    """A queryable beside the publisher: Zenoh's way to have the last value asked for."""

    def __init__(self, place: Place) -> None:
        self._session = _session(place, listens=True, low_latency=False)
        self._last = b""
        self._queryable = self._session.declare_queryable("kept", self._reply)

    def _reply(self, query: zenoh.Query) -> None:
        with query:
            query.reply("kept", self._last)

    def keep(self, count: int) -> int:
        for _ in range(count):
            self._last = PAYLOAD
            self._session.put("kept", PAYLOAD)
        return count

    def close(self) -> None:
        self._session.close()


class _Puller(Puller):
    def __init__(self, place: Place) -> None:
        self._session = _session(place, listens=False, low_latency=False)

    def match(self, others: int, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not list(self._session.get("kept")):
            if time.monotonic() > deadline:
                raise TimeoutError("the queryable did not appear")
            time.sleep(0.005)

    def latest(self) -> bytes:
        for reply in self._session.get("kept"):
            return reply.ok.payload.to_bytes()  # type: ignore[union-attr]
        raise TimeoutError("no reply")

    def close(self) -> None:
        self._session.close()


class _Crowd(Crowd):
    """Publisher and subscriber in one session: Zenoh hands the message over inside the process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._session = _session(place, True, low_latency=False)
        self._held: list[Any] = []
        self._publisher, self._subscriber = self._both("probe")

    def _both(self, key: str) -> tuple[zenoh.Publisher, Any]:
        return _publisher(self._session, key, express=True), self._session.declare_subscriber(key)

    def hold(self, first: int, count: int) -> None:
        self._held += [self._both(f"held/{i}") for i in range(first, first + count)]

    def once(self, data: bytes) -> None:
        self._publisher.put(data)
        self._subscriber.recv().payload.to_bytes()

    def subscribe_once(self) -> None:
        self._session.declare_subscriber("held/0").undeclare()

    def connect_once(self) -> None:
        _session(self._place, False, low_latency=False).close()

    def close(self) -> None:
        self._session.close()


class Zenoh(Peer):
    name = "zenoh"
    # No asyncio: the Python API has none (zenoh-python#95). No batch: put takes one message.
    offers = frozenset(
        {"block", "poll", "stream", "large", "fan-out", "pull", "network", "ask", "ask-network", "crowd"}
    )
    leftovers = ("*.zenoh",)

    def version(self) -> str:
        return version("eclipse-zenoh")

    def link(self, place: Place, side: str, waits: str) -> Link:
        if waits.startswith("ask"):
            return _Asking(place, side, waits == "ask-network")
        return _Link(place, side, waits)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place, fan_out)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place, fan_out)

    def keeper(self, place: Place) -> Keeper:
        return _Keeper(place)

    def puller(self, place: Place) -> Puller:
        return _Puller(place)

    def crowd(self, place: Place) -> Crowd:
        return _Crowd(place)


PEERS = [Zenoh()]

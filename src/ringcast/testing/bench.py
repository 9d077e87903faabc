"""Both ends of a transport in one process: a ring that is written, the transport's sending end, its receiving end on
127.0.0.1, and a reader of the mirror. For checks and tests of transports."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from ringcast import _core
from ringcast.control.descriptor import Descriptor
from ringcast.daemon.rings.fanout import FanOut
from ringcast.errors import WouldBlock
from ringcast.message import Message
from ringcast.model.closing import Closing
from ringcast.testing.waiting import PATIENCE_S
from ringcast.transport.interface import (
    Channel,
    FanOutLinks,
    GroupTransport,
    LinkSeal,
    Mirror,
    Receiving,
    Sending,
    Transport,
)
from ringcast.transport.sealing import fresh_seal

HOST = "127.0.0.1"
_sealed: ContextVar[bool] = ContextVar("sealed", default=False)
POLL_S = 0.001
_keys = itertools.count(0x5EED0001)


def new_key() -> int:
    return next(_keys)


class Violation(AssertionError):
    """The transport does not do what the interface says."""


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


class Publisher:
    """A ring that is written here, with the daemon's end of its fan-out."""

    def __init__(self, depth: int, capacity_bytes: int, max_wait_s: float) -> None:
        self.writer = _core.RingWriter(depth=depth, capacity_bytes=capacity_bytes, max_wait_s=max_wait_s)
        self._monitor = _core.RingMonitor(
            self.ring_fd, self.bell_fd, depth=self.depth, capacity_bytes=self.capacity_bytes, incarnation=self.ring
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            self.writer.attach_fanout(ours.fileno())
        self.fanout = FanOut(
            Descriptor(theirs.detach()), self._monitor.bump_fanout, Descriptor(self._monitor.take_fanout_fd())
        )

    @property
    def ring_fd(self) -> int:
        return self.writer.ring_fd

    @property
    def bell_fd(self) -> int:
        return self.writer.bell_fd

    @property
    def ring(self) -> int:
        return self.writer.incarnation

    @property
    def depth(self) -> int:
        return self.writer.depth

    @property
    def capacity_bytes(self) -> int:
        return self.writer.capacity_bytes

    @property
    def next_seq(self) -> int:
        return self._monitor.next_seq

    @property
    def links(self) -> FanOutLinks:
        return self

    def add_link(
        self, number: int, fd: int, *, key: int, every: int, chunk: int, first_seq: int, seal: LinkSeal | None = None,
        rank: int = 0,
    ) -> None:  # fmt: skip
        how = {"key": key, "every": every, "chunk": chunk, "first_seq": first_seq, "rank": rank}
        self.fanout.add_link(number, fd, seal=seal, **how)
        self.fanout.flush()

    def rekey_link(self, number: int, seal: LinkSeal) -> None:
        self.fanout.rekey_link(number, seal)
        self.fanout.flush()

    def remove_link(self, number: int) -> None:
        self.fanout.remove_link(number)
        self.fanout.flush()

    def close(self) -> None:
        self.fanout.close()
        self._monitor.close()
        self.writer.close()


class Path(Closing):
    """From a ring, by the transport, to a reader of the mirror. `settle` stands in for the daemon's event loop."""

    def __init__(
        self, transport: Transport, receiving: Receiving, publisher: Publisher, *, first_seq: int, every: int,
        reliable: bool,
    ) -> None:  # fmt: skip
        self.publisher = publisher
        self._receiving = receiving
        self._transport = transport
        self.channel = Channel(
            key=new_key(), incarnation=publisher.ring, depth=publisher.depth,
            capacity_bytes=publisher.capacity_bytes, first_seq=-(-first_seq // every) * every, every=every,
            reliable=reliable, transport=transport.name, sender=HOST, seal=fresh_seal() if _sealed.get() else None,
        )  # fmt: skip
        if isinstance(transport, GroupTransport):
            seat = transport.admit(self.channel, publisher, HOST, receiving.port)
            self.channel = msgspec.structs.replace(self.channel, seat=seat)
        self.mirror: Mirror = receiving.open(self.channel)
        self.reader = _core.RingReader(reliable=reliable)
        self.reader.attach(
            self.mirror.ring_fd, self.mirror.bell_fd, depth=publisher.depth, capacity_bytes=publisher.capacity_bytes,
            incarnation=self.mirror.incarnation, start=_core.START_EARLIEST, decode=bytes,
            inflow=getattr(receiving, "inflow", None),
        )  # fmt: skip
        self.sending: Sending = transport.send(self.channel, publisher, HOST, receiving.port)
        asyncio.run(self.sending.ready())

    def settle(self) -> None:
        for answer in self.publisher.fanout.take_answers():
            if answer.link in (self.channel.key, getattr(self.sending, "link", 0)):
                give_back = self.sending.behind if answer.behind else self.sending.too_long
                give_back(answer.seq)
        if self.sending.unsettled:
            self.sending.settle()

    def receive(self, count: int, patience_s: float = PATIENCE_S, *, all_of_them: bool = True) -> list[Message]:
        found: list[Message] = []
        deadline = time.monotonic() + patience_s
        while len(found) < count and time.monotonic() < deadline:
            self.settle()
            try:
                found.append(self.reader.recv_nowait())
            except WouldBlock:
                time.sleep(POLL_S)
        expect(len(found) == count or not all_of_them, f"{len(found)} of {count} messages came; the rest never did")
        return found

    def expect_silence(self) -> None:
        self.settle()
        try:
            message = self.reader.recv_nowait()
        except WouldBlock:
            return
        raise Violation(f"message {message.seq} came, which was not due")

    def close(self) -> None:
        self.sending.release()
        self.sending.close()
        self.left()
        self._receiving.close_channel(self.channel.key)
        self.reader.close()

    def left(self) -> None:
        """Let a transport with groups see that the channel is gone."""
        if isinstance(self._transport, GroupTransport):
            self._transport.take_changes()


class Bench:
    """A receiving end and a publisher, to make paths between."""

    def __init__(self, transport: Transport, receiving: Receiving, publisher: Publisher) -> None:
        self.transport = transport
        self.receiving = receiving
        self.publisher = publisher

    def path(self, first_seq: int | None = None, every: int = 1, reliable: bool = False) -> Path:
        first = self.publisher.next_seq if first_seq is None else first_seq
        return Path(self.transport, self.receiving, self.publisher, first_seq=first, every=every, reliable=reliable)

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.publisher.writer.send(payload)


@contextmanager
def bench(
    transport: Transport, depth: int = 256, capacity_bytes: int = 1 << 20, max_wait_s: float = 0.1
) -> Iterator[Bench]:
    receiving = transport.receive(HOST)
    publisher = Publisher(depth, capacity_bytes, max_wait_s)
    try:
        yield Bench(transport, receiving, publisher)
    finally:
        receiving.close()
        publisher.close()


@contextmanager
def sealed() -> Iterator[None]:
    """Checks that run meanwhile have the transport seal what it sends, as in a mesh with identities."""
    token = _sealed.set(True)
    try:
        yield
    finally:
        _sealed.reset(token)

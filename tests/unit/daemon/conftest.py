"""A daemon without processes: a fake native core, and clients that are numbers."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ringcast.control.answers import Published
from ringcast.control.descriptor import Descriptor
from ringcast.control.requests import Hello, OpenTag, Publish, Subscribe
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, CorruptRing


class FakeMonitor:
    """A ring that has sent what a test says it has; `incarnation` 13 is a damaged one."""

    def __init__(self, ring_fd: int, bell_fd: int, *, depth: int, capacity_bytes: int, incarnation: int) -> None:
        if incarnation == 13:
            raise CorruptRing("its memory is not sealed")
        self.sent = 1
        self.next_seq = 0
        self.age_ns = 0
        self.bumps = 0
        self.freed: list[int] = []
        self.closed = False

    def counters(self) -> dict[str, int]:
        return {"sent": self.sent, "bytes": 10 * self.sent}

    def last_sent_ns(self) -> int:
        return 7

    def bump_fanout(self) -> None:
        self.bumps += 1

    def take_fanout_fd(self) -> int:
        return os.open("/dev/null", os.O_RDONLY)

    def free_slots(self, pid: int) -> int:
        self.freed.append(pid)
        return 0

    def place(self) -> int | None:
        return None

    def free_orphan(self) -> bool:
        return False

    def free_lapsed_orphans(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True


class FakeCounterView:
    def __init__(self, fd: int) -> None:
        pass

    def counters(self, index: int) -> dict[str, int]:
        if index > 10:
            raise IndexError(index)
        return {"received": index}

    def latency_histogram(self, index: int) -> list[int]:
        return [index]


class FakeHold:
    """A place in a ring; `places` has those that are taken, by the rings' incarnations."""

    def __init__(self, places: list[int]) -> None:
        self._places = places
        self._incarnation = 0

    def attach(
        self, ring_fd: int, bell_fd: int, *, depth: int, capacity_bytes: int, incarnation: int, start: int
    ) -> None:
        self._incarnation = incarnation
        self._places.append(incarnation)

    def close(self) -> None:
        self._places.remove(self._incarnation)


class FakeCore:
    """Every ring takes its capacity, exactly."""

    START_EARLIEST = -3
    RingMonitor = FakeMonitor
    CounterView = FakeCounterView

    def __init__(self) -> None:
        self.places: list[int] = []

    def RingReader(self, *, reliable: bool, what: str) -> FakeHold:
        assert reliable
        return FakeHold(self.places)

    @staticmethod
    def ring_memory_bytes(depth: int, capacity_bytes: int) -> int:
        return capacity_bytes


class Node:
    """A `Local` and what its clients would do; keeps the publishers' ends of the fan-out sockets."""

    def __init__(self) -> None:
        core = FakeCore()
        self.places = core.places
        """The rings that are held, by incarnation."""
        self.local = Local(TagTable("n1", 1), Budget(1000, max_lingering=100), core)
        self.fanouts: dict[int, socket.socket] = {}
        self._incarnations = iter(range(100, 10_000))

    def join(self, client: int, pid: int | None = None, counters: bool = False) -> None:
        fds = [null()] if counters else []
        self.local.join(client, pid or 1000 + client, "user", Hello(id=1, program=f"p{client}"), fds)

    def ask(self, client: int, request: Any, fds: list[Descriptor] | None = None) -> list[Send]:
        return self.local.handle(client, request, fds or [])

    def answer(self, client: int, request: Any, fds: list[Descriptor] | None = None) -> Any:
        """The last message to the client itself."""
        return [send for send in self.ask(client, request, fds) if send.client == client][-1].message

    def open(self, client: int, name: str, **requested: Any) -> Any:
        return self.answer(client, OpenTag(id=1, name=name, requested=requested))

    def publish_all(
        self, client: int, tag: str, incarnation: int | None = None, capacity_bytes: int = 100, **how: Any
    ) -> tuple[int, list[Send]]:
        """The publisher's number, or 0 when refused, and everything that was sent."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        incarnation = incarnation or next(self._incarnations)
        request = Publish(id=1, tag=tag, incarnation=incarnation, depth=16, capacity_bytes=capacity_bytes, **how)
        try:
            out = self.ask(client, request, [null(), null(), Descriptor(theirs.detach())])
        except BadMessage:
            ours.close()
            raise
        granted = [send.message for send in out if isinstance(send.message, Published)]
        if not granted:
            ours.close()
            return 0, out
        self.fanouts[granted[0].info.id] = ours
        return granted[0].info.id, out

    def publish(self, client: int, tag: str, **how: Any) -> int:
        number, _ = self.publish_all(client, tag, **how)
        assert number
        return number

    def subscribe(
        self, client: int, pattern: str, number: int, mailbox: Descriptor | None = None, **how: Any
    ) -> list[Send]:
        request = Subscribe(id=1, pattern=pattern, subscription=number, mailbox=mailbox is not None, **how)
        return self.ask(client, request, [mailbox] if mailbox else [])

    def announcements(self, publisher: int) -> list[tuple[str, int]]:
        """What the publisher reads from its fan-out socket; a descriptor comes with every add, and with no remove."""
        found = []
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.fanouts[publisher], 100, 4)
            except BlockingIOError:
                return found
            for fd in fds:
                os.close(fd)
            op, reserved, mailbox = struct.unpack("=IIQ", data)
            assert reserved == 0
            assert len(fds) == (op in (1, 7))
            if op == 7:  # the page with the version, before all else
                assert found == []
                continue
            found.append(({1: "add", 2: "remove"}[op], mailbox))

    def monitor(self, publisher: int) -> FakeMonitor:
        monitor = self.local.rings[publisher].monitor
        assert isinstance(monitor, FakeMonitor)
        return monitor

    @staticmethod
    def null() -> Descriptor:
        return null()

    @staticmethod
    def memfd() -> Descriptor:
        return Descriptor(os.memfd_create("mailbox", os.MFD_CLOEXEC))

    @staticmethod
    def same(descriptor: Descriptor) -> Descriptor:
        """Another descriptor of the same file, as a second message would bring it."""
        return Descriptor(os.dup(descriptor.fileno()))

    @staticmethod
    def to(client: int, out: list[Send]) -> list[msgspec.Struct]:
        return [send.message for send in out if send.client == client]

    def close(self) -> None:
        self.local.close()
        for sock in self.fanouts.values():
            sock.close()


def null() -> Descriptor:
    return Descriptor(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    yield node
    node.close()


@pytest.fixture
def lab(node: Node) -> Node:
    """Three clients and one tag."""
    for client in (1, 2, 3):
        node.join(client)
    node.open(1, "lab/temp")
    return node

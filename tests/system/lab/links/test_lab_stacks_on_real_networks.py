"""Daemons in network namespaces around a switch: the kernel loses packets, multicast crosses a bridge, and stops; the
switch sends packets twice, and late. By IPv4 and by IPv6."""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import ringcast
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.scripts import FAMILIES
from ringcast.lab.testbed.topology import star
from ringcast.testing.waiting import wait_until
from ringcast.transport.addressing import widen_receive_buffer

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


class Site:
    """A daemon on each node of a testbed, and a session with each."""

    def __init__(self, bed: Testbed, stack: ExitStack, family: int) -> None:
        self.bed, self.family = bed, family
        # Of whole groups: what nodes tell each other by it.
        self.filter, self.groups = {4: ("iptables", "239.0.0.0/8"), 6: ("ip6tables", "ff15::/16")}[family]
        self.hosts = [node for node in bed.nodes if node.kind == "host"]
        shape = "[{}]:7417" if family == 6 else "{}:7417"
        addresses = {node.name: shape.format(node.address(family)) for node in self.hosts}
        for node in self.hosts:
            peers = [word for name, at in addresses.items() if name != node.name for word in ("--peer", at)]
            node.spawn(
                [
                    sys.executable, "-m", "ringcast", "daemon", "--name", node.name, "--listen", addresses[node.name],
                    "--no-scout", *peers,
                ],
                stdout=None, stderr=None,
            )  # fmt: skip
        self.sessions = []
        for node in self.hosts:
            wait_until(lambda node=node: self._connect(node, stack))
        count = len(self.hosts)
        for session in self.sessions:
            wait_until(lambda session=session: sum(n.state == "here" for n in session.nodes()) == count)

    def _connect(self, node, stack: ExitStack) -> bool:
        try:
            path = node.environment["RINGCAST_SOCKET"]
            self.sessions.append(stack.enter_context(ringcast.connect(socket=path, start=False)))
        except ringcast.RingcastError:
            return False
        return True

    def multicast(self, node, chain: str, *, drop: bool) -> None:
        node.run([self.filter, "-I" if drop else "-D", chain, "-d", self.groups, "-j", "DROP"])

    def lose(self, share: str | None) -> None:
        """At the end hosts, both ways: data, repairs, naks and heartbeats."""
        for link in self.bed.links:
            link.set_loss(share)


@pytest.fixture(scope="module", params=[4, 6])
def site(request) -> Iterator[Site]:
    if request.param not in FAMILIES:
        pytest.skip("this kernel has no IPv6")
    with Testbed(star(3)) as bed, ExitStack() as stack:
        yield Site(bed, stack, request.param)


def subscribed(site: Site, eventually, tag: str, transport: str, **spec):
    here, *others = site.sessions
    pub = here.publisher(tag, depth=8192)
    eventually(lambda: all(any(row.publishers for row in other.tags(tag)) for other in others))
    subs = [other.subscribe(tag, transport=transport, **spec) for other in others]
    for other in others:
        eventually(lambda other=other: [r for r in other.channels() if (r.tag, r.direction) == (tag, "in")])
    return pub, subs


@pytest.mark.parametrize("transport", ["nak", "multicast+nak", "multicast+lateral+nak:r=4,c=1", "ack"])
def test_the_kernel_loses_packets(site, eventually, take, transport):
    tag = "loss/" + transport.partition(":")[0]
    pub, subs = subscribed(site, eventually, tag, transport)
    site.lose("5%")
    try:
        for i in range(500):
            pub.send(b"%d" % i)
        for sub in subs:
            got = take(sub, b"499")
            assert [msg.seq for msg in got] == list(range(500))
            assert sum(msg.lost for msg in got) == 0
    finally:
        site.lose(None)


def outgoing(site: Site, tag: str):
    return [row for row in site.sessions[0].channels() if (row.tag, row.direction) == (tag, "out")]


def packets(node) -> int:
    """That left the node so far."""
    return int(node.run(["cat", "/sys/class/net/to-hub/statistics/tx_packets"]).stdout)


def test_multicast_crosses_the_switch_once_and_stops(site, eventually, take):
    pub, subs = subscribed(site, eventually, "route", "multicast+nak")
    sender = site.hosts[0]

    before = packets(sender)
    for i in range(100):
        pub.send(b"%d" % i)
    for sub in subs:
        assert len(take(sub, b"99")) == 100
    # One for both nodes; what daemons say to each other meanwhile, and heartbeats, are few.
    assert 100 <= packets(sender) - before < 180
    site.multicast(sender, "OUTPUT", drop=True)
    try:
        pub.send(b"into the void")
        eventually(lambda: all(row.counters.get("fallen_back") for row in outgoing(site, "route")))
        for i in range(100):
            pub.send(b"more %d" % i)
        for sub in subs:
            got = take(sub, b"more 99")
            assert [msg.seq for msg in got] == list(range(100, 201))
            assert sum(msg.lost for msg in got) == 0
    finally:
        site.multicast(sender, "OUTPUT", drop=False)


@pytest.mark.parametrize("transport", ["multicast+nak", "multicast"])
def test_multicast_ceases_to_reach_one_node_and_nobody_is_told(site, eventually, take, transport):
    tag = "deaf/" + transport
    pub, (deaf, other) = subscribed(site, eventually, tag, transport)
    pub.send(b"before")
    assert take(deaf, b"before")[-1].lost == take(other, b"before")[-1].lost == 0
    receiver = site.hosts[1]
    site.multicast(receiver, "INPUT", drop=True)
    try:
        eventually(lambda: sorted(row.counters["fallen_back"] for row in outgoing(site, tag)) == [0, 1])
        for i in range(100):
            pub.send(b"%d" % i)
        for sub in (deaf, other):
            assert [msg.seq for msg in take(sub, b"99")] == list(range(1, 101))
    finally:
        site.multicast(receiver, "INPUT", drop=False)


class Echo(threading.Thread):
    """At the switch's port to a node: sends what leaves by it once more, each third frame only after the two that
    follow it. What a packet socket sends it does not hear itself."""

    OUTGOING = 4

    def __init__(self, bed: Testbed, name: str) -> None:
        super().__init__()
        self.repeated = 0
        self._socket = bed.node("hub").open_socket(socket.AF_PACKET, socket.SOCK_RAW)
        widen_receive_buffer(self._socket)
        self._socket.bind((f"to-{name}", 0x0003))
        self._ended = threading.Event()
        self._late: list[bytes] = []
        self.start()

    def run(self) -> None:
        while not self._ended.is_set():
            if not select.select([self._socket], [], [], 0.05)[0]:
                self._release(0)
                continue
            frame, address = self._socket.recvfrom(65_536)
            if address[2] != self.OUTGOING or not (twin := self._twin(frame)):
                continue
            self.repeated += 1
            if self.repeated % 3 == 0:
                self._late.append(twin)
            else:
                self._socket.send(twin)
                self._release(1)

    def _release(self, kept: int) -> None:
        while len(self._late) > kept:
            self._socket.send(self._late.pop(0))

    @staticmethod
    def _twin(frame: bytes) -> bytes | None:
        """A datagram of a channel. Between veths nobody computes checksums, and one of a packet socket has to."""
        at = {0x0800: 14 + 4 * (frame[14] & 15), 0x86DD: 54}.get(struct.unpack_from("!H", frame, 12)[0])
        if at is None or frame[at + 8 : at + 10] != b"RC":
            return None
        twin = bytearray(frame)
        twin[at + 6 : at + 8] = b"\0\0"
        if at == 54:
            words = bytes(twin[22:54]) + struct.pack("!II", len(twin) - at, 17) + bytes(twin[at:])
            total = sum(struct.unpack(f"!{len(words) // 2}H", words[: len(words) // 2 * 2]))
            total += words[-1] << 8 if len(words) % 2 else 0
            while total >> 16:
                total = (total & 0xFFFF) + (total >> 16)
            struct.pack_into("!H", twin, at + 6, (~total & 0xFFFF) or 0xFFFF)
        return bytes(twin)

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._socket.close()


@pytest.mark.parametrize(
    "transport", ["udp", "nak", "multicast", "multicast+nak", "multicast+lateral+nak:r=4,c=1", "parity", "ack"]
)
def test_the_switch_sends_packets_twice_and_late(site, eventually, take, transport):
    tag = "twice/" + transport.partition(":")[0]
    pub, subs = subscribed(site, eventually, tag, transport)
    echo = Echo(site.bed, site.hosts[1].name)
    try:
        for i in range(300):
            pub.send(b"%d" % i)
        for sub in subs:
            got = take(sub, b"299")
            assert [msg.seq for msg in got] == list(range(300)), "nothing twice, nothing out of order"
            assert sum(msg.lost for msg in got) == 0
        eventually(lambda: repeated(site.sessions[1], tag) >= 300)
    finally:
        echo.end()


def repeated(session, tag: str) -> int:
    (row,) = [row for row in session.channels() if (row.tag, row.direction) == (tag, "in")]
    return sum(row.counters[name] for name in ("duplicates", "late", "again"))

"""Daemons in network namespaces around a switch: the kernel loses packets, multicast crosses a bridge, and stops."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import ringcast
from ringcast.lab.testbed import Testbed, unavailable
from ringcast.lab.topology import star

PATIENCE_S = 30.0

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the nodes do not come together"
        time.sleep(0.02)


class Site:
    """A daemon on each node of a testbed, and a session with each."""

    def __init__(self, bed: Testbed, stack: ExitStack) -> None:
        self.bed = bed
        self.hosts = [node for node in bed.nodes if node.kind == "host"]
        addresses = {node.name: f"{node.address()}:7417" for node in self.hosts}
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
            until(lambda node=node: self._connect(node, stack))
        count = len(self.hosts)
        for session in self.sessions:
            until(lambda session=session: sum(n.state == "here" for n in session.nodes()) == count)

    def _connect(self, node, stack: ExitStack) -> bool:
        try:
            path = node.environment["RINGCAST_SOCKET"]
            self.sessions.append(stack.enter_context(ringcast.connect(socket=path, start=False)))
        except ringcast.RingcastError:
            return False
        return True

    def lose(self, share: str | None) -> None:
        """At the end hosts, both ways: data, repairs, naks and heartbeats."""
        for link in self.bed.links:
            link.set_loss(share)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Testbed(star(3)) as bed, ExitStack() as stack:
        yield Site(bed, stack)


def subscribed(site: Site, eventually, tag: str, transport: str, **wish):
    here, *others = site.sessions
    pub = here.publisher(tag, depth=8192)
    eventually(lambda: all(any(row.publishers for row in other.tags(tag)) for other in others))
    subs = [other.subscribe(tag, transport=transport, **wish) for other in others]
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
    sender.run(["iptables", "-I", "OUTPUT", "-d", "239.0.0.0/8", "-j", "DROP"])
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
        sender.run(["iptables", "-D", "OUTPUT", "-d", "239.0.0.0/8", "-j", "DROP"])


@pytest.mark.parametrize("transport", ["multicast+nak", "multicast"])
def test_multicast_ceases_to_reach_one_node_and_nobody_is_told(site, eventually, take, transport):
    tag = "deaf/" + transport
    pub, (deaf, other) = subscribed(site, eventually, tag, transport)
    pub.send(b"before")
    assert take(deaf, b"before")[-1].lost == take(other, b"before")[-1].lost == 0
    receiver = site.hosts[1]
    receiver.run(["iptables", "-I", "INPUT", "-d", "239.0.0.0/8", "-j", "DROP"])
    try:
        eventually(lambda: sorted(row.counters["fallen_back"] for row in outgoing(site, tag)) == [0, 1])
        for i in range(100):
            pub.send(b"%d" % i)
        for sub in (deaf, other):
            assert [msg.seq for msg in take(sub, b"99")] == list(range(1, 101))
    finally:
        receiver.run(["iptables", "-D", "INPUT", "-d", "239.0.0.0/8", "-j", "DROP"])

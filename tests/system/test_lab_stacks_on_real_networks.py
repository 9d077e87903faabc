"""Daemons in network namespaces around a switch: the kernel loses packets, multicast crosses a bridge, and stops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import ringcast
from ringcast.lab.testbed import Testbed, unavailable
from ringcast.lab.topology import star

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


class Site:
    """A daemon on each node of a testbed, and a session with each."""

    def __init__(self, bed: Testbed, stack: ExitStack, eventually) -> None:
        self.bed = bed
        self.hosts = [node for node in bed.nodes if node.kind == "host"]
        addresses = {node.name: f"{node.address()}:7417" for node in self.hosts}
        for node in self.hosts:
            peers = [word for name, at in addresses.items() if name != node.name for word in ("--peer", at)]
            node.spawn(
                [sys.executable, "-m", "ringcast", "daemon", "--listen", addresses[node.name], "--no-scout", *peers],
                stdout=None, stderr=None,
            )  # fmt: skip
        self.sessions = []
        for node in self.hosts:
            eventually(lambda node=node: self._connect(node, stack))
        count = len(self.hosts)
        for session in self.sessions:
            eventually(lambda session=session: sum(n.state == "here" for n in session.nodes()) == count)

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
    from tests.conftest import wait_until

    with Testbed(star(3)) as bed, ExitStack() as stack:
        yield Site(bed, stack, wait_until)


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
    tag = f"loss/{transport}"
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


def test_multicast_crosses_the_switch_once_and_stops(site, eventually, take):
    pub, subs = subscribed(site, eventually, "route", "multicast+nak")
    sender = site.hosts[0]

    def sent() -> int:
        return int(sender.run(["sh", "-c", "grep -h . /proc/net/netstat | awk '/^IpExt/{r=$0} END{print r}'"]).stdout.split()[4])

    before = sent()
    for i in range(100):
        pub.send(b"%d" % i)
    for sub in subs:
        assert len(take(sub, b"99")) == 100
    # One datagram for both nodes; heartbeats are few.
    assert 100 <= sent() - before < 150
    sender.run(["iptables", "-I", "OUTPUT", "-d", "239.0.0.0/8", "-j", "DROP"])
    try:
        outgoing = lambda: [r for r in site.sessions[0].channels() if (r.tag, r.direction) == ("route", "out")]  # noqa: E731
        pub.send(b"into the void")
        eventually(lambda: all(row.counters["fallen_back"] for row in outgoing()))
        for i in range(100):
            pub.send(b"more %d" % i)
        for sub in subs:
            got = take(sub, b"more 99")
            assert [msg.seq for msg in got] == list(range(100, 201))
            assert sum(msg.lost for msg in got) == 0
    finally:
        sender.run(["iptables", "-D", "OUTPUT", "-d", "239.0.0.0/8", "-j", "DROP"])

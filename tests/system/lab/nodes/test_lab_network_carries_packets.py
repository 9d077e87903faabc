"""A network is built, and packets go everywhere in it: through routers and switches, in both families."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.node import CommandFailed, Node
from ringcast.lab.testbed.topology import Family, Topology, TopologyError, chain, star

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

OFFICE = """
nodes = {r = "router", s = "switch"}
links = [{between = ["a", "s"]}, {between = ["b", "s"]}, {between = ["s", "r"]}, {between = ["r", "c"]}]
"""
FAMILIES: dict[Family, int] = {4: socket.AF_INET, 6: socket.AF_INET6}
UDP_SEGMENT = 103
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    with Testbed(chain(3)) as built:
        yield built


def receive(here: Node, there: Node, family: Family) -> tuple[bytes, str]:
    """What `there` gets when `here` sends to its address, and from which address it came."""
    with here.open_socket(FAMILIES[family]) as sender, there.open_socket(FAMILIES[family]) as receiver:
        receiver.settimeout(PATIENCE_S)
        receiver.bind(("", 0))
        sender.sendto(b"hello", (there.address(family), receiver.getsockname()[1]))
        data, source = receiver.recvfrom(100)
        return data, source[0]


def counter(node: Node, name: str) -> int:
    return int(node.run(["cat", f"/sys/class/net/{name}"]).stdout)


@pytest.mark.parametrize("topology", [chain(4), star(3), star(3, hub="router"), Topology.parse(OFFICE)])
@pytest.mark.parametrize("family", FAMILIES)
def test_everyone_reaches_everyone_and_is_known_by_one_address(topology: Topology, family: Family) -> None:
    with Testbed(topology) as bed:
        for here, there in itertools.permutations(bed.nodes, 2):
            assert receive(here, there, family) == (b"hello", here.address(family)), f"{here.name} to {there.name}"


def test_multicast_reaches_all_around_a_switch() -> None:
    group = "239.1.2.3"
    with Testbed(star(3)) as bed:
        sender, *receivers = bed.nodes
        opened = []
        for node in receivers:
            receiver = node.open_socket()
            receiver.settimeout(PATIENCE_S)
            receiver.bind((group, 5000))
            receiver.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(node.address())
            )
            opened.append(receiver)
        sender.open_socket().sendto(b"all", (group, 5000))
        assert [receiver.recv(100) for receiver in opened] == [b"all", b"all"]


def test_multicast_reaches_a_neighbour_in_ipv6(bed: Testbed) -> None:
    a, b = bed.node("a"), bed.node("b")
    index = int(b.run(["cat", "/sys/class/net/to-a/ifindex"]).stdout)
    with a.open_socket(socket.AF_INET6) as sender, b.open_socket(socket.AF_INET6) as receiver:
        receiver.settimeout(PATIENCE_S)
        receiver.bind(("", 5000))
        joined = socket.inet_pton(socket.AF_INET6, "ff05::1234") + struct.pack("@I", index)
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
        sender.sendto(b"all", ("ff05::1234", 5000))
        assert receiver.recv(100) == b"all"


def test_no_packet_on_a_wire_is_larger_than_the_wire_allows(bed: Testbed) -> None:
    """RING.md, rule 11: with segmentation offload, an injected loss would drop many packets as one."""
    a, b = bed.node("a"), bed.node("b")
    with a.open_socket() as sender, b.open_socket() as receiver:
        receiver.settimeout(PATIENCE_S)
        receiver.bind((b.address(), 0))
        sender.connect(receiver.getsockname())
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        before = counter(b, "to-a/statistics/rx_packets")
        sender.send(bytes(20_000))
        assert [len(receiver.recv(2000)) for _ in range(20)] == [1000] * 20
        assert counter(b, "to-a/statistics/rx_packets") - before >= 20


def test_no_tcp_segment_is_larger_than_the_wire_allows(bed: Testbed) -> None:
    a, b = bed.node("a"), bed.node("b")
    with a.open_socket(kind=socket.SOCK_STREAM) as client, b.open_socket(kind=socket.SOCK_STREAM) as listener:
        listener.bind((b.address(), 0))
        listener.listen()
        client.connect(listener.getsockname())
        with listener.accept()[0] as server:
            server.settimeout(PATIENCE_S)
            packets, octets = (counter(b, f"to-a/statistics/rx_{what}") for what in ("packets", "bytes"))
            client.sendall(bytes(60_000))
            received = 0
            while received < 60_000:
                received += len(server.recv(65536))
            packets = counter(b, "to-a/statistics/rx_packets") - packets
            octets = counter(b, "to-a/statistics/rx_bytes") - octets
    assert octets >= 60_000
    assert octets / packets <= 1514


def test_a_command_sees_its_node_only(bed: Testbed) -> None:
    names = bed.node("b").run(["ls", "/sys/class/net"]).stdout.split()
    assert names == ["lo", "to-a", "to-c"]


def test_each_node_has_a_daemon_socket_of_its_own(bed: Testbed) -> None:
    script = "import os; print(os.environ['RINGCAST_NODE'], os.environ['RINGCAST_SOCKET'], os.environ['EXTRA'])"
    said = [
        node.run([sys.executable, "-c", script], env={**os.environ, "EXTRA": "x"}).stdout.split() for node in bed.nodes
    ]
    assert [words[0] for words in said] == ["a", "b", "c"]
    assert len({words[1] for words in said}) == 3
    assert all(os.path.isdir(os.path.dirname(words[1])) and words[2] == "x" for words in said)


def test_a_failing_command_says_what_it_said(bed: Testbed) -> None:
    with pytest.raises(CommandFailed) as caught:
        bed.node("a").run(["sh", "-c", "echo broken >&2; exit 3"])
    assert (caught.value.node, caught.value.returncode) == ("a", 3)
    assert "broken" in str(caught.value)
    assert bed.node("a").run(["false"], check=False).returncode == 1


def test_a_spawned_command_talks_and_listens(bed: Testbed) -> None:
    process = bed.node("a").spawn(["cat"], stdin=subprocess.PIPE)
    said, _ = process.communicate("hello\n")
    assert said == "hello\n"


def test_names_that_are_not_in_the_network(bed: Testbed) -> None:
    with pytest.raises(TopologyError, match="no node 'x'"):
        bed.node("x")
    with pytest.raises(TopologyError, match="no link a-c"):
        bed.link("a", "c")


def test_the_machines_own_network_is_untouched(bed: Testbed) -> None:
    assert not [name for name in os.listdir("/sys/class/net") if name.startswith("to-")]

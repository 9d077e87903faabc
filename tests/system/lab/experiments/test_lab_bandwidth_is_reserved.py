"""A channel's bandwidth is kept for it by the queues of the sending node, as long as the channel is there, and what a
killed daemon leaves behind is removed by the next."""

import os
import re
import signal
import subprocess
import sys

import pytest

from ringcast.errors import QosMismatch
from ringcast.lab.testbed.mesh_nodes import PORT, MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import Topology, Wire

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")
TAG = "arm/joints"


@pytest.fixture
def mesh():
    with Testbed(Topology((Wire(("a", "b")),))) as bed, MeshNodes(bed, ["a", "b"]) as made:
        yield made


def queues(mesh):
    """Classes towards b: their rates, and how many packets each sent."""
    (told,) = mesh.bed.run_scripts({"a": "tc -s class show dev to-b"}, "cannot look at the queues")
    found = re.findall(r"class htb (\S+) .*?rate (\S+) .*?Sent \d+ bytes (\d+) pkt", told, re.DOTALL)
    return {name: (rate, int(packets)) for name, rate, packets in found}


def in_force(mesh):
    return [row.in_force for row in mesh.sessions["a"].channels() if row.tag == TAG and row.direction == "out"]


@pytest.mark.parametrize("transport", ["udp", "tcp", "nak"])
def test_it_is_kept_while_the_channel_is_there(mesh, eventually, transport):
    a, b = mesh.sessions["a"], mesh.sessions["b"]
    pub = a.publisher(TAG)
    mesh.wait_for_publisher(TAG)
    with b.subscribe(TAG, transport=transport) as sub:
        pub.send(b"before")
        assert sub.recv(timeout=20).data == b"before"
        assert queues(mesh) == {}
        with pytest.raises(QosMismatch, match="class or a DSCP"):
            a.set_channel(TAG, bandwidth="20mbit")
        with pytest.raises(QosMismatch, match="does not fit"):
            a.set_channel(TAG, priority="high", bandwidth="20gbit")
        assert queues(mesh) == {}
        a.set_channel(TAG, priority="high", bandwidth="20mbit")
        eventually(lambda: [one.bandwidth for one in in_force(mesh)] == ["20mbit"])
        assert in_force(mesh)[0].refused == ""
        before = queues(mesh)["7ca0:34"]
        assert before[0] == "20Mbit"
        for number in range(20):
            pub.send(b"%d" % number)
        assert [sub.recv(timeout=20).data for _ in range(20)] == [b"%d" % number for number in range(20)]
        assert queues(mesh)["7ca0:34"][1] > before[1]
        a.set_channel(TAG, bandwidth="30mbit")
        eventually(lambda: queues(mesh)["7ca0:34"][0] == "30Mbit")
    eventually(lambda: queues(mesh) == {})


def test_more_than_half_of_the_link_is_kept_when_the_channel_is_opened_anew(mesh, eventually):
    a, b = mesh.sessions["a"], mesh.sessions["b"]
    publisher = a.publisher(TAG)
    mesh.wait_for_publisher(TAG)
    with b.subscribe(TAG, transport="udp") as sub:

        def arrives(data):
            publisher.send(data)
            return sub.recv(timeout=20).data == data

        a.set_channel(TAG, priority="high", bandwidth="6gbit")
        eventually(lambda: [one.bandwidth for one in in_force(mesh)] == ["6gbit"])
        for change in ({"priority": "critical"}, {"transport": "tcp"}, {"dscp": "EF"}, {"bandwidth": "7gbit"}):
            a.set_channel(TAG, **change)
            assert arrives(repr(change).encode())
            wanted = change.get("bandwidth", "6gbit")
            eventually(lambda wanted=wanted: [one.bandwidth for one in in_force(mesh)] == [wanted])
            assert in_force(mesh)[0].refused == ""
        with pytest.raises(QosMismatch, match="class or a DSCP"):
            a.set_channel(TAG, priority="normal", dscp="")
        assert [one.bandwidth for one in in_force(mesh)] == ["7gbit"]
        assert arrives(b"the same as before")
    eventually(lambda: queues(mesh) == {})


def test_a_channel_whose_subscriber_reserved_is_not_made_normal(mesh, eventually):
    a, b = mesh.sessions["a"], mesh.sessions["b"]
    publisher = a.publisher(TAG)
    mesh.wait_for_publisher(TAG)
    with b.subscribe(TAG, transport="udp", priority="high bandwidth:6gbit") as sub:
        eventually(lambda: [one.bandwidth for one in in_force(mesh)] == ["6gbit"])
        with pytest.raises(QosMismatch, match="class or a DSCP"):
            a.set_channel(TAG, priority="normal")
        eventually(lambda: [one.bandwidth for one in in_force(mesh)] == ["6gbit"])
        publisher.send(b"x")
        assert sub.recv(timeout=20).data == b"x"


def test_what_a_killed_daemon_leaves_is_removed_by_the_next(mesh, eventually):
    a, b = mesh.sessions["a"], mesh.sessions["b"]
    publisher = a.publisher(TAG)
    mesh.wait_for_publisher(TAG)
    subscriber = b.subscribe(TAG, transport="udp", priority="critical bandwidth:5mbit")
    eventually(lambda: "7ca0:3c" in queues(mesh))
    publisher.send(b"x")
    assert subscriber.recv(timeout=20).data == b"x"
    os.kill(mesh.pids["a"], signal.SIGKILL)
    a.close()
    assert "7ca0:3c" in queues(mesh)
    node = mesh.bed.node("a")
    command = [sys.executable, "-m", "ringcast", "daemon", "--no-config", "--name", "a", "--no-scout"]
    node.spawn(
        [*command, "--listen", f"{node.address()}:{PORT}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    eventually(lambda: queues(mesh) == {})

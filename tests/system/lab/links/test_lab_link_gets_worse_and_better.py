"""A link is cut, restored, slowed down and made lossy while it is in use."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.node import Node
from ringcast.lab.testbed.scripts import PATTERN
from ringcast.lab.testbed.topology import Topology, TopologyError, Wire, chain, pair, star

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

PATIENCE_S = 10.0
SENT = 200


class Stream:
    """Numbered datagrams from one node to another."""

    def __init__(self, here: Node, there: Node, family: int = socket.AF_INET) -> None:
        self.receiver = there.open_socket(family)
        self.receiver.bind((there.address(4 if family == socket.AF_INET else 6), 0))
        self.sender = here.open_socket(family)
        self.sender.connect(self.receiver.getsockname())
        # The first packet waits for the neighbour's address. One that goes through ends that wait.
        self.sender.send(b"warm")
        self.receiver.settimeout(PATIENCE_S)
        self.receiver.recv(100)

    def send(self, count: int) -> None:
        for number in range(count):
            self.sender.send(number.to_bytes(4))

    def arrived(self, count: int) -> list[int]:
        """The next `count` numbers. Raises TimeoutError when fewer come."""
        return [int.from_bytes(self.receiver.recv(100)) for _ in range(count)]

    def nothing_more(self) -> bool:
        self.receiver.setblocking(False)
        try:
            self.receiver.recv(100)
        except BlockingIOError:
            return True
        finally:
            self.receiver.settimeout(PATIENCE_S)
        return False


@pytest.fixture(params=["router", "switch"])
def bed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """The first link ends at a router or at a switch: the two lose packets in different ways."""
    with Testbed(chain(3) if request.param == "router" else star(3)) as built:
        yield built


def test_every_tenth_packet_is_lost_and_counted(bed: Testbed) -> None:
    link = bed.links[0]
    middle = link.wire.between[1]
    stream = Stream(bed.node("a"), bed.node("c"))
    link.set_loss("every 10", to=middle)
    stream.send(SENT)
    assert stream.arrived(SENT * 9 // 10) == [number for number in range(SENT) if number % 10 != 9]
    assert stream.nothing_more()
    assert link.dropped(to=middle, families=[4]) == SENT // 10
    assert link.dropped(to="a") == 0


def test_losses_in_bursts_are_those_of_the_pattern_again_and_again(bed: Testbed) -> None:
    link = bed.links[0]
    middle = link.wire.between[1]
    stream = Stream(bed.node("a"), bed.node("c"))
    link.set_loss("5% in bursts of 4", to=middle)
    numbers: list[int] = []
    for first in range(0, 2 * PATTERN, SENT):
        before = link.dropped(to=middle, families=[4])
        stream.send(SENT)
        lost = link.dropped(to=middle, families=[4]) - before
        numbers += [first + number for number in stream.arrived(SENT - lost)]
        assert stream.nothing_more()
    missing = sorted(set(range(2 * PATTERN)) - set(numbers))
    assert len(missing) == 2 * round(PATTERN / 20)
    assert [at - PATTERN for at in missing if at >= PATTERN] == [at for at in missing if at < PATTERN]
    rows = sum(1 for at in missing if at - 1 not in missing)
    assert 2 < len(missing) / rows < 8, "in rows, of four in the mean of many patterns"


@pytest.mark.parametrize("loss", ["5%", "5% in bursts of 4"])
def test_of_each_sender_the_same_packets_are_lost(bed: Testbed, loss: str) -> None:
    """Whatever the other one sends meanwhile."""
    nodes = bed.node("a"), bed.node("b")
    streams = [Stream(node, bed.node("c")) for node in nodes]
    behind = bed.link("c", bed.links[0].wire.between[1])
    behind.set_loss(loss, to="c", senders=[node.address() for node in nodes])
    missing = []
    for stream, size in zip(streams, (SENT, 50), strict=True):
        numbers: list[int] = []
        for first in range(0, 1000, size):
            before = behind.dropped(to="c", families=[4])
            stream.send(size)
            lost = behind.dropped(to="c", families=[4]) - before
            numbers += [first + number for number in stream.arrived(size - lost)]
        missing.append(sorted(set(range(1000)) - set(numbers)))
    assert missing[0] == missing[1]
    assert len([at for at in missing[0] if at < PATTERN]) == round(PATTERN / 20)
    behind.set_loss(None, to="c")
    for stream in streams:
        stream.send(SENT)
        assert stream.arrived(SENT) == list(range(SENT))


def test_loss_that_ends_leaves_nothing_behind(bed: Testbed) -> None:
    link = bed.links[0]
    stream = Stream(bed.node("a"), bed.node("c"))
    link.set_loss(1.0)
    stream.send(10)
    link.set_loss(None)
    stream.send(SENT)
    assert stream.arrived(SENT) == list(range(SENT))
    assert link.dropped() == 0


def test_random_loss_loses_some_and_not_all(bed: Testbed) -> None:
    link = bed.links[0]
    stream = Stream(bed.node("a"), bed.node("c"))
    link.set_loss("50%")
    stream.send(SENT)
    lost = link.dropped(to=link.wire.between[1], families=[4])
    # All 200, or none: 1 in 2 ** 200 runs.
    assert 0 < lost < SENT
    assert len(stream.arrived(SENT - lost)) == SENT - lost


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_cut_link_carries_nothing_until_it_is_restored(bed: Testbed, family: int) -> None:
    link = bed.links[0]
    stream = Stream(bed.node("a"), bed.node("c"), family)
    back = Stream(bed.node("c"), bed.node("a"), family)
    link.cut()
    link.cut()  # once more does no harm
    for way in (stream, back):
        way.send(10)
    link.restore()
    link.restore()
    for way in (stream, back):
        way.sender.send((77).to_bytes(4))
        assert way.arrived(1) == [77]


def test_a_restored_link_still_has_its_loss(bed: Testbed) -> None:
    link = bed.links[0]
    middle = link.wire.between[1]
    stream = Stream(bed.node("a"), bed.node("c"))
    link.set_loss("every 2", to=middle)
    link.cut()
    stream.send(10)
    link.restore()
    assert link.dropped(to=middle, families=[4]) == 0
    stream.send(10)
    assert stream.arrived(5) == [0, 2, 4, 6, 8]


def shapers(node: Node) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = json.loads(node.run(["tc", "-j", "qdisc", "show"]).stdout)
    return [queue for queue in said if queue["dev"] != "lo" and queue["kind"] != "noqueue"]


def test_a_rate_is_set_changed_and_taken_away() -> None:
    with Testbed(pair(rate="10mbit")) as bed:
        a, b = bed.nodes
        assert [queue["options"]["rate"] for node in (a, b) for queue in shapers(node)] == [1_250_000] * 2
        bed.link("a", "b").set_rate("20mbit", to="b")
        assert [queue["options"]["rate"] for node in (a, b) for queue in shapers(node)] == [2_500_000, 1_250_000]
        bed.link("a", "b").set_rate(None)
        assert shapers(a) == shapers(b) == []
        Stream(a, b)


def test_a_rate_by_htb_leaves_room_for_classes() -> None:
    with Testbed(Topology((Wire(("a", "b"), rate="10mbit", shaper="htb"),))) as bed:
        a = bed.node("a")
        assert [queue["kind"] for queue in shapers(a)] == ["htb", "bfifo"]
        bed.link("a", "b").set_rate("20mbit")
        assert "rate 20Mbit" in a.run(["tc", "class", "show", "dev", "to-b"]).stdout
        Stream(a, bed.node("b"))


def test_a_network_is_born_with_rate_and_loss() -> None:
    with Testbed(chain(2, rate="100mbit", loss="every 5")) as bed:
        stream = Stream(bed.node("a"), bed.node("b"))
        stream.send(9)
        # The stream's first datagram was the first packet, so 3 and 8 are the fifth and the tenth.
        assert stream.arrived(7) == [0, 1, 2, 4, 5, 6, 7]
        assert stream.nothing_more()
        assert bed.link("b", "a").dropped(to="b", families=[4]) == 2


def test_what_makes_no_sense_changes_nothing(bed: Testbed) -> None:
    link = bed.links[0]
    with pytest.raises(TopologyError, match="is not an end of the link"):
        link.set_loss(0.5, to="c")
    with pytest.raises(TopologyError, match="is not a loss"):
        link.set_loss("half")
    with pytest.raises(TopologyError, match="is not a rate"):
        link.set_rate("10; reboot")
    Stream(bed.node("a"), bed.node("c"))

"""A switch that honours code points sees those of prioritised channels, by every transport, and of nobody else."""

import re

import pytest

from ringcast.lab.testbed.network import unavailable
from ringcast.lab.yarp.network import Cell, PriorityNetwork

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

PINGS = 20


@pytest.fixture(scope="module")
def network():
    with PriorityNetwork("switch") as made:
        yield made


def first(network):
    """How many packets the switch served before others, towards b."""
    (told,) = network.mesh.bed.run_scripts({"hub": "tc -s class show dev to-b"}, "cannot look at the queue")
    return int(re.search(r"class htb 1:10 .*?Sent \d+ bytes (\d+) pkt", told, re.DOTALL)[1])


@pytest.mark.parametrize("transport", ["udp", "tcp", "nak"])
def test_packets_of_a_high_class_go_first_and_usual_ones_do_not(network, transport):
    usual = Cell("switch", transport, "udp", 0.0, "none", 64)
    network.round_trips(usual, 1)
    before = first(network)
    assert network.round_trips(usual, PINGS).lost == 0
    assert first(network) == before
    assert network.round_trips(usual._replace(priority="packet"), PINGS).lost == 0
    urgent = first(network)
    assert urgent >= before + PINGS
    network.round_trips(usual, 1)  # usual again; what was under way may still come
    settled = first(network)
    assert network.round_trips(usual, PINGS).lost == 0
    assert first(network) <= settled + 2  # the last packets of the channel that was closed


def test_load_beside_it_and_priorities_set_while_messages_flow(network):
    cell = Cell("switch", "udp", "udp", 0.2, "packet", 64)
    assert len(network.round_trips(cell, PINGS).taken_ns) == PINGS
    for transport in ("nak", "tcp"):
        sent, lost = network.set_while_flowing(transport, 6)
        assert sent > 0
        assert lost == 0

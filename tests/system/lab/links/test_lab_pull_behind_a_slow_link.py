"""A mirror behind a slow link is pulled from: how stale that may be includes the way from the publisher."""

from __future__ import annotations

import itertools
import time

import pytest

from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

LENGTH, RATE = 50_000, "2mbit"
LEAST_WAY_S = 0.1
"""50 kB at 2 Mbit/s take 0.2 s, less what the link lets through at once."""


def test_the_way_from_the_publisher_is_in_the_bound() -> None:
    with Testbed(pair()) as bed, MeshNodes(bed, ["a", "b"]) as mesh:
        tag = mesh.sessions["a"].tag("lab/frames")
        publisher = tag.publisher()
        mesh.wait_for_publisher("lab/frames")
        there = mesh.sessions["b"].tag("lab/frames", create=False)
        subscriber = there.subscribe(transport="udp")
        bed.link("a", "b").set_rate(RATE)
        for number in range(6):
            publisher.send(bytes(LENGTH))
            assert subscriber.recv(timeout=30).seq == number
            time.sleep(0.05)
        history = there.history(at="subscriber")
        times = [message.sent_ns for message in history.since(0)]
        period_s = max(later - earlier for earlier, later in itertools.pairwise(times)) / 1e9
        history.latest()  # held on this very node: the pull takes no time to speak of
        assert period_s + LEAST_WAY_S < history.staleness_s() < period_s + 30

"""A link becomes too narrow for a stream: a subscription with a range gets less of it, and more when the link is wide
again. By a transport that repairs and by one that waits. (By udp, where each long message loses a piece, none comes;
the pieces that do come count then, see `tests/unit/daemon/fidelity/test_silence.py`.)"""

from __future__ import annotations

import itertools
import threading

import pytest

from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

LENGTH, PERIOD_S = 10_000, 0.02
NARROW = "2mbit"
"""Carries half of 50 messages a second."""


@pytest.mark.parametrize("transport", ["nak", "tcp"])
def test_less_while_it_is_narrow_and_more_when_it_is_wide(transport, eventually):
    with Testbed(pair()) as bed, MeshNodes(bed, ["a", "b"]) as mesh:
        tag = mesh.sessions["a"].tag("camera", depth=256)
        publisher = tag.publisher()
        mesh.wait_for_publisher("camera")
        there = mesh.sessions["b"].tag("camera", create=False)
        subscriber = there.subscribe(transport=transport, rate_hz=(20, 50))
        bed.link("a", "b").set_rate(NARROW)
        stop, found = threading.Event(), []

        def send():
            while not stop.wait(PERIOD_S):
                publisher.send(bytes(LENGTH))

        def receive():
            while not stop.is_set():
                try:
                    found.append(subscriber.recv(timeout=0.1).seq)
                except TimeoutError:
                    continue

        threads = [threading.Thread(target=run) for run in (send, receive)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: not subscriber.fidelity.best, patience_s=60)
            assert 20 <= subscriber.fidelity.rate_hz < 50
            assert subscriber.fidelity.why
            bed.link("a", "b").set_rate(None)
            eventually(lambda: subscriber.fidelity.best, patience_s=120)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert all(later > earlier for earlier, later in itertools.pairwise(found))

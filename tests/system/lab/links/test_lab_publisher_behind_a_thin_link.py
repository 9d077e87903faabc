"""The publisher's interface is shaped, the subscriber's is not: who chooses the transport knows how thin the line is,
while it is, and so does whoever looks at the channel on the subscriber's node."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest

from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

ASKED = "auto:relate2"
PERIOD_S = 0.01


def test_the_rate_of_its_queue_is_told_while_it_has_one(eventually):
    with Testbed(pair()) as bed, MeshNodes(bed, ["a", "b"]) as mesh:
        publisher = mesh.sessions["a"].publisher("cam", depth=256)
        mesh.wait_for_publisher("cam")
        subscriber = mesh.sessions["b"].subscribe("cam", transport=ASKED)
        stop = threading.Event()

        def send():
            while not stop.wait(PERIOD_S):
                publisher.send(bytes(200))

        def row():
            found = [one for one in mesh.sessions["b"].channels() if one.tag == "cam" and one.direction == "in"]
            return next((one for one in found if one.environment is not None and one.choices), None)

        def left():
            """What is left on the way in Mbit/s, as the subscriber's node and as the tag's keeper see it."""
            one = row()
            if one is None or one.environment.bandwidth_left_mbit is None:
                return 0.0, 0.0
            told = re.search(r"([\d.e+]+) Mbit/s", one.choices[0].environment)
            return one.environment.bandwidth_left_mbit, float(told[1]) if told else 0.0

        def is_thin():
            here, told = left()
            return 0 < here <= 2.0 and 0 < told <= 2.0

        thread = threading.Thread(target=send)
        thread.start()
        try:
            eventually(lambda: min(left()) > 100)
            bed.link("a", "b").set_rate("2mbit", to="b")
            eventually(is_thin)
            told = subprocess.run(
                [sys.executable, "-m", "ringcast", "channels", "--why"], capture_output=True, text=True, check=True,
                env=bed.node("b").environment,
            ).stdout  # fmt: skip
            assert f"cam, {ASKED}: 1 receivers," in told
            # What other streams and daemons take of it changes from one moment to the next.
            rates = re.search(r"us, ([\d.]+) Mbit/s; by", told), re.search(r"([\d.]+) Mbit/s left", told)
            assert all(rate is not None and 0 < float(rate[1]) <= 2 for rate in rates), told
            bed.link("a", "b").set_rate(None)
            eventually(lambda: min(left()) > 100)
        finally:
            stop.set()
            thread.join()
        subscriber.close()

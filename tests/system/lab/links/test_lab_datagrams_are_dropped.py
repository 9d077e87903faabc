"""A firewall drops all datagrams while connections pass: by plain udp nothing comes, and that is noticed."""

from __future__ import annotations

import threading
import time

import pytest

from ringcast.adapt.urgency import Rule
from ringcast.cli.run.agent import Agent
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

PERIOD_S = 0.02
RULE = ["INPUT", "-p", "udp", "-j", "DROP"]


def test_a_range_falls_while_nothing_comes_and_climbs_when_it_does(eventually):
    with Testbed(pair()) as bed, MeshNodes(bed, ["a", "b"]) as mesh:
        publisher = mesh.sessions["a"].tag("camera").publisher()
        mesh.wait_for_publisher("camera")
        subscriber = mesh.sessions["b"].tag("camera", create=False).subscribe(transport="udp", rate_hz=(20, 50))
        stop, found = threading.Event(), []

        def send():
            while not stop.wait(PERIOD_S):
                publisher.send(b"x")

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
            eventually(lambda: found)
            assert subscriber.fidelity.best
            bed.node("b").run(["iptables", "-w", "-I", *RULE])
            eventually(lambda: not subscriber.fidelity.best, patience_s=60)
            assert subscriber.fidelity.rate_hz == 20
            assert "nothing came" in subscriber.fidelity.why
            eventually(lambda: any("unheard" in row.counters for row in mesh.sessions["b"].channels()), patience_s=60)
            bed.node("b").run(["iptables", "-w", "-D", *RULE])
            eventually(lambda: subscriber.fidelity.best, patience_s=120)
            assert not any("unheard" in row.counters for row in mesh.sessions["b"].channels())
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("transport", ["udp", "nak"])
def test_the_agent_raises_a_tag_of_which_nothing_comes(eventually, transport):
    with Testbed(pair()) as bed, MeshNodes(bed, ["a", "b"]) as mesh:
        publisher = mesh.sessions["a"].tag("camera", transport=transport).publisher()
        mesh.wait_for_publisher("camera")
        stop, lines = threading.Event(), []

        def send():
            while not stop.wait(PERIOD_S):
                publisher.send(b"x")

        thread = threading.Thread(target=send)
        thread.start()
        agent = Agent(mesh.sessions["b"], "camera", Rule(60_000_000_000))

        def look():
            lines.extend(agent.look(time.monotonic() + 0.3))
            return lines

        try:
            eventually(look)
            assert {line["missed"] for line in lines} == {0}
            bed.node("b").run(["iptables", "-w", "-I", *RULE])
            eventually(lambda: any("after" in line for line in look()), patience_s=60)
            raised = next(line for line in lines if "after" in line)
            assert (raised["before"], raised["after"], raised["done"]) == ("normal", "high", "")
            assert raised["missed"] == raised["messages"] > 0
        finally:
            stop.set()
            thread.join()
            agent.close()

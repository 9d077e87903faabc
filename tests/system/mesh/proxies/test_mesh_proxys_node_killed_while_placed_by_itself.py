"""The node of a proxy that the mesh placed is killed: the stream goes on by way of the next best node, nothing twice.

Publisher and subscribers may spend too little CPU to do the scaling, so a node in between does: of two that can, one
takes it, and when that is killed the other.
"""

import threading
import time

import pytest

HZ = 400
COST_S = 1e-5
"""Of a message: to send one, to receive one, to scale one (`ringcast.placement.mesh.live.COSTS`)."""
ONE_STREAM = 1.25 * HZ * COST_S
"""Enough to send every message once (1.0), and not to scale every other one and send it to two nodes (1.5); nor to
receive every message and scale every other one (1.5)."""


@pytest.fixture
def flow():
    """Sends so many a second on a publisher, from a thread of its own."""
    stop = threading.Event()
    threads = []

    def start(pub):
        def send():
            began, sent = time.monotonic(), 0
            while not stop.wait(0.002):
                while sent < (time.monotonic() - began) * HZ:
                    pub.send(b"x" * 500)
                    sent += 1

        threads.append(threading.Thread(target=send))
        threads[-1].start()

    def end(pub):
        stop.set()
        for thread in threads:
            thread.join()
        while (pub.send(b"x") + 1) % 2:
            pass
        pub.send(b"end")

    start.end = end
    yield start
    stop.set()
    for thread in threads:
        thread.join()


def test_the_other_node_takes_over(make_mesh, eventually, take, flow, tmp_path):
    poor = tmp_path / "poor.toml"
    poor.write_text(f"[limits]\ncpu_share = {ONE_STREAM}\n")
    nodes = make_mesh(5, **{name: {"RINGCAST_CONFIG": str(poor)} for name in ("a", "b", "c")})
    a, b, c = nodes[:3]
    spare = {node.name: node for node in nodes[3:]}
    pub = a.session.publisher("scaled", depth=8192)
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    flow(pub)
    subs = [node.session.subscribe("scaled", every=2) for node in (b, c)]

    def proxies():
        """The nodes that both have their streams from, when both have one."""
        found = [{row.node for row in node.incoming(tag="scaled", every=2)} for node in (b, c)]
        return set.union(*found) if all(found) else set()

    eventually(lambda: len(proxies()) == 1 and proxies() <= set(spare))
    (first,) = proxies()
    (second,) = set(spare) - {first}
    spare[first].kill()
    eventually(lambda: proxies() == {second})
    assert all(word.at == f"node:{second}" for word in a.session.tags("scaled")[0].placed.values())
    assert all(f"its node {first} is gone" in word.why for word in a.session.tags("scaled")[0].placed.values())
    flow.end(pub)
    for sub in subs:
        numbers = [msg.seq for msg in take(sub, b"end")]
        assert numbers == sorted(set(numbers))  # nothing twice, nothing out of order
        assert all(number % 2 == 0 for number in numbers)

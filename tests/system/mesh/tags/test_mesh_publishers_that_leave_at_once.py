"""A publisher sends and leaves: subscribers on other nodes get all of it, whether its channel was open or not."""

import numpy as np
import pytest

COUNT = 60


@pytest.fixture
def brief(make_mesh, eventually):
    """Nodes a, b and c; b subscribes to a tag of a in some way, and a knows."""

    def subscribe(**wanted):
        a, b, c = make_mesh(3)
        a.session.tag("brief", depth=64, max_wait_s=30.0)
        eventually(lambda: b.session.tags("brief") and c.session.tags("brief"))
        sub = b.session.subscribe("brief", **wanted)
        eventually(lambda: a.session.tags("brief")[0].subscribers)
        return a, b, sub

    return subscribe


KILLED = f"""
    import os, signal, ringcast
    pub = ringcast.connect(start=False).publisher("brief")
    for _ in range({COUNT}):
        pub.send(b"x")
    os.kill(os.getpid(), signal.SIGKILL)
    """

WAYS = [{}, {"transport": "udp"}, {"reliable": True}, {"reliable": True, "transport": "nak"},
        {"reliable": True, "every": 7}, {"reliable": True, "at": "node:c"}]  # fmt: skip


def numbers(sub, every=1):
    wanted = list(range(0, COUNT, every))
    return [sub.recv(timeout=30).seq for _ in wanted] == wanted


@pytest.mark.parametrize("wanted", WAYS)
def test_before_anybody_has_a_channel(brief, eventually, wanted):
    a, b, sub = brief(**wanted)
    for _ in range(10):
        with a.session.publisher("brief") as pub:
            for _ in range(COUNT):
                pub.send(bytes(100))
        assert numbers(sub, wanted.get("every", 1))
    eventually(lambda: not b.incoming())


@pytest.mark.parametrize("wanted", WAYS[2:])
def test_faster_than_its_channel_carries(brief, eventually, wanted):
    a, b, sub = brief(**wanted)
    for _ in range(10):
        with a.session.publisher("brief") as pub:
            eventually(b.incoming)
            for _ in range(COUNT):
                pub.send(bytes(20_000))
        assert numbers(sub, wanted.get("every", 1))
    eventually(lambda: not b.incoming())


def test_killed_as_soon_as_it_has_sent(brief, run_program, eventually):
    a, b, sub = brief(reliable=True)
    for _ in range(3):
        run_program(KILLED, a.daemon.socket_path).process.wait(timeout=30)
        assert numbers(sub)
    eventually(lambda: not b.incoming())


@pytest.mark.parametrize("reliable", [False, True])
@pytest.mark.parametrize("place", ["publisher", "subscriber", "node:a", "node:b", "node:c"])
def test_scaled_on_the_way(make_mesh, eventually, place, reliable):
    a, b, c = make_mesh(3)
    a.session.tag("camera", codec="image", depth=64, max_wait_s=30.0)
    eventually(lambda: b.session.tags("camera") and c.session.tags("camera"))
    sub = b.session.subscribe("camera", size=(4, 3), at=place, reliable=reliable)
    eventually(lambda: a.session.tags("camera")[0].subscribers)
    for _ in range(2):
        with a.session.publisher("camera") as pub:
            for _ in range(COUNT):
                pub.send(np.zeros((6, 8, 3), np.uint8))
        assert numbers(sub)

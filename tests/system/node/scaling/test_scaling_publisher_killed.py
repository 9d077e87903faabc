"""SIGKILL of a publisher while it scales: no reader sees a torn message, and what follows is scaled again."""

from __future__ import annotations

import numpy as np
import pytest

import ringcast

SENDER = """
    import numpy as np
    import ringcast
    with ringcast.connect() as session:
        pub = session.publisher("camera", codec="image", depth=64)
        print("sending")
        i = 0
        while True:
            pub.send(np.full((120, 160, 3), i % 256, np.uint8))
            i += 1
    """


def whole(msg):
    assert msg.data.shape == (30, 40, 3)
    assert (msg.data == msg.seq % 256).all()


@pytest.mark.parametrize("at", ["publisher", "node:here", "subscriber"])
def test_what_was_received_is_whole_and_the_next_publisher_is_scaled(make_daemon, run_program, eventually, at):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        tag = session.tag("camera", codec="image", depth=64)
        sub = tag.subscribe(size=(40, 30), at=at)
        sender = run_program(SENDER, daemon.socket_path)
        for _ in range(30):
            whole(sub.recv(timeout=30))
        sender.kill()
        eventually(lambda: tag.publishers() == [])
        with tag.publisher() as pub:
            pub.send(np.full((90, 80, 3), 7, np.uint8))
            while (msg := sub.recv(timeout=30)).publisher.pid == sender.pid:
                whole(msg)
            assert (msg.seq, msg.lost) == (0, 0)
            assert msg.data.shape == (30, 40, 3)
            assert (msg.data == 7).all()
        # Nothing is left of the stages but the rings that linger.
        eventually(lambda: session.status().rings == session.status().lingering)


def test_the_publishers_node_scales_for_another_node_until_it_is_killed(make_mesh, run_program, eventually):
    a, b = make_mesh(2)
    sub = b.session.subscribe("camera", size=(40, 30), codec="image", depth=64)
    sender = run_program(SENDER, a.daemon.socket_path)
    for _ in range(10):
        whole(sub.recv(timeout=30))
    sender.kill()
    eventually(lambda: not b.incoming())
    with a.session.publisher("camera") as pub:
        pub.send(np.full((90, 80, 3), 7, np.uint8))
        while (msg := sub.recv(timeout=30)).publisher.pid == sender.pid:
            whole(msg)
        assert (msg.seq, msg.data.shape) == (0, (30, 40, 3))


def test_a_daemon_that_is_started_again_asks_for_the_stages_again(make_daemon, eventually):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("camera", codec="image")
        subs = [session.subscribe("camera", size=(4, 3), at=at) for at in ("publisher", "node:here", "subscriber")]
        for value in range(3):
            pub.send(np.full((12, 16), value, np.uint8))
        for sub in subs:
            assert [sub.recv(timeout=30).seq for _ in range(3)] == [0, 1, 2]
        daemon.kill()
        pub.send(np.full((12, 16), 3, np.uint8))
        daemon.start("--name", "here")
        eventually(lambda: session.connected)
        pub.send(np.full((12, 16), 4, np.uint8))
        for sub in subs:
            found = [sub.recv(timeout=30) for _ in range(2)]
            assert [(msg.seq, msg.lost, int(msg.data.max())) for msg in found] == [(3, 0, 3), (4, 0, 4)]

"""A new publisher's first burst is longer than its ring: whoever subscribed reliably before gets all of it."""

import threading

import numpy as np
import pytest

DEPTH, COUNT = 16, 400


def sent_at_once(pub, payload=b"x"):
    """A thread, since the publisher has to wait for its reader."""

    def send():
        for _ in range(COUNT):
            pub.send(payload)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def all_of(*subs):
    """In turns, as each is waited for."""
    got = [[sub.recv(timeout=30) for sub in subs] for _ in range(COUNT)]
    return all((msg.seq, msg.lost) == (seq, 0) for seq, row in enumerate(got) for msg in row)


@pytest.mark.parametrize("pattern", ["burst", "*"])
def test_on_the_same_node(session, connect, pattern):
    session.tag("burst", depth=DEPTH, max_wait_s=30.0)
    subs = [connect().subscribe(pattern, reliable=True) for _ in range(2)]
    for _ in range(10):
        with session.publisher("burst") as pub:
            sender = sent_at_once(pub)
            assert all_of(*subs)
            sender.join()


@pytest.mark.parametrize("place", ["publisher", "node:a"])
def test_scaled_on_the_way(shared_mesh, place):
    (node,) = shared_mesh(1)
    node.session.tag("camera", codec="image", depth=DEPTH, max_wait_s=30.0)
    sub = node.session.subscribe("camera", size=(4, 3), reliable=True, at=place)
    for _ in range(3):
        with node.session.publisher("camera") as pub:
            sender = sent_at_once(pub, np.zeros((6, 8, 3), np.uint8))
            assert all_of(sub)
            sender.join()


@pytest.mark.parametrize("wanted", [{}, {"transport": "nak"}, {"at": "node:c"}])
def test_on_another_node(shared_mesh, eventually, wanted):
    a, b, _ = shared_mesh(3)
    a.session.tag("burst", depth=DEPTH, max_wait_s=30.0)
    eventually(lambda: b.session.tags("burst"))
    sub = b.session.subscribe("burst", reliable=True, **wanted)
    eventually(lambda: a.session.tags("burst")[0].subscribers)
    for _ in range(5):
        with a.session.publisher("burst") as pub:
            sender = sent_at_once(pub)
            assert all_of(sub)
            sender.join()


@pytest.mark.parametrize("place", ["publisher", "subscriber", "node:a", "node:b", "node:c"])
def test_on_another_node_and_scaled(shared_mesh, eventually, place):
    a, b, c = shared_mesh(3)
    a.session.tag("camera", codec="image", depth=DEPTH, max_wait_s=30.0)
    eventually(lambda: b.session.tags("camera") and c.session.tags("camera"))
    sub = b.session.subscribe("camera", size=(4, 3), reliable=True, at=place)
    eventually(lambda: a.session.tags("camera")[0].subscribers)
    with a.session.publisher("camera") as pub:
        sender = sent_at_once(pub, np.zeros((6, 8, 3), np.uint8))
        assert all_of(sub)
        sender.join()

"""Pulling at another size, from any of the three places."""

from __future__ import annotations

import numpy as np
import pytest

import ringcast
from ringcast.client.rings.local_history import LocalHistory
from ringcast.scaling.averaging import averaged

RNG = np.random.default_rng(12)
FRAMES = [RNG.integers(0, 256, (24, 32, 3), np.uint8) for _ in range(9)]


@pytest.fixture
def nodes(shared_mesh, eventually):
    a, b, c = shared_mesh(3)
    pub = a.session.publisher("camera", codec="image")
    eventually(lambda: b.knows("camera") and c.knows("camera"))
    sub, other = b.session.subscribe("camera"), c.session.subscribe("camera")
    for frame in FRAMES:
        pub.send(frame)
    for reader in (sub, other):
        while reader.recv(timeout=30).seq < 8:
            pass
    return a, b, c, (pub, sub, other)


@pytest.mark.parametrize("at", [None, "publisher", "subscriber", "node:a", "node:c"])
def test_every_place_gives_the_same(nodes, at):
    tag = nodes[1].session.tag("camera")
    with tag.history(at=at, size=(8, 6), every=2) as history:
        found = history.range(1, 8)
        assert [(msg.seq, msg.lost) for msg in found] == [(2, 0), (4, 0), (6, 0), (8, 0)]
        for msg in found:
            assert (msg.data == averaged(FRAMES[msg.seq], 6, 8)).all()
        assert (history.latest().data == found[-1].data).all()
        assert (history.at(4).data == found[1].data).all()
        assert history.bounds() == (0, 8)
        assert (history.before(found[0].sent_ns).data == found[0].data).all()


def test_on_the_publishers_own_node(nodes):
    history = nodes[0].session.tag("camera").history(size=(5, 5))
    assert isinstance(history, LocalHistory)
    assert (history.at(3).data == averaged(FRAMES[3], 5, 5)).all()
    assert (history.latest(copy=False).data == averaged(FRAMES[8], 5, 5)).all()


def test_what_came_here_scaled_is_pulled_as_it_came(nodes):
    b = nodes[1]
    sub = b.session.subscribe("camera", size=(4, 3), start="earliest")
    while sub.recv(timeout=30).seq < 8:
        pass
    held = b.session.tag("camera").history(at="subscriber", size=(4, 3))
    assert (held.at(5).data == averaged(FRAMES[5], 3, 4)).all()
    # Whoever asks for no size is not shown a scaled mirror.
    assert (b.session.tag("camera").history(at="subscriber").at(5).data == FRAMES[5]).all()


def test_one_that_cannot_be_scaled_says_so(nodes, eventually):
    a, b, *_ = nodes
    pub = a.session.publisher("field", codec="numpy")
    eventually(lambda: b.knows("field"))
    pub.send(np.ones(4))
    with pytest.raises(ringcast.errors.ScaleError, match="no area"):
        b.session.tag("field").history(at="publisher", size=(2, 2)).latest()
    pub.send(np.ones((4, 4)))
    assert b.session.tag("field").history(at="publisher", size=(2, 2)).latest().data.tolist() == [[1.0, 1.0]] * 2

"""A stream scaled in space at the publisher, at the subscriber or on a node is the same stream, byte for byte."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import ringcast
from ringcast.scaling.averaging import averaged

PLACES = ["publisher", "subscriber", "node:a", "node:b", "node:c"]
RNG = np.random.default_rng(11)
FRAMES = [RNG.integers(0, 256, (24, 32, 3), np.uint8) for _ in range(8)]


def frames(sub, count):
    return [sub.recv(timeout=30) for _ in range(count)]


@pytest.mark.parametrize("place", ["publisher", "subscriber", "node:here"])
def test_on_one_node(make_daemon, place):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("camera", codec="image")
        pub.send(FRAMES[0], event_ns=5)
        sub = session.subscribe("camera", size=(8, 6), at=place)
        sent = [pub.send(frame, event_ns=7, discardable=True) for frame in FRAMES]
        for seq, frame, msg in zip(sent, FRAMES, frames(sub, len(FRAMES)), strict=True):
            assert (msg.seq, msg.lost, msg.event_ns, msg.discardable) == (seq, 0, 7, True)
            assert (msg.data == averaged(frame, 6, 8)).all()
            assert msg.publisher == pub.info


@pytest.mark.parametrize("reliable", [False, True])
def test_all_places_give_the_same_bytes(shared_mesh, eventually, reliable):
    a, b, c = shared_mesh(3)
    pub = a.session.publisher("camera", codec="image", depth=64, max_wait_s=20.0)
    eventually(lambda: b.knows("camera") and c.knows("camera"))
    pub.send(FRAMES[0])
    subs = [node.session.subscribe("camera", size=(7, 5), every=2, at=at, reliable=reliable)
            for node in (a, b) for at in PLACES]  # fmt: skip
    for i in range(1, 21):
        pub.send(FRAMES[i % 8])
    wanted = [(i, 0, averaged(FRAMES[i % 8], 5, 7).tobytes()) for i in range(2, 21, 2)]
    for sub in subs:
        assert [(msg.seq, msg.lost, msg.data.tobytes()) for msg in frames(sub, 10)] == wanted
    legs = {(row.direction, row.node, row.every, row.size) for row in c.session.channels()}
    assert legs == {("in", "a", 1, None), ("out", "b", 2, (7, 5))}


def test_many_modes_at_once_on_one_tag(shared_mesh, eventually):
    a, b, c = shared_mesh(3)
    pub = a.session.publisher("camera", codec="image", depth=128)
    eventually(lambda: b.knows("camera") and c.knows("camera"))
    specs = [((8, 6), 1, "publisher"), ((8, 6), 1, "publisher"), ((4, 3), 1, "publisher"), ((8, 6), 3, "node:c"),
              ((5, 5), 2, "subscriber"), (None, 1, "publisher"), (None, 5, "node:c")]  # fmt: skip
    subs = [b.session.subscribe("camera", size=size, every=every, at=at) for size, every, at in specs]
    for i in range(31):
        pub.send(FRAMES[i % 8])
    for sub, (size, every, _) in zip(subs, specs, strict=True):
        for i, msg in zip(range(0, 31, every), frames(sub, len(range(0, 31, every))), strict=True):
            whole = FRAMES[i % 8]
            assert (msg.seq, msg.lost) == (i, 0)
            assert (msg.data == (whole if size is None else averaged(whole, size[1], size[0]))).all()
    # Equal scalings share a channel.
    assert len(b.incoming(size=(8, 6), every=1)) == 1


def test_nobody_wants_it_any_more(shared_mesh, eventually):
    a, b = shared_mesh(2)
    pub = a.session.publisher("camera", codec="image")
    eventually(lambda: b.knows("camera"))

    def rings():  # without that of the daemon's own counters, which comes when there are channels
        return a.session.status().rings - len(a.session.tags("@ringcast/**"))

    before = rings()
    with b.session.subscribe("camera", size=(8, 6)) as sub:
        pub.send(FRAMES[0])
        sub.recv(timeout=30)
        assert rings() == before + 1
        assert len(a.session.tag("camera").publishers()) == 1
    eventually(lambda: rings() == before)
    pub.send(FRAMES[1])


def test_a_publisher_that_comes_later_is_scaled_too(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        subs = [session.subscribe("camera", size=(8, 6), at=at, codec="image") for at in ("publisher", "subscriber")]
        pub = session.publisher("camera")
        for frame in FRAMES:
            pub.send(frame)
        for sub in subs:
            assert [(msg.seq, msg.lost) for msg in frames(sub, 8)] == [(i, 0) for i in range(8)]


def test_history_before_the_subscription_is_scaled_too(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("camera", codec="image")
        for frame in FRAMES:
            pub.send(frame)
        name = session.node
        for at in ("publisher", "subscriber", f"node:{name}"):
            sub = session.subscribe("camera", size=(4, 4), at=at, start="earliest")
            found = frames(sub, 8)
            assert [(msg.seq, msg.lost) for msg in found] == [(i, 0) for i in range(8)]
            assert all((msg.data == averaged(FRAMES[i], 4, 4)).all() for i, msg in enumerate(found))


def test_wildcards(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        left, right = session.publisher("eye/left", codec="image"), session.publisher("eye/right", codec="numpy")
        sub = session.subscribe("eye/*", size=(4, 4))
        left.send(FRAMES[0])
        right.send(FRAMES[1].astype(np.float64))
        found = {msg.tag: msg.data for msg in frames(sub, 2)}
        assert (found["eye/left"] == averaged(FRAMES[0], 4, 4)).all()
        assert (found["eye/right"] == averaged(FRAMES[1].astype(np.float64), 4, 4)).all()
        session.tag("eye/words", codec="json")
        with pytest.raises(ringcast.QosMismatch, match="'json', only audio, image, numpy"):
            session.subscribe("eye/*", size=(4, 4))


@pytest.mark.parametrize("at", ["publisher", "subscriber", "node:here"])
def test_a_tag_that_comes_later_and_cannot_be_scaled_ends_a_wildcard(make_daemon, at):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        sub = session.subscribe("eye/*", size=(4, 4), at=at)
        with (
            session.publisher("eye/left", codec="image") as left,
            session.publisher("eye/words", codec="json") as words,
        ):
            words.send("blink")
            with pytest.raises(ringcast.QosMismatch, match="'json', only audio, image, numpy"):
                sub.recv(timeout=30)
            left.send(FRAMES[0])


@pytest.mark.parametrize("at", ["publisher", "node:here"])
def test_a_publisher_leaves_and_what_it_sent_is_received(make_daemon, eventually, capfd, at):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        sub = session.subscribe("camera", size=(4, 4), at=at, codec="image")
        for _ in range(2):
            with session.publisher("camera") as pub:
                for frame in FRAMES:
                    pub.send(frame)
                if at != "publisher":  # a process of its own may not have begun yet
                    assert sub.recv(timeout=30).seq == 0
                    eventually(lambda: sub.latest.seq == 7)
            first = 0 if at == "publisher" else 1
            assert [(msg.seq, msg.lost) for msg in frames(sub, 8 - first)] == [(i, 0) for i in range(first, 8)]
        eventually(lambda: session.status().rings == session.status().lingering)
    daemon.stop()
    assert "WARNING" not in capfd.readouterr().err


@pytest.mark.parametrize("at", ["publisher", "node:here", "subscriber"])
def test_a_tag_destroyed_under_a_stage(make_daemon, eventually, at):
    daemon = make_daemon("--name", "here")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        with ringcast.connect(socket=daemon.socket_path, start=False) as other:
            sub = session.subscribe("camera", size=(4, 4), at=at, codec="image")
            pub = other.publisher("camera")
            pub.send(FRAMES[0])
            sub.recv(timeout=30)
            session.tag("camera").destroy(force=True)
            with pytest.raises(ringcast.TagDestroyed):
                sub.recv(timeout=30)
            eventually(lambda: session.status().rings == 0)
            again = session.subscribe("camera", size=(2, 2), at=at, codec="image")
            with session.publisher("camera") as fresh:
                fresh.send(FRAMES[1])
                assert again.recv(timeout=30).data.shape == (2, 2, 3)


def test_every_way_of_receiving(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("camera", codec="image")
        for at in ("publisher", "subscriber"):
            sub = session.subscribe("camera", size=(4, 4), at=at)
            small = averaged(FRAMES[0], 4, 4)
            for _ in range(6):
                pub.send(FRAMES[0])
            assert (sub.recv(timeout=30).data == small).all()
            assert (sub.recv(timeout=30, copy=False).data == small).all()
            assert all((msg.data == small).all() for msg in sub.recv_many(1, timeout=30))
            assert (asyncio.run(sub.recv_async(timeout=30)).data == small).all()
            assert (sub.latest.data == small).all()
            assert (sub.blackboard().wait_newer(timeout=30).data == small).all()
            with sub.queue() as queue:
                assert (queue.get(timeout=30).data == small).all()
            sub.close()


def test_what_cannot_be_scaled_is_refused_at_the_call(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        tag = session.tag("words", codec="json")
        for call in (tag.subscribe, tag.history):
            with pytest.raises(ringcast.QosMismatch, match="'json', only audio, image, numpy"):
                call(size=(4, 4))
        with pytest.raises(ringcast.errors.ScaleError, match="no width and height"):
            session.tag("line", codec="numpy", schema={"shape": [5]}).subscribe(size=(4, 4))
        for bad in ((0, 4), (4,), "44", (True, 4), 4):
            with pytest.raises(ValueError, match="size is"):
                session.tag("camera", codec="image").subscribe(size=bad)
        with pytest.raises(ValueError, match="choose one"):
            tag.subscribe(every=2, rate_hz=5)


def test_a_message_that_cannot_be_scaled_is_lost_and_the_next_is_not(daemon):
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        pub = session.publisher("field", codec="numpy")
        there, here = (session.subscribe("field", size=(2, 2), at=at) for at in ("publisher", "subscriber"))
        for value in (np.ones((4, 4)), np.ones(4), np.ones((6, 6))):
            pub.send(value)
        assert [(msg.seq, msg.lost) for msg in frames(there, 2)] == [(0, 0), (2, 1)]
        assert here.recv(timeout=30).seq == 0
        with pytest.raises(ringcast.DecodeError, match="no area"):
            here.recv(timeout=30)
        assert here.recv(timeout=30).seq == 2

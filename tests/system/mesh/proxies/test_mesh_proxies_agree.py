"""A stream scaled at the publisher, at the subscriber or on a node in between is the same stream."""

import threading

import pytest

PLACES = ["publisher", "subscriber", "node:a", "node:b", "node:c"]


@pytest.mark.parametrize("reliable", [False, True])
def test_all_places_give_the_same_messages(make_mesh, eventually, take, reliable):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("scaled", depth=512)
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    pub.send(b"before")
    subs = [b.session.subscribe("scaled", every=4, at=place, reliable=reliable) for place in PLACES]
    for i in range(1, 101):
        pub.send(b"%d" % i)
    for sub in subs:
        got = take(sub, b"100")
        assert [msg.seq for msg in got] == list(range(4, 101, 4))
        assert [msg.data for msg in got] == [b"%d" % i for i in range(4, 101, 4)]
        assert [msg.lost for msg in got] == [0] * 25
        assert {msg.publisher.node for msg in got} == {"a"}
    legs = {(row.direction, row.node, row.every) for row in c.session.channels()}
    assert legs == {("in", "a", 1), ("out", "b", 4)}


def test_many_modes_at_once_on_one_tag(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("modes")
    eventually(lambda: b.knows("modes") and c.knows("modes"))
    specs = [(1, "publisher"), (2, "publisher"), (3, "node:c"), (2, "node:c"), (5, "subscriber")]
    subs = [b.session.subscribe("modes", every=every, at=at) for every, at in specs]
    for i in range(61):
        pub.send(b"%d" % i)
    for sub, (every, _) in zip(subs, specs, strict=True):
        assert [(msg.seq, msg.lost) for msg in take(sub, b"60")] == [(i, 0) for i in range(0, 61, every)]


def test_a_message_sent_while_a_proxy_is_opened_is_not_loss(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("busy", depth=4096)
    eventually(lambda: b.knows("busy") and c.knows("busy"))
    stop = threading.Event()

    def send():
        while not stop.wait(0.0005):
            pub.send(b"x")

    sender = threading.Thread(target=send)
    sender.start()
    try:
        subs = [b.session.subscribe("busy", every=2, at=at) for at in ("node:c", "publisher", "node:c")]
    finally:
        stop.set()
        sender.join()
    if pub.send(b"x") % 2 == 0:
        pub.send(b"x")
    assert pub.send(b"end") % 2 == 0
    for sub in subs:
        assert {msg.lost for msg in take(sub, b"end")} == {0}


def test_the_node_in_between_is_killed(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("scaled", depth=256)
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    sub, plain = b.session.subscribe("scaled", every=2, at="node:c"), b.session.subscribe("scaled")
    for i in range(10):
        pub.send(b"%d" % i)
    assert [msg.seq for msg in take(sub, b"8")] == [0, 2, 4, 6, 8]
    c.kill()
    for i in range(10, 20):
        pub.send(b"%d" % i)
    assert [msg.seq for msg in take(plain, b"19")] == list(range(20))
    # The publisher's node scales instead.
    eventually(lambda: b.incoming(node="a", every=2))
    for i in range(20, 31):
        pub.send(b"%d" % i)
    assert [(msg.seq, msg.lost) for msg in take(sub, b"30")] == [(i, 0) for i in range(10, 31, 2)]


def test_large_messages_pass_through_a_node_in_between(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("video", capacity_bytes=8 << 20)
    eventually(lambda: b.knows("video") and c.knows("video"))
    sub = b.session.subscribe("video", every=2, at="node:c")
    for i in range(6):
        pub.send(bytes([i]) * 300_000)
        if i % 2 == 0:
            msg = sub.recv(timeout=30)
            assert (msg.seq, msg.lost, msg.data) == (i, 0, bytes([i]) * 300_000)


def test_a_tag_destroyed_under_its_remote_readers(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("doomed")
    eventually(lambda: b.knows("doomed"))
    sub = b.session.subscribe("doomed")
    pub.send(b"x")
    sub.recv(timeout=30)
    b.session.tag("doomed").destroy(force=True)
    eventually(lambda: not b.incoming())
    assert b.session.status().node == "b"
    with b.session.subscribe("other") as other, a.session.publisher("other") as fine:
        fine.send(b"fine")
        assert other.recv(timeout=30).data == b"fine"

"""A subscriber on one node, publishers on another: the same messages as on one node."""

import pytest

import ringcast


def numbered(messages):
    return [(msg.seq, msg.data, msg.lost) for msg in messages]


def test_order_numbers_and_times_are_the_publishers(make_mesh, eventually, take):
    a, b = make_mesh(2)
    tag = a.session.tag("lab/x")
    pub, near = tag.publisher(), tag.subscribe()
    eventually(lambda: b.knows("lab/x"))
    far = b.session.subscribe("lab/x")
    for i in range(500):
        pub.send(b"%d" % i, event_ns=1000 + i)
    here, there = take(near, b"499"), take(far, b"499")
    assert numbered(there) == [(i, b"%d" % i, 0) for i in range(500)]
    assert [msg.event_ns for msg in there] == [1000 + i for i in range(500)]
    assert [msg.sent_ns for msg in there] == [msg.sent_ns for msg in here]
    assert {msg.publisher.node for msg in there} == {"a"}
    assert {msg.publisher.incarnation for msg in there} == {pub.incarnation}


def test_both_directions_on_one_tag(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pubs = [node.session.publisher("talk") for node in (a, b)]
    eventually(lambda: a.knows("talk", 2) and b.knows("talk", 2))
    subs = [node.session.subscribe("talk") for node in (a, b)]
    for pub, word in zip(pubs, (b"from a", b"from b"), strict=True):
        pub.send(word)
    for sub in subs:
        assert sorted(sub.recv(timeout=30).data for _ in range(2)) == [b"from a", b"from b"]


def test_the_first_message_after_subscribing_is_never_lost(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("first")
    eventually(lambda: b.knows("first"))
    for i in range(20):
        with b.session.subscribe("first", transport=("udp", "tcp")[i % 2]) as sub:
            seq = pub.send(b"%d" % i)
            msg = sub.recv(timeout=30)
            assert (msg.seq, msg.data, msg.lost) == (seq, b"%d" % i, 0)


def test_publishers_know_of_remote_subscribers(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("count")
    eventually(lambda: b.knows("count"))
    sub = b.session.subscribe("count")
    assert pub.wait_for_subscribers(1, timeout=30) == 1
    sub.close()
    eventually(lambda: pub.subscribers == 0)


def test_subscribers_with_equal_wishes_share_a_channel(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("shared")
    eventually(lambda: b.knows("shared"))
    subs = [b.session.subscribe("shared") for _ in range(3)] + [b.session.subscribe("*")]
    scaled = b.session.subscribe("shared", every=2, at="publisher")
    assert len(b.incoming()) == 2
    for i in range(10):
        pub.send(b"%d" % i)
    assert {tuple(msg.seq for msg in take(sub, b"9")) for sub in subs} == {tuple(range(10))}
    assert [msg.seq for msg in take(scaled, b"8")] == [0, 2, 4, 6, 8]
    scaled.close()
    eventually(lambda: len(b.incoming()) == 1)
    for sub in subs:
        sub.close()
    eventually(lambda: not b.incoming() and not [row for row in a.session.channels() if row.direction == "out"])


def test_history_reaches_a_late_subscriber(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("past", depth=64)
    for i in range(20):
        pub.send(b"%d" % i)
    eventually(lambda: b.knows("past"))
    for transport in ("udp", "tcp"):
        earliest = b.session.subscribe("past", start="earliest", transport=transport)
        assert [msg.seq for msg in take(earliest, b"19")] == list(range(20))
        earliest.close()
        eventually(lambda: not b.incoming())
    late = b.session.subscribe("past", start="earliest")
    # The publisher itself learns of the channel with its next message: this one and no other.
    pub.send(b"now")
    assert [msg.seq for msg in take(late, b"now")] == list(range(21))


def test_a_publisher_that_comes_later_is_heard_from_its_first_message(make_mesh, take):
    a, b = make_mesh(2)
    for i in range(10):
        with b.session.subscribe(f"later/{i}") as sub, a.session.publisher(f"later/{i}") as pub:
            pub.send(b"first")
            pub.send(b"second")
            assert [(msg.seq, msg.lost) for msg in take(sub, b"second")] == [(0, 0), (1, 0)]


def test_a_publisher_that_leaves_is_read_to_the_end(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("brief")
    eventually(lambda: b.knows("brief"))
    sub = b.session.subscribe("brief", reliable=True)
    for i in range(100):
        pub.send(b"%d" % i)
    eventually(lambda: b.incoming()[0].messages == 100)
    pub.close()
    eventually(lambda: not b.incoming())
    assert [msg.seq for msg in take(sub, b"99")] == list(range(100))


def test_wildcards_follow_publishers_of_all_nodes(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    early = a.session.publisher("lab/a/temp")
    eventually(lambda: c.knows("lab/a/temp"))
    wild = c.session.subscribe("lab/*/temp")
    late = b.session.publisher("lab/b/temp")
    other = b.session.publisher("lab/b/humidity")
    eventually(lambda: len(c.incoming()) == 2)
    for pub in (other, early, late):
        pub.send(b"x")
    got = [wild.recv(timeout=30) for _ in range(2)]
    assert sorted((str(msg.tag), msg.publisher.node) for msg in got) == [("lab/a/temp", "a"), ("lab/b/temp", "b")]


def test_codecs_and_attributes_are_the_creators(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.publisher("typed", codec="json", depth=32)
    eventually(lambda: b.knows("typed"))
    tag = b.session.tag("typed")
    assert (tag.attributes.codec, tag.attributes.depth) == ("json", 32)
    sub = tag.subscribe()
    pub.send({"a": [1, 2]})
    assert sub.recv(timeout=30).data == {"a": [1, 2]}


def test_large_messages_arrive_whole(make_mesh, eventually, take):
    a, b = make_mesh(2)
    pub = a.session.publisher("video", capacity_bytes=8 << 20, depth=64)
    eventually(lambda: b.knows("video"))
    sub = b.session.subscribe("video")
    frames = [bytes([i]) * 300_000 for i in range(12)]
    sizes = [frames[0], b"small", *frames[1:], b"end"]
    got = []
    for i, frame in enumerate(sizes):
        pub.send(frame)
        if i % 4 == 3:
            got += [sub.recv(timeout=30) for _ in range(4)]
    got += take(sub, b"end")
    assert [msg.data for msg in got] == sizes
    assert [msg.lost for msg in got] == [0] * len(sizes)


@pytest.mark.parametrize("spec", [{"transport": "pigeon"}, {"transport": "udp", "reliable": True}])
def test_what_no_transport_promises_is_refused(make_mesh, spec):
    a, _ = make_mesh(2)
    with pytest.raises(ringcast.QosMismatch) as caught:
        a.session.subscribe("x", **spec)
    assert spec["transport"] in str(caught.value)

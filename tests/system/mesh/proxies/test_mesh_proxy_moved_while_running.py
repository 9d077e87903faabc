"""A proxy moves, or a transport is exchanged, while messages flow: nothing comes twice, out of order, or is lost."""

import itertools
import threading

import pytest

PLACES = ["node:c", "subscriber", "publisher", "node:b", "node:c", "publisher", "auto"]


def seqs_and_losses(messages):
    return [msg.seq for msg in messages], sum(msg.lost for msg in messages)


@pytest.mark.parametrize(("reliable", "depth"), [(False, 8192), (True, 8192), (True, 16)])
def test_the_subscriber_moves_its_proxy(make_mesh, eventually, take, flow, reliable, depth):
    a, b, c = make_mesh(3)
    tag = a.session.tag("scaled", depth=depth, max_wait_s=30)
    pub = tag.publisher()
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    sub = b.session.subscribe("scaled", every=4, reliable=reliable, at="publisher")
    got = []
    taker = threading.Thread(target=lambda: got.extend(take(sub, b"end")))
    taker.start()
    flow(pub)
    for place in PLACES:
        sub.move(at=place)
    flow.end(pub, 4)
    taker.join()
    numbers, lost = seqs_and_losses(got)
    assert lost == 0
    assert numbers == list(range(numbers[0], numbers[-1] + 1, 4))
    # What it left is closed when its reader has been shown what continues it.
    eventually(lambda: len(b.incoming(tag="scaled")) == 1)


def test_the_transport_is_exchanged(make_mesh, eventually, take, flow):
    a, b = make_mesh(2)
    pub = a.session.publisher("stream", depth=8192)
    eventually(lambda: b.knows("stream"))
    sub = b.session.subscribe("stream")
    flow(pub)
    for transport in ("tcp", "udp", "tcp"):
        sub.move(transport=transport)
        assert [row.transport for row in b.incoming(tag="stream")] == [transport]
    flow.end(pub, 1)
    numbers, lost = seqs_and_losses(take(sub, b"end"))
    assert (numbers, lost) == (list(range(numbers[0], numbers[-1] + 1)), 0)


def test_an_administrator_moves_everybodys_proxy(make_mesh, eventually, take, flow):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("scaled", depth=8192)
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    subs = [b.session.subscribe("scaled", every=every, at="publisher") for every in (2, 2, 4)]
    flow(pub)
    # Said on a node that does not keep the tag.
    b.session.set_channel("scaled", at="node:c")
    eventually(lambda: {row.node for row in b.incoming(tag="scaled")} == {"c"})
    a.session.set_channel("scaled", node="b", at="subscriber", transport="tcp")
    eventually(lambda: [(row.every, row.transport) for row in b.incoming(tag="scaled")] == [(1, "tcp")])
    a.session.set_channel("scaled", node="b", at="auto", transport="")
    a.session.set_channel("scaled", at="auto")
    eventually(lambda: {(row.node, row.every) for row in b.incoming(tag="scaled")} == {("a", 2), ("a", 4)})
    flow.end(pub, 4)
    for sub, every in zip(subs, (2, 2, 4), strict=True):
        numbers, lost = seqs_and_losses(take(sub, b"end"))
        assert (numbers, lost) == (list(range(numbers[0], numbers[-1] + 1, every)), 0)


def test_the_tags_attributes_choose_for_those_who_do_not(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("chosen", at="node:c", transport="tcp")
    eventually(lambda: b.knows("chosen") and c.knows("chosen"))
    sub = b.session.subscribe("chosen", every=2)
    other = b.session.subscribe("chosen", every=2, at="publisher", transport="udp")
    assert {(row.node, row.transport) for row in b.incoming(tag="chosen")} == {("c", "tcp"), ("a", "udp")}
    for i in range(5):
        pub.send(b"%d" % i)
    assert [msg.seq for msg in take(sub, b"4")] == [msg.seq for msg in take(other, b"4")] == [0, 2, 4]


def test_a_proxys_node_dies_and_returns(make_mesh, eventually, take, flow):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("scaled", depth=8192)
    eventually(lambda: b.knows("scaled") and c.knows("scaled"))
    sub = b.session.subscribe("scaled", every=2, at="node:c")
    flow(pub)
    c.kill()
    eventually(lambda: {row.node for row in b.incoming(tag="scaled")} == {"a"})
    c.restart()
    eventually(lambda: {row.node for row in b.incoming(tag="scaled")} == {"c"})
    flow.end(pub, 2)
    numbers, lost = seqs_and_losses(take(sub, b"end"))
    assert (numbers, lost) == (list(range(numbers[0], numbers[-1] + 1, 2)), 0)


def test_a_move_that_is_not_possible_leaves_the_stream_where_it_is(make_mesh, eventually, take):
    from ringcast.errors import QosMismatch, UnknownTag

    a, b = make_mesh(2)
    pub = a.session.publisher("fixed")
    eventually(lambda: b.knows("fixed"))
    sub = b.session.subscribe("fixed", every=2, reliable=True)
    with pytest.raises(QosMismatch, match="does not promise it"):
        sub.move(transport="udp")
    with pytest.raises(QosMismatch, match="asked for reliable delivery"):
        a.session.set_channel("fixed", transport="udp")
    with pytest.raises(QosMismatch, match="the nodes are a, b"):
        b.session.set_channel("fixed", at="node:nowhere")
    with pytest.raises(UnknownTag):
        b.session.set_channel("unheard/of", at="publisher")
    with pytest.raises(ValueError, match="'auto', not 'elsewhere'"):
        sub.move(at="elsewhere")
    sub.move(at="node:later")  # may come: until then the publisher's node scales
    for i in range(3):
        pub.send(b"%d" % i)
    assert [msg.seq for msg in take(sub, b"2")] == [0, 2]


def test_wildcards_follow_the_settings_of_each_tag(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pubs = [a.session.publisher(f"many/{name}") for name in "xy"]
    eventually(lambda: all(node.knows(pub.tag.name) for node, pub in itertools.product((b, c), pubs)))
    sub = b.session.subscribe("many/*", every=2)
    a.session.set_channel("many/y", at="node:c")
    eventually(lambda: {(row.tag, row.node) for row in b.incoming()} == {("many/x", "a"), ("many/y", "c")})
    for i in range(5):
        for pub in pubs:
            pub.send(b"%d" % i)
    found = [(msg.tag, msg.seq) for msg in (sub.recv(timeout=30) for _ in range(6))]
    assert sorted(found) == [("many/x", 0), ("many/x", 2), ("many/x", 4), ("many/y", 0), ("many/y", 2), ("many/y", 4)]

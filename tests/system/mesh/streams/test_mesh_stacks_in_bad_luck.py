"""Streams by transports that survive loss, in the situations that break such protocols."""

import threading

import pytest

import ringcast


@pytest.fixture
def nodes(make_mesh):
    return make_mesh(3)


@pytest.fixture
def flow():
    """Sends on publishers from a thread, until told to stop; then each sends its end."""
    stop = threading.Event()
    threads = []

    def start(*pubs, pause_s=0.0005):
        def send():
            while not stop.wait(pause_s):
                for pub in pubs:
                    pub.send(b"x")

        threads.append(threading.Thread(target=send))
        threads[-1].start()

    def end(*pubs):
        stop.set()
        for thread in threads:
            thread.join()
        for pub in pubs:
            pub.send(b"end")

    start.end = end
    yield start
    end()


def whole(messages):
    """Contiguous from the first on, and nothing said to be lost."""
    numbers = [msg.seq for msg in messages]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert sum(msg.lost for msg in messages) == 0
    return numbers


def test_the_tail_before_a_pause_is_lost(nodes, eventually, take):
    a, b, _ = nodes
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x"))
    # Half of everything is lost, so that the only message of a burst often is; nothing follows that would reveal it.
    sub = b.session.subscribe("x", transport="lossy+nak:loss=50%,seed=9")
    for i in range(25):
        pub.send(b"%d" % i)
        assert take(sub, b"%d" % i)[-1].lost == 0
    assert b.incoming(tag="x")[0].counters["naks"] > 0


@pytest.mark.parametrize("transport", ["nak", "multicast+nak"])
def test_the_round_trip_is_measured(nodes, eventually, flow, transport):
    a, b, c = nodes
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x") and c.knows("x"))
    subs = [node.session.subscribe("x", transport=f"{transport}:grtt=800ms") for node in (b, c)]
    flow(pub)

    def measured(direction, session):
        return {row.counters["grtt_ns"] for row in session.channels() if (row.tag, row.direction) == ("x", direction)}

    # Of hosts that share this one: it falls from what was given, a step each second, and everybody is told.
    eventually(lambda: 0 < max(measured("out", a.session)) < 780_000_000)
    eventually(lambda: all(0 < max(measured("in", node.session)) < 780_000_000 for node in (b, c)))
    flow.end(pub)
    for sub in subs:
        sub.close()


@pytest.mark.parametrize("stack", ["nak", "multicast+nak", "lossy+multicast+lateral+nak:loss=5%,seed=2"])
def test_a_receiver_joins_in_the_middle(nodes, eventually, take, flow, stack):
    a, b, c = nodes
    pub = a.session.publisher("x", depth=65536)
    eventually(lambda: b.knows("x") and c.knows("x"))
    early = b.session.subscribe("x", transport=stack)
    flow(pub)
    eventually(lambda: b.incoming(tag="x")[0].messages > 200)
    late = c.session.subscribe("x", transport=stack, start="earliest")
    eventually(lambda: c.incoming(tag="x")[0].messages > 400)
    flow.end(pub)
    assert whole(take(early, b"end"))[0] == 0
    assert whole(take(late, b"end"))[0] == 0


def test_a_receiver_leaves_and_the_others_do_not_notice(nodes, eventually, take, flow):
    a, b, c = nodes
    pub = a.session.publisher("x", depth=65536)
    eventually(lambda: b.knows("x") and c.knows("x"))
    staying, leaving = (node.session.subscribe("x", transport="multicast+lateral+nak") for node in (b, c))
    flow(pub)
    eventually(lambda: c.incoming(tag="x")[0].messages > 100)
    leaving.close()
    eventually(lambda: not c.incoming(tag="x"))
    seen = b.incoming(tag="x")[0].messages
    eventually(lambda: b.incoming(tag="x")[0].messages > seen + 100)
    flow.end(pub)
    whole(take(staying, b"end"))
    eventually(lambda: [row.counters["receivers"] for row in a.session.channels() if row.direction == "out"] == [1])


@pytest.mark.parametrize("stack", ["nak", "multicast+nak"])
def test_a_publisher_that_restarts(nodes, eventually, take, stack):
    a, b, _ = nodes
    sub = b.session.subscribe("x", transport=stack)
    for life in range(3):
        with a.session.publisher("x") as pub:
            for i in range(20):
                pub.send(b"%d" % i)
            pub.send(b"end %d" % life)
            assert whole(take(sub, b"end %d" % life)) == list(range(21))


@pytest.mark.parametrize("stack", ["nak", "ack", "lossy+multicast+nak:loss=3%,seed=5"])
def test_a_reliable_reader_too_slow_for_the_rate(nodes, eventually, stack):
    a, b, _ = nodes
    tag = a.session.tag("x", depth=32, max_wait_s=30)
    pub = tag.publisher()
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport=stack, reliable=True)
    sender = threading.Thread(target=lambda: [pub.send(b"%d" % i) for i in range(600)])
    sender.start()
    # It stands still until the publisher, on another node, has to wait for it.
    eventually(lambda: pub.counters()["waits"] > 0)
    got = [sub.recv(timeout=30) for _ in range(600)]
    sender.join()
    assert whole(got) == list(range(600))


def test_an_unreliable_reader_too_slow_for_the_rate_sees_what_it_missed(nodes, eventually, take):
    a, b, _ = nodes
    pub = a.session.publisher("x", depth=32)
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport="nak")
    eventually(lambda: b.incoming(tag="x"))
    for _ in range(2000):
        pub.send(b"x")
    pub.send(b"end")
    got = take(sub, b"end")
    assert len(got) + sum(msg.lost for msg in got) == 2001
    assert len(got) < 2001


def test_the_transport_is_exchanged_during_loss(nodes, eventually, take, flow):
    a, b, _ = nodes
    pub = a.session.publisher("x", depth=65536)
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport="lossy+nak:loss=5%,seed=1")
    got = []
    taker = threading.Thread(target=lambda: got.extend(take(sub, b"end")))
    taker.start()
    flow(pub)
    for stack in ("lossy+multicast+nak:loss=5%", "tcp", "lossy+ack:loss=5%", "lossy+lateral+nak:loss=5%", "nak"):
        sub.move(transport=stack)
        assert [row.transport for row in b.incoming(tag="x")] == [stack]
        eventually(lambda: b.incoming(tag="x")[0].messages > 50)
    flow.end(pub)
    taker.join()
    assert whole(got)[0] == 0


def test_parameters_change_on_the_running_channel(nodes, eventually, take, flow):
    a, b, c = nodes
    pub = a.session.publisher("x", depth=65536)
    eventually(lambda: b.knows("x") and c.knows("x"))
    subs = [node.session.subscribe("x", transport="lossy+parity+nak:r=8,c=1,loss=5%,seed=1") for node in (b, c)]
    flow(pub)
    eventually(lambda: b.incoming(tag="x")[0].messages > 50)
    before = [row.counters["repairs"] for row in a.session.channels() if row.direction == "out"]
    for node, stack in ((b, "parity+nak:r=4,c=2,heartbeat=2ms"), (c, "parity+nak:r=2,c=1,stagger=4")):
        a.session.set_channel("x", node=node.name, transport=stack)
        eventually(lambda node=node, stack=stack: node.incoming(tag="x")[0].transport == stack)
    out = [row for row in a.session.channels() if row.direction == "out"]
    eventually(lambda: sum(r.counters["repairs"] for r in a.session.channels() if r.direction == "out") > sum(before))
    assert {row.counters["receivers"] for row in out} == {2}
    # The very same channels: their mirrors have counted all along.
    flow.end(pub)
    for node, sub in ((b, subs[0]), (c, subs[1])):
        numbers = whole(take(sub, b"end"))
        (row,) = node.incoming(tag="x")
        assert (row.messages, row.lost) == (len(numbers), 0)


def test_what_cannot_be_is_said(make_mesh):
    (node,) = make_mesh(1)
    for spec, said in (
        ({"transport": "lateral", "reliable": True}, "lateral\\+nak"),
        ({"transport": "parity:r=4", "reliable": True}, "ack or nak or tcp"),
        ({"transport": "nak:speed=3"}, "heartbeat"),
        ({"transport": "nak+pigeon"}, "there is no stage 'pigeon', only ack, lateral, nak"),
        ({"transport": "lateral:r=0"}, "out of range: r"),
        ({"transport": "udp:r=3"}, "takes no parameters"),
        ({"transport": "multicast+ack"}, "multicast\\+nak"),
    ):
        with pytest.raises(ringcast.QosMismatch, match=said):
            node.session.subscribe("x", **spec)

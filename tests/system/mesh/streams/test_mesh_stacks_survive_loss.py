"""Packets are lost between nodes, on purpose: data, repairs, naks, acknowledgements and heartbeats alike.

The `lossy` stage drops what a channel's ends receive, seeded. What is delivered is always a duplicate-free part of what
was sent, in order, with the gaps said; and all of it where the transport promises that.
"""

import itertools

import pytest

COMPLETE = ["lossy+nak", "lossy+multicast+nak", "lossy+lateral+nak", "lossy+multicast+parity+nak", "lossy+ack"]
PARTIAL = ["lossy+multicast", "lossy+lateral", "lossy+parity"]


def flows(messages, count):
    """What any transport has to keep; the numbers that came."""
    numbers = [msg.seq for msg in messages]
    assert numbers == sorted(set(numbers))
    assert all(msg.data == b"%d" % msg.seq for msg in messages)
    assert len(numbers) + sum(msg.lost for msg in messages) == count
    return numbers


@pytest.fixture
def nodes(make_mesh):
    return make_mesh(3)


def opened(nodes, eventually, stacks):
    """For each stack a publisher on the first node and subscribers on the others."""
    a, *others = nodes
    pubs = [a.session.publisher(f"x/{i}", depth=4096) for i in range(len(stacks))]
    eventually(lambda: all(node.knows(f"x/{i}") for node in others for i in range(len(stacks))))
    return [
        (pub, [node.session.subscribe(f"x/{i}", transport=stack) for node in others])
        for i, (pub, stack) in enumerate(zip(pubs, stacks, strict=True))
    ]


@pytest.mark.parametrize("loss", ["loss=5%,seed=3", "loss=10%,burst=6,seed=4"])
def test_everything_arrives(nodes, eventually, take, loss):
    streams = opened(nodes, eventually, [f"{stack}:{loss}" for stack in COMPLETE])
    for pub, _ in streams:
        for i in range(1500):
            pub.send(b"%d" % i)
    # Nothing follows: the end itself may be lost, and only heartbeats or timeouts reveal it.
    for _, subs in streams:
        for sub in subs:
            assert flows(take(sub, b"1499"), 1500) == list(range(1500))
    for i in range(len(streams)):
        (row,) = nodes[1].incoming(tag=f"x/{i}")
        assert row.lost == 0
        assert row.counters["naks"] + row.counters["acks"] + row.counters["recovered"] > 0


def test_what_arrives_is_part_of_what_was_sent(nodes, eventually):
    streams = opened(nodes, eventually, [f"{stack}:loss=5%,seed=3" for stack in PARTIAL])
    for stack, (pub, subs) in zip(PARTIAL, streams, strict=True):
        for i in range(1500):
            pub.send(b"%d" % i)
        got = [subs[0].recv(timeout=30)]
        # The last ones may be lost, which only what comes after them can tell.
        for i in itertools.count(1500):
            pub.send(b"%d" % i)
            try:
                got += subs[0].recv_many(1000, timeout=0.01)
            except TimeoutError:
                continue
            if got[-1].seq >= 1500:
                break
        numbers = flows(got, got[-1].seq + 1)
        (row,) = nodes[1].incoming(tag=str(pub.tag.name))
        recovers = stack != "lossy+multicast"
        assert (row.counters["recovered"] > 0) == recovers
        assert recovers or len(numbers) < got[-1].seq + 1

"""What carries a tag is changed while messages flow, for everybody or for one node: nothing comes twice or out of
order, and nothing is lost that the weaker of the two would have delivered."""

import itertools
import threading

import pytest

import ringcast

WEAK = ["udp", "multicast", "lateral:r=4,c=1", "parity:r=4,c=2"]
STRONG = ["tcp", "ack", "multicast+lateral+nak:r=4,c=1", "nak"]


@pytest.fixture
def nodes(make_mesh):
    return make_mesh(3)


class Flow:
    """A publisher that sends until told to stop, and everything that subscribers received."""

    def __init__(self, nodes, eventually, transport):
        self.sender, *self.receivers = nodes
        self.eventually = eventually
        self.pub = self.sender.session.publisher("x", depth=65536)
        eventually(lambda: all(node.knows("x") for node in self.receivers))
        self.got = [[] for _ in self.receivers]
        self.subs = [node.session.subscribe("x", transport=transport) for node in self.receivers]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send)]
        self._threads += [
            threading.Thread(target=self._take, args=pair) for pair in zip(self.subs, self.got, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self):
        while not self._stop.wait(0.0005):
            self.pub.send(b"x")
        # The end may be lost, until one of them is not.
        for thread in self._threads[1:]:
            while thread.is_alive():
                self.pub.send(b"end")
                thread.join(0.002)

    def _take(self, sub, into):
        while not into or into[-1].data != b"end":
            into.append(sub.recv(timeout=30))

    def carried_by(self, transport, *nodes):
        """Until these nodes receive it so, and have received some."""
        for node in nodes or self.receivers:
            self.eventually(lambda node=node: [row.transport for row in node.incoming(tag="x")] == [transport])
            self.eventually(lambda node=node: node.incoming(tag="x")[0].messages > 30)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def end(self):
        self.stop()
        for messages in self.got:
            numbers = [msg.seq for msg in messages]
            assert numbers == sorted(set(numbers)), "nothing twice, nothing out of order"
            assert len(numbers) + sum(msg.lost for msg in messages) == numbers[-1] + 1, "what is missing is said"
        return self.got


@pytest.fixture
def flow(nodes, eventually):
    made = []

    def start(transport):
        made.append(Flow(nodes, eventually, transport))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def whole(messages):
    assert sum(msg.lost for msg in messages) == 0
    assert [msg.seq for msg in messages] == list(range(len(messages)))


def test_for_the_tag_between_weak_and_strong_ones(nodes, flow):
    """Where the network loses nothing, the weak lose nothing; so no change may."""
    running = flow("udp")
    weak_and_strong = itertools.chain.from_iterable(zip(WEAK, STRONG, strict=True))
    for stack in [*weak_and_strong, "parity:r=4,c=2", "multicast", "udp"]:
        nodes[1].session.set_channel("x", transport=stack)
        running.carried_by(stack)
    for messages in running.end():
        whole(messages)


def test_for_one_node_while_packets_are_lost(nodes, flow):
    _, b, c = nodes
    running = flow("lossy+multicast+nak:loss=5%,seed=4")
    for stack in ("lossy+lateral+nak:loss=5%,seed=5", "lossy+ack:loss=5%,seed=6", "tcp", "lossy+nak:loss=5%,seed=7"):
        nodes[0].session.set_channel("x", node=b.name, transport=stack)
        running.carried_by(stack, b)
        running.carried_by("lossy+multicast+nak:loss=5%,seed=4", c)
    for messages in running.end():
        whole(messages)


def test_between_weak_ones_while_packets_are_lost(nodes, flow, eventually):
    running = flow("lossy+multicast:loss=5%,seed=1")
    eventually(lambda: all(node.incoming(tag="x")[0].lost for node in nodes[1:]))
    for stack in ("lossy+lateral:loss=5%,r=4,c=1,seed=2", "lossy+parity:loss=5%,r=4,seed=3", "udp"):
        nodes[0].session.set_channel("x", transport=stack)
        running.carried_by(stack)
    lost = [sum(msg.lost for msg in messages) for messages in running.end()]
    assert all(lost)


def test_every_number_while_packets_are_lost_repeated_and_overtaken(nodes, flow, eventually):
    """Codes, timers and windows of channels that go on: their mirrors have counted all along."""
    bad = "loss=3%,duplicate=10%,overtake=10%,seed=9"
    running = flow(f"lossy+multicast+parity+lateral+nak:{bad}")
    for setting in (
        "r=4,c=1",
        "r=2,c=2,stagger=4",
        "heartbeat=1ms,reorder=3ms",
        "grtt=20ms,tries=30",
        "linger=5ms,grace=9ms",
        "flush=2ms",
    ):
        stack = f"lossy+multicast+parity+lateral+nak:{setting},{bad}"
        nodes[2].session.set_channel("x", transport=stack)
        running.carried_by(stack)
    # Of few messages none may have been repeated.
    eventually(lambda: all(node.incoming(tag="x")[0].counters["again"] for node in nodes[1:]))
    for node, messages in zip(nodes[1:], running.end(), strict=True):
        whole(messages)
        (row,) = node.incoming(tag="x")
        assert row.messages >= len(messages), "the same channel from the beginning"


def test_less_than_was_promised_is_refused_and_changes_nothing(nodes, eventually, take):
    a, b, _ = nodes
    pub = a.session.publisher("x")
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport="nak", reliable=True)
    eventually(lambda: b.incoming(tag="x") and a.session.tags("x")[0].subscribers)
    for weak in ("udp", "multicast", "lateral", "parity:r=4"):
        for node in ("", b.name):
            with pytest.raises(ringcast.QosMismatch, match="nak") as refused:
                a.session.set_channel("x", node=node, transport=weak)
            assert "tcp" in str(refused.value)
    pub.send(b"end")
    assert take(sub, b"end")[-1].lost == 0
    assert [row.transport for row in b.incoming(tag="x")] == ["nak"]

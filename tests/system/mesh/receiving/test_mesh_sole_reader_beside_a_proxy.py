"""A node's only reader of a stream receives it itself until the node becomes a proxy for somebody elsewhere, and again
when it is none any more: the daemon can scale and send on only what it has itself. A pull leaves it alone, since it
reads the mirror where that is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ringcast.testing.waiting import PATIENCE_S

Eventually = Callable[..., None]
DEPTH = 8192
PAUSE_S = 0.002
SCALED = [{"every": 2}, {"rate_hz": 50.0}]


class Taker:
    """Receives on a thread until it has the last message."""

    def __init__(self, sub: Any, take: Any) -> None:
        self.got: list[Any] = []
        self._thread = threading.Thread(target=lambda: self.got.extend(take(sub, b"end")))
        self._thread.start()

    def join(self) -> list[tuple[int, int]]:
        self._thread.join()
        return [(msg.seq, msg.lost) for msg in self.got]


@pytest.fixture
def nodes(make_mesh: Any) -> Iterator[Any]:
    return iter(make_mesh(3))


def receivers(node: Any) -> list[str]:
    return [row.receiver for row in node.incoming(tag="stream")]


@pytest.mark.parametrize("scaled", SCALED, ids=["every", "rate"])
def test_a_proxy_has_the_daemon_receive_as_long_as_it_is_there(
    scaled: dict[str, Any], nodes: Any, eventually: Eventually, take: Any, flow: Any
) -> None:
    a, b, c = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream") and c.knows("stream"))
    sub = b.session.subscribe("stream")
    assert receivers(b) == ["subscriber"]
    taker = Taker(sub, take)
    flow(pub, PAUSE_S)
    far = c.session.subscribe("stream", at="node:b", **scaled)
    # A rate that was measured meanwhile has the channel opened again.
    eventually(lambda: [(row.node, row.receiver) for row in c.incoming(tag="stream")] == [("b", "daemon")])
    eventually(lambda: receivers(b) == ["daemon"])
    came = [far.recv(PATIENCE_S) for _ in range(20)]
    assert sum(msg.lost for msg in came) == 0
    if "every" in scaled:
        assert [msg.seq for msg in came] == list(range(came[0].seq, came[0].seq + 40, 2))
    far.close()
    eventually(lambda: receivers(b) == ["subscriber"])
    flow.end(pub, 1)
    assert taker.join() == [(seq, 0) for seq in range(pub.next_seq)]


def test_where_the_node_is_a_proxy_already_the_daemon_receives_for_who_comes(
    nodes: Any, eventually: Eventually, take: Any
) -> None:
    a, b, c = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream") and c.knows("stream"))
    far = c.session.subscribe("stream", every=2, at="node:b")
    sub = b.session.subscribe("stream")
    assert receivers(b) == ["daemon"]
    for data in (b"0", b"1", b"2"):
        pub.send(data)
    assert [(msg.seq, msg.lost) for msg in take(sub, b"2")] == [(0, 0), (1, 0), (2, 0)]
    assert [(msg.seq, msg.lost) for msg in take(far, b"2")] == [(0, 0), (2, 0)]
    far.close()
    eventually(lambda: receivers(b) == ["subscriber"])
    pub.send(b"alone")
    assert [(msg.seq, msg.lost) for msg in take(sub, b"alone")] == [(3, 0)]


def test_a_proxy_that_moves_away_gives_the_stream_back(
    nodes: Any, eventually: Eventually, take: Any, flow: Any
) -> None:
    """To the scaled subscriber's own node, where it is nobody else's business."""
    a, b, c = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream") and c.knows("stream"))
    sub = b.session.subscribe("stream")
    near, far = Taker(sub, take), c.session.subscribe("stream", every=2, at="node:b")
    scaled = Taker(far, take)
    flow(pub, PAUSE_S)
    eventually(lambda: receivers(b) == ["daemon"])
    far.move(at="subscriber")
    eventually(lambda: receivers(b) == ["subscriber"])
    # There it reads the whole stream and leaves half of it out itself, so its process may receive it.
    eventually(lambda: receivers(c) == ["subscriber"])
    flow.end(pub, 2)
    assert near.join() == [(seq, 0) for seq in range(pub.next_seq)]
    assert scaled.join() == [(seq, 0) for seq in range(scaled.got[0].seq, pub.next_seq, 2)]


@pytest.mark.parametrize("scaled", SCALED, ids=["every", "rate"])
def test_one_who_scales_on_the_same_node_has_the_daemon_receive(
    scaled: dict[str, Any], nodes: Any, eventually: Eventually, take: Any, flow: Any
) -> None:
    a, b, _ = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream"))
    sub = b.session.subscribe("stream")
    taker = Taker(sub, take)
    flow(pub, PAUSE_S)
    for _ in range(3):
        assert receivers(b) == ["subscriber"]
        with b.connect() as other, other.subscribe("stream", at="subscriber", **scaled) as slow:
            assert receivers(b) == ["daemon"]
            came = [slow.recv(PATIENCE_S) for _ in range(5)]
            assert sum(msg.lost for msg in came) == 0
        eventually(lambda: receivers(b) == ["subscriber"])
    flow.end(pub, 1)
    assert taker.join() == [(seq, 0) for seq in range(pub.next_seq)]


def test_a_pull_leaves_the_receiving_to_the_process(nodes: Any, eventually: Eventually, take: Any, flow: Any) -> None:
    """At this node it reads the mirror where it is. On the publisher's node it reads the publisher's ring."""
    a, b, _ = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream"))
    sub = b.session.subscribe("stream")
    assert receivers(b) == ["subscriber"]
    (channel,) = b.incoming(tag="stream")
    taker = Taker(sub, take)
    flow(pub, PAUSE_S)
    with b.connect() as other:
        tag = other.tag("stream")
        for at in ("subscriber", "publisher"):
            with tag.history(at=at) as history:
                eventually(lambda history=history: history.bounds()[1] > 0)
                for _ in range(20):
                    first, last = history.bounds()
                    came = [(msg.seq, msg.lost) for msg in history.range(first, last)]
                    assert came == [(seq, 0) for seq in range(first, last + 1)]
                    assert history.latest().seq >= last
                    assert receivers(b) == ["subscriber"]
    flow.end(pub, 1)
    assert taker.join() == [(seq, 0) for seq in range(pub.next_seq)]
    # Nor was it another for a moment: a channel that was opened anew would have counted from there.
    (after,) = b.incoming(tag="stream")
    assert (after.receiver, after.messages, channel.messages) == ("subscriber", pub.next_seq, 0)

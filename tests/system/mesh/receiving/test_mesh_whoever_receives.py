"""What a subscriber of another node's tag sees does not depend on who receives: its own process, or the daemon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.testing.waiting import PATIENCE_S

Eventually = Callable[..., None]
DEPTH = 4096


@pytest.fixture(params=["subscriber", "daemon"])
def receiver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Daemons that a test starts inherit it."""
    monkeypatch.setenv("RINGCAST_SOLE_READERS", "" if request.param == "subscriber" else "no")
    receiver: str = request.param
    return receiver


@pytest.fixture
def nodes(receiver: str, make_mesh: Any) -> list[Any]:
    return list(make_mesh(2))


@pytest.fixture
def stream(nodes: list[Any], eventually: Eventually) -> tuple[Any, Any, Any]:
    a, b = nodes
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream"))
    return a, b, pub


def numbers(messages: list[Any]) -> list[tuple[int, int]]:
    return [(msg.seq, msg.lost) for msg in messages]


def complete(first: int, end: int) -> list[tuple[int, int]]:
    return [(seq, 0) for seq in range(first, end)]


def test_channels_say_who_receives(receiver: str, stream: Any) -> None:
    _, b, _ = stream
    with b.session.subscribe("stream"):
        assert [row.receiver for row in b.incoming(tag="stream")] == [receiver]


def test_everything_comes_once_in_order(stream: Any, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    for _ in range(1000):
        pub.send(b"x")
    pub.send_many([b"y"] * 500)
    pub.send(b"end")
    assert numbers(take(sub, b"end")) == complete(0, 1501)


def test_messages_of_many_packets(stream: Any, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    sent = [bytes([number]) * (number * 3001) for number in range(1, 21)]
    for data in sent:
        pub.send(data)
    pub.send(b"end")
    assert [bytes(msg.data) for msg in take(sub, b"end")] == [*sent, b"end"]


@pytest.mark.parametrize("start", ["earliest", "latest", "new", 3])
def test_where_a_subscriber_begins(start: Any, stream: Any, take: Any) -> None:
    _, b, pub = stream
    for _ in range(10):
        pub.send(b"old")
    sub = b.session.subscribe("stream", start=start)
    pub.send(b"end")
    first = {"earliest": 0, "latest": 9, "new": 10}.get(start, start)
    assert numbers(take(sub, b"end")) == complete(first, 11)


def test_the_history_of_the_node(stream: Any, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    for _ in range(99):
        pub.send(b"x")
    pub.send(b"end")
    take(sub, b"end")
    history = b.session.tag("stream").history(at="subscriber")
    assert (history.bounds(), history.latest().data, history.at(7).data) == ((0, 99), b"end", b"x")
    assert numbers(history.range(90, 99)) == complete(90, 100)
    with b.connect() as other, other.subscribe("stream", start="earliest") as second:
        assert history.bounds() == (0, 99)
        assert numbers(take(second, b"end")) == complete(0, 100)


def test_another_transport_while_it_flows(stream: Any, flow: Any, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    flow(pub, pause_s=0.005)
    got = [sub.recv(PATIENCE_S)]
    for transport in ("tcp", "nak", "tcp", "nak"):
        sub.move(transport=transport)
        got.append(sub.recv(PATIENCE_S))
    flow.end(pub, 1)
    got += take(sub, b"end")
    assert numbers(got) == complete(0, pub.next_seq)


def test_a_publisher_leaves_and_another_comes(nodes: list[Any], eventually: Eventually, take: Any) -> None:
    a, b = nodes
    with a.session.publisher("stream", depth=DEPTH) as pub:
        eventually(lambda: b.knows("stream"))
        sub = b.session.subscribe("stream")
        for _ in range(50):
            pub.send(b"x")
        pub.send(b"last")
    assert numbers(take(sub, b"last")) == complete(0, 51)
    with a.session.publisher("stream", depth=DEPTH) as pub:
        pub.send(b"first")
        pub.send(b"end")
        assert numbers(take(sub, b"end")) == complete(0, 2)


def test_the_receiving_daemon_is_killed_and_comes_back(stream: Any, eventually: Eventually, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    pub.send(b"before")
    assert numbers(take(sub, b"before")) == [(0, 0)]
    b.kill()
    pub.send(b"meanwhile")
    b.restart()
    eventually(lambda: b.incoming(tag="stream"))
    pub.send(b"after")
    got = take(sub, b"after")
    assert got[-1].seq == 2
    assert sum(1 + msg.lost for msg in got) == 2


def test_the_sending_daemon_is_killed_and_comes_back(stream: Any, eventually: Eventually, take: Any) -> None:
    a, b, pub = stream
    sub = b.session.subscribe("stream")
    pub.send(b"before")
    assert numbers(take(sub, b"before")) == [(0, 0)]
    a.kill()
    eventually(lambda: not b.incoming(tag="stream"))
    pub.send(b"meanwhile")
    a.restart()
    eventually(lambda: b.incoming(tag="stream"))
    pub.send(b"after")
    assert numbers(take(sub, b"after")) == complete(1, 3)

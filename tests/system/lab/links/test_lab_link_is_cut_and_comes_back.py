"""Nodes on a network of their own, whose links are cut and come back: streams recover without anybody's help, tables
agree again, and everybody was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ringcast
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair, star
from ringcast.testing.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@pytest.fixture
def wire() -> Iterator[Testbed]:
    with Testbed(pair()) as bed:
        yield bed


@pytest.fixture
def hub() -> Iterator[Testbed]:
    with Testbed(star(3, hub="router")) as bed:
        yield bed


def misses(node: Any, others: str) -> bool:
    """Whether the node has given these up, and not only begun to wonder."""
    gone = {row.name for row in node.session.nodes() if row.state == "gone"}
    return gone >= set(others)


def test_a_cut_link_comes_back_and_streams_go_on(
    wire: Testbed, make_mesh: Any, eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b = make_mesh.in_lab(wire)
    pub = a.session.publisher("stream", depth=64)
    eventually(lambda: b.knows("stream"))
    subs = [b.session.subscribe("stream"), b.session.subscribe("stream", reliable=True)]
    watch = b.session.watch(kinds=["node"])
    pub.send(b"before")
    assert [take(sub, b"before")[-1].lost for sub in subs] == [0, 0]

    wire.link("a", "b").cut()
    pub.send(b"into the dark")
    eventually(lambda: misses(a, "b") and misses(b, "a"))
    for number in range(10):
        pub.send(b"%d" % number)

    wire.link("a", "b").restore()
    eventually(lambda: b.incoming(transport="nak") and b.incoming(transport="tcp"))
    pub.send(b"after")
    for sub in subs:
        # The ring still held what was sent meanwhile, so not even the unreliable one misses anything.
        got = take(sub, b"after")
        assert [msg.data for msg in got] == [b"into the dark", *(b"%d" % n for n in range(10)), b"after"]
        assert {msg.lost for msg in got} == {0}
    assert [(row.node, row.came) for row in (watch.recv(PATIENCE_S) for _ in range(4))][2:] == [
        ("a", False),
        ("a", True),
    ]


def test_a_link_that_blinks_is_not_noticed_but_by_what_was_on_it(
    wire: Testbed, make_mesh: Any, eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b = make_mesh.in_lab(wire)
    pub = a.session.publisher("stream")
    eventually(lambda: b.knows("stream"))
    quick = b.session.subscribe("stream", transport="udp")
    sure = b.session.subscribe("stream", reliable=True)
    wire.link("a", "b").cut()
    for _ in range(5):
        pub.send(b"lost")
    wire.link("a", "b").restore()
    pub.send(b"end")
    (only,) = take(quick, b"end")
    assert only.lost == 5
    assert [msg.lost for msg in take(sure, b"end")] == [0] * 6


def test_a_full_partition_heals(
    hub: Testbed, make_mesh: Any, eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b, c = make_mesh.in_lab(hub)
    pub = a.session.publisher("old")
    eventually(lambda: b.knows("old") and c.knows("old"))
    near, far = b.session.subscribe("old", reliable=True), c.session.subscribe("old", reliable=True)
    left = c.session.publisher("leaves")
    eventually(lambda: a.knows("leaves"))
    for name in "abc":
        hub.link(name, "hub").cut()
    eventually(lambda: misses(a, "bc") and misses(b, "ac") and misses(c, "ab"))

    # Each side lives on: tags come, the same one on two sides, and publishers come and go.
    pub.send(b"alone")
    assert a.session.tag("old", create=False).name == "old"
    for node, depth in ((a, 8), (b, 16), (c, 32)):
        node.session.tag("contested", depth=depth)
    left.close()
    new = c.session.publisher("new")

    for name in "abc":
        hub.link(name, "hub").restore()
    eventually(lambda: all(node.here() == {"a", "b", "c"} for node in (a, b, c)))
    eventually(lambda: len({_depth(node.session) for node in (a, b, c)}) == 1)
    eventually(lambda: a.knows("new") and b.knows("new"))
    eventually(lambda: not any(row.publishers for node in (a, b) for row in node.session.tags("leaves")))
    eventually(lambda: b.incoming(tag="old") and c.incoming(tag="old"))
    pub.send(b"together")
    for sub in (near, far):
        got = take(sub, b"together")
        assert [(msg.data, msg.lost) for msg in got] == [(b"alone", 0), (b"together", 0)]
    with a.session.subscribe("new") as sub:
        new.send(b"hello")
        assert sub.recv(PATIENCE_S).data == b"hello"


def _depth(session: ringcast.Session) -> int:
    (row,) = session.tags("contested")
    return row.attributes.depth


def test_a_node_rejoins_with_old_state(
    hub: Testbed, make_mesh: Any, eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b, c = make_mesh.in_lab(hub)
    first = a.session.publisher("tag")
    eventually(lambda: c.knows("tag"))
    sub = c.session.subscribe("tag")
    hub.link("c", "hub").cut()
    eventually(lambda: misses(a, "c") and misses(b, "c") and misses(c, "ab"))
    # While c is away the publisher it remembers goes, another comes elsewhere, and a's daemon is another one.
    first.close()
    a.session.close()
    a.kill()
    a.restart()
    a.session = a.connect()
    second = b.session.publisher("tag")
    hub.link("c", "hub").restore()
    eventually(lambda: all(node.here() == {"a", "b", "c"} for node in (a, b, c)))
    eventually(lambda: all(node.knows("tag", 1) for node in (a, b, c)))
    eventually(lambda: [row.node for row in c.incoming(tag="tag")] == ["b"])
    assert second.subscribers == 1
    second.send(b"new")
    assert take(sub, b"new")[-1].publisher.node == "b"

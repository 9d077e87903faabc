"""Daemons publish the counters of their channels on tags, which everybody reads and nobody else writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.errors import BadTagName


def test_counters_of_a_channel_come_on_a_tag_of_each_node(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    sender, receiver = a.connect(), b.connect()
    telemetry = receiver.subscribe("@ringcast/*/channels")
    publisher = sender.tag("x/y").publisher()
    stream = f"{publisher.incarnation:016x}"
    subscriber = receiver.subscribe("x/*")
    eventually(lambda: publisher.subscribers == 1)
    eventually(lambda: publisher.send(b"data") >= 0 and any(True for _ in _drained(subscriber)))

    def seen() -> set[tuple[str, str, str]]:
        found = telemetry.recv_many(100, 10.0)
        return {
            (m.data["node"], channel["direction"], channel["tag"])
            for m in found for channel in m.data["channels"] if channel["incarnation"] == stream
        }  # fmt: skip

    known: set[tuple[str, str, str]] = set()
    eventually(lambda: known.update(seen()) or known >= {("a", "out", "x/y"), ("b", "in", "x/y")})


def _drained(subscriber: ringcast.Subscriber) -> list[Any]:
    try:
        return list(subscriber.recv_many(100, 0.05))
    except TimeoutError:
        return []


def test_names_that_begin_with_at_are_the_daemons(session: ringcast.Session) -> None:
    with pytest.raises(BadTagName, match="daemons' own"):
        session.tag("@mine/x")
    # Subscribing is everybody's, also to a node that has not sent yet.
    tag = session.tag("@ringcast/anybody/channels")
    assert tag.attributes.codec == "json"
    tag.subscribe().close()
    with pytest.raises(BadTagName, match="may subscribe"):
        tag.publisher()
    with pytest.raises(BadTagName, match="may subscribe"):
        tag.destroy()
    assert session.tags() == []


def test_nobody_destroys_another_nodes_counters(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    publisher = a.session.publisher("x")
    subscriber = b.session.subscribe("x")
    publisher.wait_for_subscribers(1, 30.0)
    telemetry = b.session.subscribe("@ringcast/a/channels")
    telemetry.recv(30.0)
    tag = b.session.tag("@ringcast/a/channels", create=False)
    with pytest.raises(BadTagName, match="daemons' own"):
        tag.destroy(force=True)
    first = telemetry.recv(30.0).seq
    assert telemetry.recv(30.0).seq > first
    subscriber.close()

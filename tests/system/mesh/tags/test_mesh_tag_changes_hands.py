"""The node that keeps a tag dies: the backup takes it over and no application notices. And who destroys a tag that
another node keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S


def test_the_keeper_is_killed_and_nobody_notices(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b, c = make_mesh(3)
    a.session.tag("shared", depth=8)
    eventually(lambda: b.session.tags("shared") and c.session.tags("shared"))
    pub, sub = b.session.publisher("shared"), c.session.subscribe("shared", reliable=True)
    pub.wait_for_subscribers(1, PATIENCE_S)
    watch = b.session.watch(kinds=["node"])
    a.kill()
    sent = 0
    while not any(row.node == "a" and not row.came for row in _taken(watch)):
        # All the while the tag is there, as it was, for new users and old ones.
        assert b.session.tag("shared", create=False).attributes.depth == 8
        assert c.session.tag("shared", depth=8, create=False).attributes.depth == 8
        b.session.publisher("shared").close()
        pub.send(str(sent).encode())
        sent += 1
    eventually(lambda: _keeps(b.session) and _keeps(c.session))
    pub.send(b"last")
    got = [sub.recv(PATIENCE_S).data for _ in range(sent + 1)]
    assert got == [str(number).encode() for number in range(sent)] + [b"last"]


def _taken(watch: ringcast.Watch) -> list[ringcast.Presence]:
    found = []
    while True:
        try:
            found.append(watch.recv_nowait())
        except ringcast.WouldBlock:
            return found


def _keeps(session: ringcast.Session) -> bool:
    return [row.attributes.depth for row in session.tags("shared")] == [8]


def test_a_tag_is_destroyed_by_one_who_does_not_keep_it(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    a.session.tag("shared")
    eventually(lambda: b.session.tags("shared"))
    mine = b.session.publisher("shared")
    theirs = a.session.subscribe("shared")
    eventually(lambda: mine.subscribers == 1)
    tag = b.session.tag("shared", create=False)
    with pytest.raises(ringcast.TagInUse) as caught:
        tag.destroy()
    assert (caught.value.publishers, caught.value.subscribers) == (0, 1), "one's own rights do not count"
    tag.destroy(force=True)
    with pytest.raises(ringcast.TagDestroyed):
        theirs.recv(PATIENCE_S)
    with pytest.raises(ringcast.TagDestroyed):
        _until_refused(mine)
    for session in (a.session, b.session):
        with pytest.raises(ringcast.UnknownTag):
            session.tag("shared", create=False)


def _until_refused(pub: ringcast.Publisher) -> None:
    for _ in range(100_000):
        pub.send(b"x")

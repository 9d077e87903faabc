"""Programs that make up names: tags that nobody uses any more end, on every node, and those in use stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ringcast


def test_they_end_and_those_in_use_stay(make_daemon: Any, eventually: Callable[..., None]) -> None:
    daemon = make_daemon("--tag-lease", "1")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        with session.publisher("with/a/ring") as left:
            left.send(b"still pulled")
        held = [session.publisher("with/a/publisher"), session.subscribe("with/a/subscriber")]
        session.tag("with/a/subscriber")
        wild = session.subscribe("made/up/*")
        for number in range(50):
            session.tag(f"made/up/{number}")
        eventually(lambda: session.tags("made/**") == [])
        assert [row.name for row in session.tags()] == ["with/a/publisher", "with/a/ring", "with/a/subscriber"]
        assert session.tag("with/a/ring").history().latest().data == b"still pulled"
        publisher = session.publisher("made/up/7")  # and the name is free again
        publisher.wait_for_subscribers(1, 30.0)
        for one in (*held, wild, publisher):
            one.close()


def test_they_end_on_other_nodes_too(
    make_daemon: Any, free_addresses: Callable[[int], list[str]], eventually: Callable[..., None]
) -> None:
    first, second = free_addresses(2)
    lease = ("--tag-lease", "2", "--no-scout")
    daemons = [
        make_daemon("--name", "a", "--listen", first, "--peer", second, *lease),
        make_daemon("--name", "b", "--listen", second, "--peer", first, *lease),
    ]
    a, b = (ringcast.connect(socket=daemon.socket_path, start=False) for daemon in daemons)
    with a, b:
        reader = b.subscribe("kept")
        a.tag("kept")
        a.tag("gone")
        eventually(lambda: b.tags("kept"))
        eventually(lambda: not a.tags("gone") and not b.tags("gone"))
        assert a.tags("kept")
        reader.close()
        eventually(lambda: not a.tags("kept") and not b.tags("kept"))

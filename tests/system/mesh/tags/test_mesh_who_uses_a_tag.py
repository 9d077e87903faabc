"""Who publishes and who subscribes is said for the whole mesh, unless one asks for this node alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def test_publishers_and_subscribers_of_every_node(make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    held = [a.session.publisher("shared"), a.session.subscribe("shared")]
    held += [b.session.publisher("shared"), b.session.subscribe("**")]
    eventually(lambda: all(node.knows("shared", 2) for node in (a, b)))
    for node in (a, b):
        tag = node.session.tag("shared", create=False)
        eventually(lambda tag=tag: [row.info.node for row in tag.subscribers()].count("b") == 1)
        eventually(lambda tag=tag: sorted(row.info.node for row in tag.publishers()) == ["a", "b"])
        eventually(lambda tag=tag: sorted(row.info.pattern for row in tag.subscribers()) == ["**", "shared"])
        assert {row.info.node for row in tag.subscribers(local=True)} == {node.name}
        own = [row for row in tag.publishers(local=True) if row.info.node == node.name]
        assert [row.info.node for row in own] == [node.name]
        assert "sent" in own[0].counters
    for one in held:
        one.close()


def test_sub_leaves_the_place_of_the_proxy_to_the_tag(make_mesh: Any, eventually: Callable[..., None]) -> None:
    """`ringcast sub --every 2` of a tag whose proxy is at the subscriber takes the whole stream to this node."""
    a, b = make_mesh(2)
    publisher = a.session.publisher("words", at="subscriber")
    eventually(lambda: b.knows("words"))
    command = [sys.executable, "-m", "ringcast", "sub", "words", "--every", "2", "--socket", b.daemon.socket_path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ) as sub:
        try:
            publisher.wait_for_subscribers(1, 30.0)
            eventually(lambda: b.incoming(tag="words"))
            assert [row.every for row in b.incoming(tag="words")] == [1]
        finally:
            sub.terminate()

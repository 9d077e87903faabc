"""Two daemons of one name meet: the younger serves nobody, says why, and serves again when the other is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S


def refused(path: str) -> ringcast.NameTaken | None:
    try:
        ringcast.connect(socket=path, start=False).close()
    except ringcast.NameTaken as exc:
        return exc
    except ringcast.DaemonUnavailable:
        pass  # it learnt of its name in this very moment, and closed the door before it could say so
    return None


def test_the_younger_stands_back_until_the_older_is_gone(
    make_daemon: Callable[..., Any], free_addresses: Callable[[int], list[str]], eventually: Callable[..., None]
) -> None:
    one, two, three = free_addresses(3)
    older = make_daemon("--name", "twin", "--listen", one, "--no-scout")
    younger = make_daemon("--name", "twin", "--listen", two, "--no-scout")
    with ringcast.connect(socket=younger.socket_path, start=False) as session:
        pub, sub = session.publisher("a"), session.subscribe("a")
        # Each is alone and content, until somebody knows both.
        other = make_daemon("--name", "other", "--listen", three, "--peer", one, "--peer", two, "--no-scout")
        eventually(lambda: refused(younger.socket_path) is not None)
        error = refused(younger.socket_path)
        assert error is not None
        assert (error.node, error.address) == ("twin", one)
        assert "--name NAME" in str(error)
        assert refused(older.socket_path) is None

        eventually(lambda: not session.connected)
        pub.send(b"rings go on")
        assert sub.recv(PATIENCE_S).data == b"rings go on"
        eventually(lambda: "--name NAME" in _why(session))
        command = [sys.executable, "-m", "ringcast", "tags", "--socket", younger.socket_path]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert asked.returncode == 1
        assert "--name NAME" in asked.stderr
        assert "Traceback" not in asked.stderr

        older.kill()
        eventually(lambda: session.connected)
        with ringcast.connect(socket=other.socket_path, start=False) as there:
            eventually(lambda: any(row.publishers for row in there.tags("a")))
            far = there.subscribe("a")
            pub.send(b"served again")
            assert far.recv(PATIENCE_S).data == b"served again"
            assert sub.recv(PATIENCE_S).data == b"served again"


def _why(session: ringcast.Session) -> str:
    with pytest.raises(ringcast.DaemonUnavailable) as caught:
        session.tags()
    return str(caught.value)

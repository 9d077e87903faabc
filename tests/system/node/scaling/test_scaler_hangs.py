"""A plug-in's scaler that never returns: who pulled is told, others are not kept waiting, and the daemon still ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from plug_ins import install

import ringcast
from ringcast.errors import ScaleError
from ringcast.scaling import registry
from ringcast.testing.waiting import PATIENCE_S

PLUG_IN = """
import os
import threading


class Stuck:
    name = "stuck"
    codecs = frozenset({"bytes"})

    def scale(self, payload, attributes, size):
        if bytes(payload) == b"hang":
            with open(os.environ["STUCK_AT"], "a") as said:
                said.write("x")
            threading.Event().wait()
        return bytes(payload)[: size[0]]

    def schema(self, schema, size):
        return schema
"""


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A scaler that daemons find installed; the file has a character for each call that hangs."""
    packages = tmp_path / "packages"
    install(packages, "stuck", PLUG_IN, "ringcast.scalers", "stuck = stuck:Stuck")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("STUCK_AT", str(tmp_path / "calls"))
    monkeypatch.syspath_prepend(str(packages))
    registry._by_codec.cache_clear()
    (tmp_path / "calls").touch()
    yield tmp_path / "calls"
    registry._by_codec.cache_clear()


class Puller(threading.Thread):
    """Pulls a tag's latest message, scaled, and keeps what came of it."""

    def __init__(self, session: ringcast.Session, tag: str) -> None:
        super().__init__(daemon=True)
        self._history = session.tag(tag).history(at="publisher", size=(3, 1))
        self.came: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.came = self._history.latest().data
        except ringcast.RingcastError as exc:
            self.came = exc

    def result(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.came


def test_the_daemon_ends_and_other_pulls_are_answered(
    stuck: Path, make_mesh: Any, eventually: Callable[..., None]
) -> None:
    a, b = make_mesh(2)
    words, plain = a.session.publisher("words"), a.session.publisher("plain", capacity_bytes=8 * 1024 * 1024)
    eventually(lambda: b.knows("words") and b.knows("plain"))
    words.send(b"hang")
    plain.send(b"abc")
    pullers = [Puller(b.session, "words") for _ in range(8)]  # more than a pool of threads has
    eventually(lambda: stuck.read_text())
    other = b.session.tag("plain").history(at="publisher")
    assert other.latest().data == b"abc"
    sub = b.session.subscribe("plain", reliable=True)
    plain.wait_for_subscribers(1, PATIENCE_S)
    sub.close()
    eventually(lambda: not [row for row in a.session.channels() if row.tag == "plain"])
    a.daemon.stop()  # fails unless it ends
    for puller in pullers:
        assert isinstance(puller.result(), ringcast.RingcastError)


def test_who_pulled_is_told_which_scaler_hung(stuck: Path, make_mesh: Any, eventually: Callable[..., None]) -> None:
    a, b = make_mesh(2)
    words = a.session.publisher("words")
    eventually(lambda: b.knows("words"))
    words.send(b"hang")
    error = Puller(b.session, "words").result()
    assert isinstance(error, ScaleError)
    assert "no answer within" in str(error)
    words.send(b"alpha")
    assert Puller(b.session, "words").result() == b"alp", "the next one has a new process"

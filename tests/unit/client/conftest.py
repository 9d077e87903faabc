"""What tests of the client share: a daemon's end of a control connection, moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_peer import World

from ringcast.client import connection


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(connection, "CLOSE_TIMEOUT_S", 0.01)
    world = World(str(tmp_path / "s"))
    yield world
    world.close()

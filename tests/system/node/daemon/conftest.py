"""How a daemon starts and ends is what these tests are about: they run the command itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Daemons


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Daemons]:
    daemons = Daemons(tmp_path, forked=False)
    yield daemons
    daemons.stop()

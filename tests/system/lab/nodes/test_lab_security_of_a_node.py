"""What the lab measures of joining and of floods gives its rows; figures are the lab's matter."""

from __future__ import annotations

import pytest

from ringcast.lab.security import floods, joining


def test_a_node_joins_by_commands_alone() -> None:
    (taken,) = joining.durations_s(1)
    assert taken > 0


@pytest.mark.parametrize("kind", floods.KINDS)
def test_a_stream_beside_a_flood_is_complete(tmp_path, kind: str) -> None:
    with floods._daemon(tmp_path) as path:
        times, missing = floods._stream(path, floods._attacker(kind, path, 500))
    assert missing == 0
    assert len(times) >= floods.CALM

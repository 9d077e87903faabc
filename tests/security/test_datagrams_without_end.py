"""Forged datagrams and plain rubbish at every port of a node while a sealed stream goes there: the stream is complete,
and the daemon neither grows nor fails.

The same flood as in `ringcast lab run security`, with fewer datagrams.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcast.lab.security import datagrams
from ringcast.lab.security.meshes import mesh

DATAGRAMS = 5_000


def test_the_stream_stays_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "CALM", 100)
    with mesh(tmp_path / "mesh", secured=True) as nodes:
        found = datagrams.flood(nodes, DATAGRAMS)
    assert found.missing == 0
    assert found.failed == 0
    assert found.grown_bytes <= datagrams.MEMORY_BYTES
    assert found.dropped > 0


def test_the_flood_is_of_every_kind() -> None:
    head = b"RC\x02\x01" + bytes(12)
    made = list(datagrams.made(head, seed=3))
    assert made == list(datagrams.made(head, seed=3))
    forged = [packet for packet in made if packet[:3] == head[:3]]
    assert {packet[3] for packet in forged} >= set(range(1, 9))
    assert len(forged) < len(made)

"""Hosts that are turned away are logged once per reason, remembered within a bound, and forgotten when accepted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from ringcast.daemon.mesh.turned_away import MAX_TURNED_AWAY, TurnedAway
from ringcast.daemon.observe.complaints import Complaints


def with_turned_away(body: Callable[[TurnedAway], None]) -> None:
    async def run() -> None:
        complaints = Complaints(logging.getLogger("ringcast.mesh"))
        try:
            body(TurnedAway(complaints))
        finally:
            complaints.close()

    asyncio.run(run())


def test_a_stranger_is_logged_once_per_reason(caplog: pytest.LogCaptureFixture) -> None:
    def body(turned_away: TurnedAway) -> None:
        for reason in ("no hello", "no hello", "garbage\x1b"):
            turned_away.stranger("10.0.0.9:5555", reason)
        assert turned_away.reasons == {"10.0.0.9": "garbage\\x1b"}

    with_turned_away(body)
    assert [record.getMessage().count("turned away") for record in caplog.records] == [1, 1]


def test_another_mesh_is_counted_each_time_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def body(turned_away: TurnedAway) -> None:
        for _ in range(3):
            turned_away.of_another_mesh("10.0.0.9:5555", "b", "another mesh", dialled=False)
        assert turned_away.foreign == 3
        assert turned_away.reasons == {"10.0.0.9": "another mesh"}
        turned_away.of_another_mesh("10.0.0.8:5555", "b", "another mesh", dialled=True)
        assert "10.0.0.8" not in turned_away.reasons  # this node dialled it, and knows that from its links

    with_turned_away(body)
    assert len(caplog.records) == 2


def test_what_is_remembered_is_bounded() -> None:
    def body(turned_away: TurnedAway) -> None:
        for host in range(MAX_TURNED_AWAY + 9):
            turned_away.stranger(f"10.0.1.{host}:5555", "no hello")
        assert len(turned_away.reasons) == MAX_TURNED_AWAY
        turned_away.accepted("10.0.1.0:7417")
        assert "10.0.1.0" not in turned_away.reasons

    with_turned_away(body)

"""An end of a measuring process (`lab/testbed/end.py`) that plays sensors of a mission, by this process's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ringcast.rescue.live import open_publishers, publish
from ringcast.rescue.mission import Mission, Settings
from ringcast.session import Session


class Sensors:
    """`settings` are fields of `Settings`; `plays` are patterns of its nodes' names. Publishers stay open between
    performances, so that each of them can be received in another way."""

    def __init__(self, session: Session, settings: dict[str, Any], plays: Sequence[str]) -> None:
        self._session = session
        self._settings = Settings(**settings)
        self._plays = tuple(plays)
        self._publishers = open_publishers(Mission(self._settings), session, self._mine)
        self.tells = sorted(self._publishers)

    def play(self, begin_ns: int, pace: float) -> dict[str, int]:
        """How many messages went out on each tag. Raises what `Publisher.send` does."""
        mission = Mission(replace(self._settings, begin_ns=begin_ns))
        return publish(mission, self._session, self._mine, None, pace, begin_ns, self._publishers)

    def close(self) -> None:
        for publisher in self._publishers.values():
            publisher.close()

    def _mine(self, node: str) -> bool:
        return any(fnmatchcase(node, pattern) for pattern in self._plays)

"""A warning about schedules that run before the network card's own threads, wherever one is put in force: for channels
by daemons, for an application's threads by its process.

Invariant: the process table is read at most once in a while, and each schedule is logged once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ringcast.model.schedule import OTHER, Schedule
from ringcast.transport.urgent import process_table
from ringcast.transport.urgent.network_threads import Task, warning

logger = logging.getLogger("ringcast.transport")

KNOWN_S = 30.0
_MOST_LOGGED = 256
HERE = "this node"


class Caution:
    """`tasks` and `interrupts` say what the machine has; `clock` is seconds."""

    def __init__(
        self, tasks: Callable[[], list[Task]] = process_table.tasks,
        interrupts: Callable[[], set[int]] = process_table.card_interrupts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._tasks = tasks
        self._interrupts = interrupts
        self._clock = clock
        self._turn = threading.Lock()
        self._known: tuple[list[Task], set[int]] = ([], set())
        self._until = -1.0
        self._logged: set[str] = set()

    def about(self, wanted: Schedule, where: str = HERE) -> str:
        """In words what threads with that schedule hold up; '' when nothing."""
        if wanted.policy == OTHER:
            return ""
        with self._turn:
            if self._clock() >= self._until:
                self._known = self._tasks(), self._interrupts()
                self._until = self._clock() + KNOWN_S
            tasks, interrupts = self._known
        return warning(wanted, tasks, where, interrupts)

    def log(self, wanted: Schedule) -> str:
        """The same, and logged where it is said for the first time."""
        said = self.about(wanted)
        with self._turn:
            new = bool(said) and said not in self._logged and len(self._logged) < _MOST_LOGGED
            if new:
                self._logged.add(said)
        if new:
            logger.warning("%s", said)
        return said


CAUTION = Caution()
"""Of this process."""

"""What a process owes its sessions: at exit they are closed, in a forked child they are dead.

At exit, because a native waiter woken while the interpreter is being torn down would abort the process. After a fork,
because the child shares the parent's sockets and mappings: it must let go of them without a word to anybody, and
without taking a lock whose holder did not come along.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Protocol

from ringcast import _core

logger = logging.getLogger("ringcast")


class Forkable(Protocol):
    def close(self) -> None: ...

    def forked(self) -> None: ...


_alive: weakref.WeakSet[Forkable] = weakref.WeakSet()


def remember(session: Forkable) -> None:
    """Close `session` at exit unless it is closed by then; tell it of forks."""
    _alive.add(session)


def forget(session: Forkable) -> None:
    _alive.discard(session)


def _close_all() -> None:
    for session in list(_alive):
        try:
            session.close()
        except Exception:  # the others still have to be closed
            logger.exception("a session was not closed cleanly at exit")


def _in_child() -> None:
    _core.forked()
    for session in list(_alive):
        session.forked()
    _alive.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_in_child)

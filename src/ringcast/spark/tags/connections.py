"""One session per process and daemon: planners and workers are reused by Spark, and so is what they opened.

A worker is forked from a server that never opens a session, but the process is part of the name all the same.
"""

from __future__ import annotations

import os
import threading

import ringcast
from ringcast.record.rings import Rings
from ringcast.session import Session

_lock = threading.Lock()
_sessions: dict[tuple[int, str | None], Session] = {}
_rings: dict[tuple[int, str | None, str], Rings] = {}


def session_at(socket: str | None, *, start: bool = True) -> Session:
    """Raises DaemonUnavailable."""
    key = (os.getpid(), socket)
    with _lock:
        session = _sessions.get(key)
        if session is None or session.closed:
            session = _sessions[key] = ringcast.connect(socket, start=start, program="spark")
        return session


def rings_at(socket: str | None, pattern: str, *, start: bool = True) -> Rings:
    """Raises DaemonUnavailable."""
    session = session_at(socket, start=start)
    key = (os.getpid(), socket, pattern)
    with _lock:
        if key not in _rings:
            _rings[key] = Rings(session, pattern)
        return _rings[key]


def close() -> None:
    """Close what this process has open. The next use opens it anew."""
    with _lock:
        rings, sessions = list(_rings.values()), list(_sessions.values())
        _rings.clear()
        _sessions.clear()
    for ring in rings:
        ring.close()
    for session in sessions:
        session.close()

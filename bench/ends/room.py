"""How many messages of 1 MiB contenders have room for, where that can be said: the same for all of them.

Cores that share a cache are fastest with a few, which stay in it. On a machine whose cores share none, more than a
cache holds were twice as fast: presumably a core that writes what another one has in a cache of its own waits for it.
"""

from __future__ import annotations

import os

FEW, MANY = 4, 64
APART_NS = 250.0
"""What a cache line takes at least, there and back, between cores that share no cache."""
_VARIABLE = "RINGCAST_BENCH_ROOM"


def choose(line_ns: float | None) -> int:
    """For all processes that are started from now on."""
    room = MANY if line_ns is not None and line_ns > APART_NS else FEW
    os.environ[_VARIABLE] = str(room)
    return room


def chosen() -> int:
    return int(os.environ.get(_VARIABLE, FEW))

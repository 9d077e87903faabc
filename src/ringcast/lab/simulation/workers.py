"""Simulations on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from ringcast.lab.testbed import affinity


@contextmanager
def workers() -> Iterator[Executor]:
    """A thread per core: a simulation is native and lets the GIL go, so processes would only cost their start.

    When the block is left early, as by Ctrl-C, simulations that wait are cancelled.
    """
    pool = ThreadPoolExecutor(len(affinity.cores()))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)

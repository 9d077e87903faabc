from __future__ import annotations

import threading

import pytest

from ringcast.lab.simulation.workers import workers
from ringcast.lab.testbed import affinity


def test_work_that_has_not_begun_never_begins() -> None:
    held, begun = threading.Event(), []

    def interrupted() -> None:
        with workers() as pool:
            for _ in affinity.cores():
                pool.submit(held.wait)
            waiting = [pool.submit(begun.append, number) for number in range(100)]
            # Those that run are let go only when those that wait have been told not to begin.
            waiting[-1].add_done_callback(lambda _: held.set())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not begun

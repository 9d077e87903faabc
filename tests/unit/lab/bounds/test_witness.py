"""Witnesses on the cores: what they saw, whatever they are asked, and that they end."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ringcast.errors import QosMismatch
from ringcast.lab.bounds.calibrating import Stopwatch
from ringcast.lab.bounds.witness import EVERY_NS, Witnesses, undisturbed
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.transport.urgent import scheduling


def test_spans_beside_what_was_taken_away_are_kept():
    assert undisturbed([(0, 10), (10, 20), (25, 30)], [(12, 14), (20, 25)]) == [(0, 10), (25, 30)]
    assert undisturbed([(0, 10)], []) == [(0, 10)]


class Fake(Witnesses):
    """Saw everything taken away until now."""

    def taken(self):
        return [(0, time.monotonic_ns())]


def test_a_stopwatch_without_a_single_undisturbed_span_shows_all():
    assert len(Stopwatch(Fake()).timed(lambda: None, 5)) == 5


def test_a_stopwatch_leaves_out_what_was_disturbed():
    class Once(Fake):
        def taken(self):
            return [(0, began[0] + 1)]

    began: list[int] = []
    kept = Stopwatch(Once()).timed(lambda: began.append(time.monotonic_ns()), 5)
    assert len(kept) == 4


def allowed():
    try:
        scheduling.check("fifo:90", "here")
    except QosMismatch:
        return False
    return True


def test_a_witness_that_is_stopped_says_so_afterwards(eventually):
    if not allowed():
        with pytest.raises(LabError, match="root"), Witnesses():
            pass
        return
    with Witnesses() as witnesses:
        processes = witnesses.processes
        assert len(processes) == len(affinity.cores())
        os.kill(processes[0].pid, signal.SIGSTOP)
        os.waitid(os.P_PID, processes[0].pid, os.WSTOPPED)
        since = time.monotonic_ns()
        while (until := time.monotonic_ns()) < since + 10 * EVERY_NS:
            pass
        os.kill(processes[0].pid, signal.SIGCONT)
        eventually(lambda: any(a < since and b > until for a, b in witnesses.taken()))
    assert all(process.returncode is not None for process in processes)

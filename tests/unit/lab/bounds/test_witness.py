"""Witnesses on the cores: what they saw, whatever they are asked, and that they end."""

from __future__ import annotations

import os
import random
import signal
import time
from types import SimpleNamespace

import pytest

from ringcast.errors import QosMismatch
from ringcast.lab.bounds.calibrating import Stopwatch, longest
from ringcast.lab.bounds.witness import EVERY_NS, OwnTime, Witnesses, undisturbed
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


def test_the_longest_of_a_million_is_not_shorter_than_the_longest_seen():
    assert longest([3.0, 9.0, 4.0]) == 9.0
    assert longest([5.0] * 300) == 5.0
    draw = random.Random(1)
    few = [draw.expovariate(1.0) for _ in range(3000)]
    assert max(few) < longest(few)
    assert 10.0 < longest(few) < 20.0  # of a million such: about 14


def test_time_that_a_thread_neither_had_nor_waited_for_is_noticed(monkeypatch):
    ms = 1_000_000
    now, had = 100 * ms, 7 * ms
    monkeypatch.setattr(OwnTime, "_had_ns", lambda self: had)
    monkeypatch.setattr("ringcast.lab.bounds.witness.time", SimpleNamespace(monotonic_ns=lambda: now))
    own, taken = OwnTime(), []
    now, had = 102 * ms, 9 * ms
    own.notice(100 * ms, taken)
    assert taken == []
    now = 112 * ms  # ten that were nobody's
    own.notice(100 * ms, taken)
    assert taken == [(100 * ms, 112 * ms)]
    own.notice(50 * ms, taken)
    assert taken[1:] == [(100 * ms, 112 * ms)], "what was before it began is not known"
    own.close()


def test_a_thread_that_computes_has_its_time_as_the_kernel_counts_it():
    own = OwnTime()
    before, until = own._had_ns(), time.thread_time_ns() + 2_000_000
    while time.thread_time_ns() < until:
        pass
    assert own._had_ns() - before >= 2_000_000
    own.close()


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
        assert len(processes) == 2 * len(affinity.cores())
        os.kill(processes[0].pid, signal.SIGSTOP)
        os.waitid(os.P_PID, processes[0].pid, os.WSTOPPED)
        since = time.monotonic_ns()
        while (until := time.monotonic_ns()) < since + 10 * EVERY_NS:
            pass
        os.kill(processes[0].pid, signal.SIGCONT)
        eventually(lambda: any(a < since and b > until for a, b in witnesses.taken()))
    assert all(process.returncode is not None for process in processes)

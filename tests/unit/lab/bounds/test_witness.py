"""Witnesses on the cores: what they saw, whatever they are asked, and that they end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ringcast.errors import QosMismatch
from ringcast.lab.bounds.calibrating import Stopwatch
from ringcast.lab.bounds.outsiders import NONE, Account, Outsiders
from ringcast.lab.bounds.witness import EVERY_NS, Core, OwnTime, Sleepers, Witnesses, undisturbed
from ringcast.lab.bounds.worker import spin
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.transport.urgent import scheduling


def test_spans_beside_what_was_taken_away_are_kept():
    assert undisturbed([(0, 10), (10, 20), (25, 30)], [(12, 14), (20, 25)]) == [(0, 10), (25, 30)]
    assert undisturbed([(0, 10)], []) == [(0, 10)]


class Fake(Witnesses):
    """Saw everything taken away until now."""

    def seen(self):
        return [(0, time.monotonic_ns())]


def test_a_stopwatch_without_a_single_undisturbed_span_shows_all():
    assert len(Stopwatch(Fake()).timed(lambda: None, 5)) == 5


def test_a_stopwatch_leaves_out_what_was_disturbed():
    class Once(Fake):
        def seen(self):
            return [(0, began[0] + 1)]

    began: list[int] = []
    kept = Stopwatch(Once()).timed(lambda: began.append(time.monotonic_ns()), 5)
    assert len(kept) == 4


def test_time_that_a_thread_neither_had_nor_waited_for_is_noticed(monkeypatch):
    ms = 1_000_000
    now, counted = 100 * ms, (5 * ms, 2 * ms)
    monkeypatch.setattr(OwnTime, "_counted_ns", lambda self: counted)
    monkeypatch.setattr("ringcast.lab.bounds.witness.time", SimpleNamespace(monotonic_ns=lambda: now))
    own, taken = OwnTime(), []
    now, counted = 102 * ms, (6 * ms, 3 * ms)
    assert own.notice(100 * ms, taken) == ms
    assert taken == []
    now = 112 * ms  # ten that were nobody's
    own.notice(100 * ms, taken)
    assert taken == [(100 * ms, 112 * ms)]
    own.notice(50 * ms, taken)
    assert taken[1:] == [(100 * ms, 112 * ms)], "what was before it began is not known"
    own.close()


def test_a_thread_that_computes_has_its_time_as_the_kernel_counts_it():
    own = OwnTime()
    before, until = own._counted_ns()[0], time.thread_time_ns() + 2_000_000
    while time.thread_time_ns() < until:
        pass
    assert own._counted_ns()[0] - before >= 2_000_000
    own.close()


def test_a_thread_whose_core_stood_still_while_it_computed_notes_it(monkeypatch):
    ms = 1_000_000
    times = iter([0, ms // 10, 2 * ms, 3 * ms])
    fake = SimpleNamespace(thread_time_ns=lambda: next(times), monotonic_ns=lambda: 50 * ms)
    monkeypatch.setattr("ringcast.lab.bounds.worker.time", fake)
    taken = []
    spin(2 * ms, taken)
    assert taken == [(50 * ms - 19 * ms // 10, 50 * ms)]


def test_what_others_had_of_a_core_is_what_the_experiment_did_not(tmp_path):
    own = tmp_path / "mine"
    own.mkdir()

    def used(machine, mine):
        (tmp_path / "cpuacct.usage_percpu").write_text(f"7 {machine} \n")
        (own / "cpuacct.usage_percpu").write_text(f"9 {mine} \n")

    used(1000, 400)
    others = Outsiders(str(own), core=1)
    used(1900, 1000)
    assert others.had_since() == 300
    assert others.had_since() == 0
    assert Outsiders(NONE, core=1).had_since() == 0


def test_without_accounts_nothing_is_known(tmp_path):
    with Account(tmp_path) as account:
        assert account.path == NONE


def test_an_account_is_gone_afterwards():
    before = Path("/proc/self/cgroup").read_text()
    with Account() as account:
        inside = Path("/proc/self/cgroup").read_text()
        assert (account.path == NONE) == (inside == before)
    assert Path("/proc/self/cgroup").read_text() == before
    assert account.path == NONE or not Path(account.path).exists()


def allowed():
    try:
        scheduling.check("fifo:90", "here")
    except QosMismatch:
        return False
    return True


class Own:
    """A thread's times, as they are made up."""

    now = waited = 0

    def look(self):
        return self.now, self.waited


class Others:
    had = 0

    def had_since(self):
        had, self.had = self.had, 0
        return had


def test_a_witness_sees_when_its_core_stood_still_and_when_others_had_it():
    ms = 1_000_000
    own, others = Own(), Others()
    core = Core(own, others)
    assert core.look(10_000) is None
    own.now, own.waited = 5 * ms, 5 * ms - 20_000  # it waited behind the experiment's own threads
    assert core.look(5 * ms) is None
    own.now = 7 * ms
    assert core.look(7 * ms) == (5 * ms, 7 * ms), "it neither ran nor waited"
    own.now, own.waited, others.had = 9 * ms, own.waited + 2 * ms, ms
    assert core.look(9 * ms) == (7 * ms, 9 * ms), "others had the core"
    assert core.look(9 * ms + 1000) is None


def test_witnesses_end_with_the_block():
    with Witnesses() as witnesses:
        processes = witnesses.processes
        assert len(processes) == len(affinity.cores())
    assert all(process.returncode is not None for process in processes)


def test_a_sleeper_that_is_stopped_says_so_afterwards(eventually):
    if not allowed():
        with pytest.raises(LabError, match="root"), Sleepers():
            pass
        return
    with Sleepers() as sleepers:
        process = sleepers.processes[0]
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        since = time.monotonic_ns()
        while (until := time.monotonic_ns()) < since + 10 * EVERY_NS:
            pass
        os.kill(process.pid, signal.SIGCONT)
        middle = (since + until) // 2
        eventually(lambda: any(a < middle < b for a, b in sleepers.seen()))
    assert process.returncode is not None

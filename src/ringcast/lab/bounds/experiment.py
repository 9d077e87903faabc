"""`lab run bounds`: measured maximum beside computed bound, over random task sets on this machine.

Every set is judged first and then run, whether it was admitted or not. One that ran without missing a deadline is
feasible, as far as can be seen. Threads have real-time priorities by deadline, so this needs root.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple

import msgspec

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import NS, OtherTask, System
from ringcast.admission.verdict import Verdict, judge
from ringcast.lab.bounds import witness
from ringcast.lab.bounds.calibrating import calibrate
from ringcast.lab.bounds.running import Measured, Runner
from ringcast.lab.bounds.task_sets import NODE, task_set
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.transport.urgent.awake import AWAKE

NEEDS_ROOT = False
PIPELINES: tuple[str, ...] = ()
SETS, QUICK_SETS, LEAST_SETS = 40, 12, 6
TOGETHER_S = 30.0
"""For all sets, where all experiments run in their quick forms."""
SECONDS, QUICK_SECONDS = 3.0, 1.5
LEAST_ADMITTED, LEAST_TIGHT = 0.5, 0.2


class Outcome(NamedTuple):
    """A task set: what was computed, and what was measured of every stream."""

    system: System
    verdict: Verdict
    measured: list[Measured]

    def pairs(self) -> list[tuple[float, float, Measured]]:
        """(bound, deadline, measured) of every stream."""
        streams = [one for one in self.verdict.judged if one.kind == "subscriber"]
        limits = [one.limit_s if one.limit_s is not None else math.inf for one in streams]
        return [(one.bound_s, limit, seen) for one, limit, seen in zip(streams, limits, self.measured, strict=True)]

    @property
    def admitted(self) -> bool:
        """Every stream is; the witnesses have no deadline to keep."""
        return all(bound <= limit for bound, limit, _ in self.pairs())

    @property
    def feasible(self) -> bool:
        return all(seen.longest_s <= limit and not seen.missing for _, limit, seen in self.pairs())


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    _check_priorities()
    sets, seconds = (QUICK_SETS, QUICK_SECONDS) if quick else (SETS, SECONDS)
    steps.expect(sets + 1)
    steps.step("calibrating")
    disturbance = Disturbance()
    outcomes = []
    with AWAKE.held(), ExitStack() as stack:  # as daemons do while channels have a schedule
        found, witness_s = calibrate(), witness.cost_s()
        runner = stack.enter_context(Runner())
        for seed in steps.rounds(sets, LEAST_SETS, TOGETHER_S):
            steps.step(f"task set {seed + 1}")
            cores = len(affinity.cores())
            made = task_set(seed, cores, found.costs, found.blocking_s, found.preemption_s)
            system = watched(made, cores, witness_s)
            outcomes.append(Outcome(system, judge(system), runner.run(system, seconds)))
    findings = conclude_sets(outcomes)
    findings.rows += disturbance.rows()
    findings.notes.append(_calibrated(found))
    return findings


def watched(system: System, cores: int, witness_s: float) -> System:
    """With the witnesses, one on each core and above all streams."""
    period = witness.SELDOM_NS / NS
    tasks = tuple(
        OtherTask(name=f"witness {i}", node=NODE, period_s=period, compute_s=witness_s, deadline_s=period)
        for i in range(cores)
    )
    return msgspec.structs.replace(system, tasks=tasks)


def conclude(findings: Findings, analysed: Analysed) -> None:
    """There is nothing for Spark to do."""


def conclude_sets(outcomes: Sequence[Outcome]) -> Findings:
    """Pure."""
    findings = Findings()
    admitted = [one for one in outcomes if one.admitted]
    feasible = [one for one in outcomes if one.feasible]
    pairs = [pair for one in admitted for pair in one.pairs()]
    misses = sum(delay > bound * 1e9 for bound, _, seen in pairs for delay in seen.delays_ns)
    missing = sum(seen.missing for _, _, seen in pairs)
    shares = [seen.longest_s / bound for bound, _, seen in pairs if seen.delays_ns]
    both = [one for one in feasible if one.admitted]
    findings.rows += [
        at_most("messages of admitted streams that took longer than their bound", misses, "messages", 0),
        at_most("messages of admitted streams that never came", missing, "messages", 0),
        at_least("share of the feasible task sets that are admitted", len(both) / len(feasible) if feasible else None,
                 "of 1", LEAST_ADMITTED),
        at_least("measured maximum as a share of the bound, median of admitted streams",
                 median(shares) if shares else None, "of 1", LEAST_TIGHT),
        figure("largest share of its bound that a stream took", max(shares, default=None), "of 1"),
        figure("task sets", len(outcomes), "sets"),
        figure("task sets that are feasible: none missed a deadline while it ran", len(feasible), "sets"),
        figure("task sets that are admitted", len(admitted), "sets"),
        figure("messages measured", sum(len(s.delays_ns) for one in outcomes for s in one.measured), "messages"),
        figure("messages left out, because the witness saw a core taken away meanwhile",
               sum(s.disturbed for one in outcomes for s in one.measured), "messages"),
    ]  # fmt: skip
    findings.tables.append(Table(
        "Task sets", ["set", "streams", "cores busy", "admitted", "feasible", "longest measured / bound", "left out"],
        [_cells(i, one) for i, one in enumerate(outcomes)],
    ))  # fmt: skip
    findings.pictures.append(Picture(
        "measured-and-bound", "Measured maximum and computed bound of every admitted stream", "bound (ms)",
        "measured maximum (ms)",
        [Series("measured", sorted((bound * 1e3, seen.longest_s * 1e3) for bound, _, seen in pairs)),
         Series("bound", sorted((bound * 1e3, bound * 1e3) for bound, _, _ in pairs))],
    ))  # fmt: skip
    return findings


def _cells(number: int, one: Outcome) -> list[str]:
    said = {True: "yes", False: "no"}
    shares = [seen.longest_s / bound for bound, _, seen in one.pairs()]
    busy = sum(one.verdict.nodes.values())
    return [
        str(number + 1), str(len(one.system.streams)), f"{busy:.2f}", said[one.admitted], said[one.feasible],
        f"{max(shares):.2f}", str(sum(seen.disturbed for seen in one.measured)),
    ]  # fmt: skip


def _check_priorities() -> None:
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as exc:
        raise LabError(
            "the bounds are those of threads with real-time priority, and this user may not give any; run it as root, "
            "or allow it: 'ringcast doctor' says how"
        ) from exc
    os.sched_setscheduler(0, before, parameters)


def _calibrated(found: Calibration) -> str:
    costs = ", ".join(f"{name} {getattr(found.costs, name).fixed_s * 1e6:.0f} us" for name in ("publish", "deliver"))
    waits, loses = found.blocking_s * 1e6, found.preemption_s * 1e6
    return f"calibrated: {costs}; a ready thread waits {waits:.0f} us at most, one preempted loses {loses:.0f} us"

"""`lab run bounds`: measured maximum beside computed bound, over random task sets on this machine.

Every set is judged first and then run, whether it was admitted or not. One that ran without missing a deadline is
feasible, as far as can be seen. Threads have real-time priorities by deadline, so this needs root.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import System
from ringcast.admission.verdict import Verdict, judge
from ringcast.lab.bounds.calibrating import calibrate
from ringcast.lab.bounds.linked import LinkedRunner
from ringcast.lab.bounds.outsiders import NONE, Account
from ringcast.lab.bounds.parts import NEAR, Parts, computed, measured
from ringcast.lab.bounds.running import Measured, Runner
from ringcast.lab.bounds.task_sets import linked_set, task_set
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.lab.testbed.network import unavailable
from ringcast.transport.urgent.awake import AWAKE

NEEDS_ROOT = False
__all__ = ["NEEDS_ROOT", "PIPELINES", "conclude", "run"]
EXPERIMENT, METRIC = "bounds", "delay"
SETS, QUICK_SETS, LEAST_SETS = 40, 12, 6
TOGETHER_S = 12.0
"""For all sets, where all experiments run in their quick forms."""
LINKED, QUICK_LINKED = 10, 3
"""Over a link."""
SECONDS, QUICK_SECONDS = 3.0, 1.5
LEAST_ADMITTED, LEAST_TIGHT = 0.5, 0.2
WORDS = {"starts": "until it starts", "computes": "computing", "behind": "behind others", "handed_over": "handed over"}
MOST_SHOWN = 40


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
    with AWAKE.held(), Account() as account:  # awake as while channels have a schedule
        found = calibrate(account=account.path)
        with Runner(account.path) as runner:
            for seed in steps.rounds(sets, LEAST_SETS, TOGETHER_S):
                steps.step(f"task set {seed + 1}")
                system = task_set(seed, len(affinity.cores()), found)
                outcomes.append(Outcome(system, judge(system), runner.run(system, seconds)))
        linked, why = _over_a_link(account.path, found, quick, seconds, steps)
    findings = conclude_sets(outcomes)
    findings.rows += linked_rows(linked) if not why else []
    findings.notes += [f"no sets over a link: {why}"] if why else []
    findings.measured += sampled.values(EXPERIMENT, _delays(outcomes), METRIC, "s")
    findings.rows += disturbance.rows()
    findings.notes.append(_calibrated(found))
    if account.path == NONE:
        findings.notes.append("there are no accounts of processor time here: when others had a core is not known")
    return findings


def _over_a_link(
    account: str, found: Calibration, quick: bool, seconds: float, steps: Steps
) -> tuple[list[Outcome], str]:
    """Sets of streams from one node to another; or in words why there are none."""
    if why := unavailable() or ("each node needs a core" if len(affinity.cores()) < 2 else ""):
        return [], why
    outcomes = []
    sets = QUICK_LINKED if quick else LINKED
    steps.expect(sets)
    with LinkedRunner(account) as runner:
        for seed in range(sets):
            steps.step(f"task set {seed + 1} over a link")
            system = linked_set(seed, found)
            outcomes.append(Outcome(system, judge(system), runner.run(system, seconds)))
    return outcomes, ""


def linked_rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Pure."""
    pairs = [pair for one in outcomes if one.admitted for pair in one.pairs()]
    shares = [seen.longest_s / bound for bound, _, seen in pairs if seen.messages]
    misses = sum(one.delay > bound * 1e9 for bound, _, seen in pairs for one in seen.messages)
    return [
        at_most("over a link: messages of admitted streams that took longer than their bound",
                misses if pairs else None, "messages", 0),
        figure("over a link: measured maximum as a share of the bound, median of admitted streams",
               median(shares) if shares else None, "of 1"),
        figure("over a link: task sets that are admitted", sum(one.admitted for one in outcomes), "sets",
               len(outcomes)),
        figure("over a link: messages of admitted streams that never came", sum(seen.missing for *_, seen in pairs),
               "messages"),
    ]  # fmt: skip


class Stream(NamedTuple):
    """Of an admitted task set, in the lake."""

    task_set: int
    stream: int
    bound_s: float


def _delays(outcomes: Sequence[Outcome]) -> dict[Stream, list[list[float]]]:
    return {
        Stream(number, at, bound): [[1e-9 * one.delay for one in seen.messages]]
        for number, outcome in enumerate(outcomes)
        if outcome.admitted
        for at, (bound, _, seen) in enumerate(outcome.pairs())
        if math.isfinite(bound)
    }


def conclude(findings: Findings, analysed: Analysed) -> None:
    """How near streams came to their bounds, as Spark computes it from the lake."""
    found = sampled.rows_of(analysed, EXPERIMENT, METRIC, Stream)
    sampled.by_spark(findings, _tightness([(stream.bound_s, row["most"]) for stream, row in found.items()]))


def _tightness(longest: Sequence[tuple[float, float]]) -> Findings:
    """`longest` are bounds and measured maxima, in seconds, of every admitted stream."""
    shares = [seen / bound for bound, seen in longest]
    rows = [
        at_least("measured maximum as a share of the bound, median of admitted streams",
                 median(shares) if shares else None, "of 1", LEAST_TIGHT),
        figure("largest share of its bound that a stream took", max(shares, default=None), "of 1"),
    ]  # fmt: skip
    picture = Picture(
        "measured-and-bound", "Measured maximum and computed bound of every admitted stream", "bound (ms)",
        "measured maximum (ms)",
        [Series("measured", sorted((bound * 1e3, seen * 1e3) for bound, seen in longest)),
         Series("bound", sorted((bound * 1e3, bound * 1e3) for bound, _ in longest))],
    )  # fmt: skip
    return Findings(rows, [], [picture])


def conclude_sets(outcomes: Sequence[Outcome]) -> Findings:
    """Pure."""
    findings = Findings()
    admitted = [one for one in outcomes if one.admitted]
    feasible = [one for one in outcomes if one.feasible]
    pairs = [pair for one in admitted for pair in one.pairs()]
    misses = sum(one.delay > bound * 1e9 for bound, _, seen in pairs for one in seen.messages)
    missing = sum(seen.missing for _, _, seen in pairs)
    tightness = _tightness([(bound, seen.longest_s) for bound, _, seen in pairs if seen.messages])
    both = [one for one in feasible if one.admitted]
    findings.rows += [
        at_most("messages of admitted streams that took longer than their bound", misses, "messages", 0),
        at_most("messages of admitted streams that never came", missing, "messages", 0),
        at_least("share of the feasible task sets that are admitted", len(both) / len(feasible) if feasible else None,
                 "of 1", LEAST_ADMITTED),
        *tightness.rows,
        figure("task sets", len(outcomes), "sets"),
        figure("task sets that are feasible: none missed a deadline while it ran", len(feasible), "sets"),
        figure("task sets that are admitted", len(admitted), "sets"),
        figure("messages measured", sum(len(s.messages) for one in outcomes for s in one.measured), "messages"),
        figure("messages left out, because a witness saw a core taken away meanwhile, or had by others",
               sum(s.disturbed for one in outcomes for s in one.measured), "messages"),
    ]  # fmt: skip
    compared = [one for i, outcome in enumerate(outcomes) if outcome.admitted for one in _compared(i, outcome)]
    findings.rows += _beyond(compared)
    findings.tables.append(_near(compared))
    findings.tables.append(Table(
        "Task sets", ["set", "streams", "cores busy", "admitted", "feasible", "longest measured / bound", "left out"],
        [_cells(i, one) for i, one in enumerate(outcomes)],
    ))  # fmt: skip
    findings.pictures += tightness.pictures
    return findings


class Compared(NamedTuple):
    """A message of an admitted stream: what its delay consists of, and its bound."""

    number: int
    tag: str
    measured: Parts
    computed: Parts

    @property
    def share(self) -> float:
        return self.measured.whole / self.computed.whole


def _compared(number: int, one: Outcome) -> list[Compared]:
    bounds = computed(one.system)
    return [
        Compared(number, stream.tag, measured(message, stream), bounds[stream.tag])
        for stream, seen in zip(one.system.streams, one.measured, strict=True)
        for message in seen.messages
    ]


def _beyond(compared: Sequence[Compared]) -> list[Row]:
    """Which terms of the bounds are too small, if any: single terms may be, as long as none of the sums is."""
    return [
        figure(f"longest beyond what was computed: {words}", max(
            (1e6 * (getattr(one.measured, name) - getattr(one.computed, name)) for one in compared), default=None
        ), "us")
        for name, words in WORDS.items() if name != "computes"
    ]  # fmt: skip


def _near(compared: Sequence[Compared]) -> Table:
    near = sorted((one for one in compared if one.share >= NEAR), key=lambda one: -one.share)[:MOST_SHOWN]
    return Table(
        f"Messages that took {NEAR} of their bound or more, in us: measured (computed)",
        ["set", "stream", "share of the bound", *WORDS.values(), "whole"],
        [[str(one.number + 1), one.tag, f"{one.share:.3f}",
          *(f"{getattr(one.measured, name) * 1e6:,.0f} ({getattr(one.computed, name) * 1e6:,.0f})" for name in WORDS),
          f"{one.measured.whole * 1e6:,.0f} ({one.computed.whole * 1e6:,.0f})"]
         for one in near],
    )  # fmt: skip


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
    waits, kept, loses = (value * 1e6 for value in (found.waking_s, found.blocking_s, found.preemption_s))
    return (
        f"calibrated: {costs}; a ready thread waits {waits:.0f} us, once for a message {kept:.0f} us, one that is "
        f"preempted loses {loses:.0f} us"
    )

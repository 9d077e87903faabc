"""`ringcast lab run reservation`: paper 001's experiment 5, without and with reservations.

Experiment 3's messages go over a router and come back, while programs compete for the processors and another channel
for the links. With a reservation each thread on the way, the application's too, has a part of a core (SCHED_DEADLINE),
and the queues have a class for the channel's code point (HTB: the paper's HFSC is not in every kernel).
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.errors import QosMismatch
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import Row, at_least, figure, number
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.measuring.samples import Summary, pooled
from ringcast.lab.push_pull.network import SIZES
from ringcast.lab.reservation.hogs import hogs
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.lab.yarp.network import RESERVED, Cell, PriorityNetwork

__all__ = ["PIPELINES", "conclude", "run"]
EXPERIMENT, METRIC = "reservation", "round_trip_under_load"
TRAFFIC = 0.7
"""Of the links, at full utilisation of the processors."""
HOG_TIMES, PAPER_TIMES = 10.0, 5.0
"""What is asked for with a hog on each core; the paper found 5 to 10 times."""
WITHOUT, WITH = "none", "reserved"
ROUNDS = 5
COUNT = 200
"""Round trips of a point in one round: the p99 of a thousand is the tenth worst, of a hundred the second worst."""
TOGETHER_S = 25.0
"""For all round trips, where all experiments run in their quick forms."""
THREADS = 6
"""Of a round trip: a sender, a receiver and the application's own, each way."""


class Point(NamedTuple):
    """One measurement: the share of all cores that hogs use, and of the links that traffic uses."""

    hogs: float
    traffic: float
    size: int
    priority: str


Measured = dict[Point, Summary]


def points(quick: bool) -> list[Point]:
    shares = (0.0, 1.0) if quick else (0.0, 0.25, 0.5, 0.75, 1.0)
    sizes = (SIZES[1],) if quick else SIZES
    both = [(share, share * TRAFFIC) for share in shares]
    alone = [(1.0, 0.0)]  # one hog per core and nothing else: what is asked for
    return [
        Point(share, traffic, size, priority)
        for share, traffic in dict.fromkeys([*both, *alone])
        for size in (sizes if traffic or not share else (SIZES[1],))
        for priority in (WITHOUT, WITH)
    ]


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    others = Disturbance()
    wanted = points(quick)
    batches: dict[Point, list[list[float]]] = {point: [] for point in wanted}
    steps.expect(ROUNDS * len(wanted))
    fewest = THREADS
    with PriorityNetwork("router") as network:
        try:
            for turn in steps.rounds(ROUNDS, 1, TOGETHER_S):
                for point in wanted if turn % 2 == 0 else reversed(wanted):
                    steps.step(
                        f"hogs {point.hogs:.0%}, traffic {point.traffic:.0%}, {point.size} bytes, {point.priority}"
                    )
                    cell = Cell("router", "udp", "udp", point.traffic, point.priority, point.size)
                    with hogs(network.mesh.bed.node("a"), point.hogs):
                        trips = network.round_trips(cell, COUNT)
                    batches[point].append([ns * 1e-9 for ns in trips.taken_ns])
                    if point.priority == WITH:
                        fewest = min(fewest, trips.schedules.count(RESERVED["sched"]))
        except QosMismatch as exc:
            findings.notes.append(f"no reservation could be made: {exc}")
            fewest = 0
    measured = {point: pooled(found) for point, found in batches.items() if any(found)}
    findings.measured += sampled.values(EXPERIMENT, batches, METRIC, "s")
    findings.add(_concluded(measured))
    name = "threads of a round trip whose reservation the kernel had, at the least"
    findings.rows.append(at_least(name, fewest, "threads", THREADS))
    findings.rows += others.rows()
    findings.notes.append(f"a reservation is {RESERVED['sched']} for each of the six threads of a round trip")
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Figure 11, as Spark computes it from the lake."""
    wanted = [*points(quick=False), *points(quick=True)]
    sampled.by_spark(findings, _concluded(sampled.summaries(analysed, EXPERIMENT, METRIC, Point, wanted)))


def _concluded(measured: Measured) -> Findings:
    return Findings(judged(measured), [_table(measured)], [_picture(measured)])


def judged(measured: Measured) -> list[Row]:
    rows = []
    for point in [point for point in measured if point.priority == WITH and point.hogs == 1.0]:
        without = measured.get(point._replace(priority=WITHOUT))
        times = without.p99 / measured[point].p99 if without is not None else None
        if not point.traffic:
            name = f"one hog per core, {point.size} bytes: p99 without reservation by with"
            rows.append(at_least(name, times, "times", HOG_TIMES))
        else:
            name = f"hogs and traffic, {point.size} bytes: p99 without reservation by with (paper: 5 to 10)"
            rows.append(at_least(name, times, "times", PAPER_TIMES, PAPER_TIMES, kind="shape"))
    rows += [
        figure(f"idle, {point.size} bytes, {point.priority}: p99", found.p99 * 1e6, "us")
        for point, found in measured.items()
        if not point.hogs
    ]
    return rows


def _table(measured: Measured) -> Table:
    heads = ("hogs", "traffic", "bytes", "reservation", "mean us", "deviation us", "p99 us")
    rows = [
        [
            f"{point.hogs:.0%}", f"{point.traffic:.0%}", str(point.size), "yes" if point.priority == WITH else "no",
            *(number(value * 1e6) for value in (found.mean, found.std, found.p99)),
        ]
        for point, found in measured.items()
    ]  # fmt: skip
    return Table("Experiment 5: round trips over one router", heads, rows)


def _picture(measured: Measured) -> Picture:
    series = []
    for label, priority in (("without reservation", WITHOUT), ("with reservation", WITH)):
        found = {
            point.hogs: summary.p99 * 1e3
            for point, summary in measured.items()
            if point.priority == priority and bool(point.traffic) == bool(point.hogs) and point.size == SIZES[1]
        }
        series.append(Series(label, sorted((100 * share, value) for share, value in found.items())))
    return Picture("experiment-5", "Round trips over one router", "utilisation (%)", "p99 (ms)", series)

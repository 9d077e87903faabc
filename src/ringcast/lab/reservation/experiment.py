"""`ringcast lab run reservation`: paper 001's experiment 5, without and with reservations.

Experiment 3's messages go over a router and come back, with a proxy at the publisher or at the subscriber that leaves
every other message out, while programs compete for the processors and another channel for the links. With a reservation
each thread on the way, the application's too, has a part of a core (SCHED_DEADLINE), the daemons keep a part of their
hosts' links for the channel, and the router's queues have a class for its code point (HTB, or HFSC where the kernel has
it). The paper compares delays without reservation beside the competition with those of its experiment 3, where nobody
competes; and so does a row here, beside that which compares without and with.
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
from ringcast.transport.urgent.service_curves import has_hfsc

__all__ = ["PIPELINES", "conclude", "run"]
EXPERIMENT, METRIC = "reservation", "round_trip_under_load"
TRAFFIC, QUICK_TRAFFIC = 1.0, 0.7
"""Of the links, at full utilisation of the processors. Where links are full, what has no reservation takes a tenth of a
second each time: too long for the quick form."""
PROXIES = ("publisher", "subscriber")
HOG_TIMES, PAPER_TIMES = 10.0, 5.0
"""What is asked for with a hog on each core; the paper found 5 to 10 times."""
ENDS = 2
"""Of a round trip: what is sent there, and what is sent back."""
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
    proxy: str


Measured = dict[Point, Summary]


def points(quick: bool) -> list[Point]:
    shares = (0.0, 1.0) if quick else (0.0, 0.25, 0.5, 0.75, 1.0)
    sizes = (SIZES[1],) if quick else SIZES
    both = [(share, share * (QUICK_TRAFFIC if quick else TRAFFIC)) for share in shares]
    alone = [(1.0, 0.0)]  # one hog per core and nothing else: what is asked for
    return [
        Point(share, traffic, size, priority, proxy)
        for share, traffic in dict.fromkeys([*both, *alone])
        for size in (sizes if traffic or not share else (SIZES[1],))
        for priority in (WITHOUT, WITH)
        for proxy in PROXIES
    ]


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    others = Disturbance()
    wanted = points(quick)
    batches: dict[Point, list[list[float]]] = {point: [] for point in wanted}
    steps.expect(ROUNDS * len(wanted))
    fewest, ends, lost = THREADS, ENDS, 0
    with PriorityNetwork("router") as network:
        try:
            for turn in steps.rounds(ROUNDS, 1, TOGETHER_S):
                for point in wanted if turn % 2 == 0 else reversed(wanted):
                    steps.step(
                        f"hogs {point.hogs:.0%}, traffic {point.traffic:.0%}, {point.size} bytes, {point.priority}, "
                        f"proxy at {point.proxy}"
                    )
                    cell = Cell("router", "udp", "udp", point.traffic, point.priority, point.size, point.proxy)
                    with hogs(network.mesh.bed.node("a"), point.hogs):
                        trips = network.round_trips(cell, COUNT)
                    batches[point].append([ns * 1e-9 for ns in trips.taken_ns])
                    lost += trips.lost
                    if point.priority == WITH:
                        ends = min(ends, trips.reserved)
                        fewest = min(fewest, trips.schedules.count(RESERVED["sched"]))
        except QosMismatch as exc:
            findings.notes.append(f"no reservation could be made: {exc}")
            fewest = ends = 0
    measured = {point: pooled(found) for point, found in batches.items() if any(found)}
    findings.measured += sampled.values(EXPERIMENT, batches, METRIC, "s")
    findings.add(_concluded(measured))
    name = "threads of a round trip whose reservation the kernel had, at the least"
    findings.rows.append(at_least(name, fewest, "threads", THREADS))
    name = "ends of a round trip whose bandwidth the kernel kept, at the least"
    findings.rows.append(at_least(name, ends, "ends", ENDS))
    findings.rows.append(figure("round trips that did not come back", lost, "messages"))
    findings.rows += others.rows()
    findings.notes.append(
        f"classes of the links are kept by {'HFSC' if has_hfsc() else 'HTB: this kernel has no HFSC'}"
    )
    findings.notes.append(
        f"a reservation is {RESERVED['sched']} for each of the six threads of a round trip, "
        f"and {RESERVED['bandwidth']} of the link of each host"
    )
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
        what = f"{point.size} bytes, proxy at {point.proxy}"
        if not point.traffic:
            rows.append(
                at_least(f"one hog per core, {what}: p99 without reservation by with", times, "times", HOG_TIMES)
            )
            continue
        name = f"hogs and traffic, {what}: p99 without reservation by with"
        rows.append(at_least(name, times, "times", PAPER_TIMES, kind="shape"))
        # The paper's "up to 5 to 10 times more than in Figure 8 (a)": nobody competes there.
        alone = measured.get(point._replace(hogs=0.0, traffic=0.0, priority=WITHOUT))
        more = without.mean / alone.mean if without is not None and alone is not None else None
        name = f"without reservation, {what}: mean beside hogs and traffic by mean alone (paper: 5 to 10)"
        rows.append(at_least(name, more, "times", PAPER_TIMES, PAPER_TIMES, kind="shape"))
        kept = measured[point].mean / alone.mean if alone is not None else None
        name = f"with reservation, {what}: mean beside hogs and traffic by mean alone without"
        rows.append(figure(name, kept, "times"))
    rows += [
        figure(f"idle, {point.size} bytes, {point.priority}, proxy at {point.proxy}: p99", found.p99 * 1e6, "us")
        for point, found in measured.items()
        if not point.hogs
    ]
    return rows


def _table(measured: Measured) -> Table:
    heads = ("hogs", "traffic", "bytes", "proxy at", "reservation", "mean us", "deviation us", "p99 us")
    rows = [
        [
            f"{point.hogs:.0%}", f"{point.traffic:.0%}", str(point.size), point.proxy,
            "yes" if point.priority == WITH else "no",
            *(number(value * 1e6) for value in (found.mean, found.std, found.p99)),
        ]
        for point, found in sorted(measured.items())
    ]  # fmt: skip
    return Table("Experiment 5: round trips over one router", heads, rows)


def _picture(measured: Measured) -> Picture:
    series = []
    for label, priority in (("without reservation", WITHOUT), ("with reservation", WITH)):
        for proxy in PROXIES:
            found = {
                point.hogs: summary.p99 * 1e3
                for point, summary in measured.items()
                if (point.priority, point.proxy, point.size) == (priority, proxy, SIZES[1])
                and bool(point.traffic) == bool(point.hogs)
            }
            points = sorted((100 * share, value) for share, value in found.items())
            series.append(Series(f"{label}, proxy at {proxy}", points))
    return Picture("experiment-5", "Round trips over one router", "utilisation (%)", "p99 (ms)", series)

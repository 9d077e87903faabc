"""Clocks that are seconds apart, drift and are set: how well the others know them, idle and under one-way load (the
paper's section VIII and Figure 3).

The clocks are those of the nodes' processes, which differ from the machine's by known numbers (RINGCAST_CLOCK_*): the
truth is known exactly. The first node's is the machine's own.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, NamedTuple

import numpy as np

import ringcast
from ringcast.lab.labmap.field import BENCH, OBSERVER, URGENT
from ringcast.lab.measuring.report import Findings, Picture, Series, Steps
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import star

DAY_NS = 1_700_000_000_000_000_000
"""From which drifting clocks drift."""
PAPER_ROUND_TRIP_US = 200.0
STEP_S = 0.001
RMS = "clocks, idle: RMS error"
PROBES = 40
LEADS_S = (10.0, 60.0)
NOTICE_S = 5.0
EVERY_S = 0.05


class Apart(NamedTuple):
    ahead_s: float
    drift: float

    def offset_ns(self, now_ns: int) -> float:
        """How far such a clock is ahead when the machine's shows that."""
        return self.ahead_s * 1e9 + self.drift * (now_ns - DAY_NS)

    def environment(self) -> dict[str, str]:
        return {"RINGCAST_CLOCK_AHEAD_S": str(self.ahead_s), "RINGCAST_CLOCK_DRIFT": str(self.drift)}


CLOCKS = {"b": Apart(3.25, 0.7e-6), "c": Apart(-7.5, 7e-6)}
NODES = ("a", "b", "c", "d")
SET = "d"
"""The node whose clock is set by a millisecond."""


class Sample(NamedTuple):
    node: str
    at_s: float
    error_ns: float
    """0 while the truth, which moved while it was asked, lies within what was answered."""
    bound_ns: int
    half_round_trip_ns: int


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    steps.expect(3)
    seconds = 3.0 if quick else 30.0
    steps.step("clocks: nodes whose clocks are apart")
    for lead_s in LEADS_S:  # so that on a slow machine the daemons are up before the clock is set
        step_at_s = time.time() + lead_s
        with Testbed(star(4)) as bed, MeshNodes(bed, NODES, _environments(step_at_s)) as mesh:
            for pid in mesh.pids.values():
                with contextlib.suppress(OSError):
                    affinity.real_time(pid, URGENT)
            told = mesh.sessions["a"].subscribe("@ringcast/a/clocks")
            mesh.wait(lambda mesh=mesh: _all_known(mesh), "the clocks are not known")  # type: ignore[misc]
            if time.time() > step_at_s - 0.5 and lead_s != LEADS_S[-1]:
                continue
            steps.step("clocks: idle")
            idle = sample(mesh, seconds)
            steps.step("clocks: under one-way load")
            loaded = _loaded(mesh, seconds)
            noticed_s = _noticed(told, step_at_s)
            break
    return Findings(
        rows=[*_judged("idle", idle), *_judged("under one-way load", loaded), _rms(idle), _rms_loaded(loaded),
              at_most("clocks: a step of 1 ms is noticed after", noticed_s, "s", 1.0),
              figure("clocks: half of the mean round trip, the paper's bound", _mean_half_us(idle), "us",
                     PAPER_ROUND_TRIP_US / 2)],
        pictures=[_picture(idle)],
    )  # fmt: skip


def absolute_ms(findings: Findings) -> float | None:
    """By how much times of clocks that are seconds apart were off, in the mean."""
    return next((row.value / 1e3 for row in findings.rows if row.name == RMS and row.value is not None), None)


def _environments(step_at_s: float) -> dict[str, dict[str, str]]:
    apart = {node: apart.environment() for node, apart in CLOCKS.items()}
    return {**apart, SET: {"RINGCAST_CLOCK_STEP": f"{STEP_S}@{step_at_s}"}}


def _all_known(mesh: MeshNodes) -> bool:
    return all(mesh.sessions["a"].clock(node).probes >= PROBES for node in (*CLOCKS, SET))


def sample(mesh: MeshNodes, seconds: float) -> list[Sample]:
    """What the first node knows of each clock, again and again."""
    found = []
    begun = time.monotonic()
    while (at_s := time.monotonic() - begun) < seconds:
        for node, apart in CLOCKS.items():
            before_ns = time.time_ns()
            clock = mesh.sessions["a"].clock(node)
            truth = (apart.offset_ns(before_ns), apart.offset_ns(time.time_ns()))
            error_ns = max(0.0, min(truth) - clock.offset_ns, clock.offset_ns - max(truth))
            found.append(Sample(node, at_s, error_ns, clock.bound_ns, clock.half_round_trip_ns))
        time.sleep(EVERY_S)
    return found


def _loaded(mesh: MeshNodes, seconds: float) -> list[Sample]:
    """Meanwhile the first node sends 10,000 variables every 10 ms to the others: their links carry much, one way."""
    with Actor(mesh.bed.node("a")) as publisher, Actor(mesh.bed.node("b"), extra=CLOCKS["b"].environment()) as reader:
        publisher.ask("open", end=BENCH, name="load", tag="clocks/load", n=10_000)
        mesh.wait_for_publisher("clocks/load")
        reader.ask("open", end=OBSERVER, name="load", tag="clocks/load", transport="nak")
        publisher.post("drive", name="load", cycles=round((seconds + 0.5) / 0.01), period_s=0.01)
        time.sleep(0.3)
        found = sample(mesh, seconds)
        publisher.reply(60.0 + 3 * seconds)
    return found


def _noticed(told: ringcast.Subscriber[Any], step_at_s: float) -> float | None:
    """Seconds from the step until the first node told of it; None when it did not."""
    deadline = step_at_s + NOTICE_S
    while True:
        try:
            event = told.recv(timeout=max(0.0, deadline - time.time())).data
        except TimeoutError:
            return None
        if (event["kind"], event["node"]) == ("step", SET):
            return float(event["at_ns"] / 1e9 - step_at_s)


def _judged(when: str, samples: list[Sample]) -> list[Row]:
    within = sum(one.error_ns <= one.bound_ns for one in samples) / len(samples)
    worst_us = max(one.bound_ns for one in samples) / 1e3
    said = "clocks 3.25 and -7.5 s apart, drifting by 0.7 and 7 us/s"
    return [
        at_least(f"{said}, {when}: readings whose error is within the reported bound", 100 * within, "%", 100.0),
        at_most(f"{said}, {when}: the widest bound", worst_us, "us", 200.0),
    ]


def _rms_us(samples: list[Sample]) -> float:
    return float(np.sqrt(np.mean([one.error_ns**2 for one in samples])) / 1e3)


def _rms(samples: list[Sample]) -> Row:
    return at_most(RMS, _rms_us(samples), "us", 5.0)


def _rms_loaded(samples: list[Sample]) -> Row:
    return figure("clocks, under one-way load: RMS error", _rms_us(samples), "us")


def _mean_half_us(samples: list[Sample]) -> float:
    return float(np.mean([one.half_round_trip_ns for one in samples]) / 1e3)


def _picture(samples: list[Sample]) -> Picture:
    """Figure 3: round trips, and how far off the estimated shift is."""
    some = [one for one in samples if one.node == next(iter(CLOCKS))]
    return Picture(
        "labmap_clocks", "Clock probes: mean round trip, bound, and error of the estimated shift (Figure 3)",
        "time (s)", "us",
        [Series("mean round trip", [(one.at_s, 2 * one.half_round_trip_ns / 1e3) for one in some]),
         Series("bound", [(one.at_s, one.bound_ns / 1e3) for one in some]),
         Series("error of the estimate", [(one.at_s, one.error_ns / 1e3) for one in some])],
    )  # fmt: skip

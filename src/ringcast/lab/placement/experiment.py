"""`lab run placement`: what is asked of the planner, paper 001's tables and its delays, and drawings of the examples.

What needs measured round trips takes those that `lab run push-pull` left in out/push-pull; where there are none it
measures them itself, with the same code, when this user may have network namespaces.
"""

from __future__ import annotations

import json
from pathlib import Path

from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.placement import live, paper, prediction, solving
from ringcast.lab.placement.networks import star, vbns
from ringcast.lab.push_pull import distance, network, round_trips
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.network import unavailable
from ringcast.placement import drawing
from ringcast.placement.solve.optimise import optimise

NEEDS_ROOT = False
PIPELINES = round_trips.PIPELINES
LEFT = Path("out/push-pull/rows.json")
"""Where `lab run push-pull` leaves its rows."""
BESIDE = "push-pull"
"""Whose round trips it takes from the lake where both run together."""


def run(quick: bool, steps: Steps, beside: Path | None = None) -> Findings:
    """`beside` has the folders of those that run together with it. Raises LabError."""
    findings = Findings()
    findings.add(solving.vbns_times(quick, steps))
    findings.add(solving.large_network(steps))
    findings.add(solving.against_the_optimum(steps))
    findings.add(solving.oracle(steps))
    findings.add(paper.star_by_bound())
    findings.add(paper.adversity_tables())
    findings.add(_round_trips(quick, steps, beside))
    findings.add(_live(quick, steps))
    return findings


def draw(folder: Path) -> list[Path]:
    """The networks of the examples, beside the report."""
    drawn = []
    for name, problem in (("network-star", star(0.4)), ("network-vbns", vbns(5))):
        drawn.append(folder / f"{name}.svg")
        drawn[-1].write_text(drawing.svg(optimise(problem), name))
    return drawn


def _live(quick: bool, steps: Steps) -> Findings:
    if reason := unavailable():
        return Findings(notes=[f"no live mesh of seven namespaces: {reason}"])
    return live.run(quick, steps)


def _round_trips(quick: bool, steps: Steps, beside: Path | None) -> Findings:
    """Values to predict, unless `lab run push-pull` left some."""
    if LEFT.exists() or (beside is not None and (beside / BESIDE / LEFT.name).exists()):
        return Findings()
    if reason := unavailable():
        return Findings(
            notes=[f"no round trips to compare predictions with: {reason}; run 'ringcast lab run push-pull'"]
        )
    with network.PushPullNetwork() as paper_network:
        batches = network.collect(paper_network, distance.wanted(), 6 if quick else 30, steps)
    return Findings(measured=list(round_trips.measured(batches)))


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Add the delays that were predicted beside the measured ones, which Spark made of the round trips. Raises
    LabError."""
    if LEFT.exists():
        try:
            rows, where = json.loads(LEFT.read_text()), f"by lab run push-pull, in {LEFT}"
            findings.add(prediction.conclude(prediction.points(rows), where))
        except (OSError, ValueError, AttributeError, TypeError) as exc:
            raise LabError(f"{LEFT} is not what 'ringcast lab run push-pull' writes ({exc}); run that again") from exc
    elif trips := round_trips.RoundTrips.of(analysed):
        measured = distance.conclude(trips)
        points = prediction.points([row.document() for row in measured.rows])
        findings.add(prediction.conclude(points, "in this run"))

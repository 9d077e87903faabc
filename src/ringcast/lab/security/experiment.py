"""`lab run security`: attacks on sealed packets, what seals cost, joining and floods. A row for each promise."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.security import attacks, costs, datagrams, floods, joining
from ringcast.lab.security.attacks import KINDS
from ringcast.lab.security.meshes import mesh

__all__ = ["NEEDS_ROOT", "PIPELINES", "conclude", "run"]
NEEDS_ROOT = False
PACKETS, FEW = 1_000_000, 20_000


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    steps.expect(len(KINDS) + 6)
    outcomes = {}
    for number, kind in enumerate(KINDS):
        steps.step(f"packets that are {kind.replace('_', ' ')}")
        outcomes[kind] = attacks.attack(kind, FEW if quick else PACKETS, seed=number + 1)
    findings.measured += attacks.counted(outcomes)
    findings.notes += [f"{kind}: {outcome.said}" for kind, outcome in outcomes.items() if outcome.crashed]
    rounds, count = (5, 300) if quick else (15, 2_000)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        meshes = {
            name: stack.enter_context(mesh(Path(folder) / name, secured=name == "sealed")) for name in costs.MESHES
        }
        for transport in costs.MOST_TIMES:
            steps.step(f"round trips by {transport}")
            found = costs.round_trips(meshes, transport, rounds, count)
            findings.measured += costs.measured(f"round trip by {transport}", found, "taken", "s")
        steps.step("throughput")
        rates = costs.throughput(meshes, rounds, 20_000 if quick else 100_000)
        findings.measured += costs.measured(costs.STREAM, rates, "rate", "messages/s")
    steps.step("joining with an invitation")
    findings.measured += joining.measured(quick)
    steps.step("floods of connections and requests")
    findings.measured += floods.measured(quick)
    steps.step("a flood of datagrams")
    findings.measured += datagrams.measured(quick)
    findings.add(_concluded(sampled.InPython(findings.measured)))
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Everything that is said, as Spark computes it from the lake."""
    sampled.by_spark(findings, _concluded(analysed))


def _concluded(analysed: Analysed) -> Findings:
    findings = attacks.judged(analysed)
    for part in (costs, joining, floods, datagrams):
        findings.rows += part.judged(analysed)
    return findings

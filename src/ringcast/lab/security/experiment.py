"""`lab run security`: attacks on sealed packets, what seals cost, joining and floods. A row for each promise."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.security import costs, datagrams, floods, joining
from ringcast.lab.security.attacks import KINDS, Outcome, attack
from ringcast.lab.security.meshes import mesh

NEEDS_ROOT = False
EXPERIMENT = "security"
PACKETS, FEW = 1_000_000, 20_000
MEMORY_BYTES = 256 * 1024
"""What a process may grow by during an attack: allocators round up, and threads touch their stacks."""


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    steps.expect(len(KINDS) + 6)
    outcomes = {}
    for number, kind in enumerate(KINDS):
        steps.step(f"packets that are {kind.replace('_', ' ')}")
        outcomes[kind] = attack(kind, FEW if quick else PACKETS, seed=number + 1)
    judge(findings, outcomes)
    rounds, count = (5, 300) if quick else (15, 2_000)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        meshes = {
            name: stack.enter_context(mesh(Path(folder) / name, secured=name == "sealed"))
            for name in ("plain", "sealed")
        }
        for transport, most in (("udp", 1.25), ("tcp", 1.3)):
            steps.step(f"round trips by {transport}")
            found = costs.round_trips(meshes, transport, rounds, count)
            findings.measured += sampled.values(EXPERIMENT, _cells(f"round trip by {transport}", found), "taken", "s")
            times = costs.ratio(found["sealed"], found["plain"])
            findings.rows.append(
                at_most(f"round trip of 64 B by {transport}, sealed against not", times, "times", most)
            )
            for name, samples in found.items():
                findings.rows.append(figure(f"round trip of 64 B by {transport}, {name}", min(samples) * 1e6, "us"))
        steps.step("throughput")
        rates = costs.throughput(meshes, rounds, 20_000 if quick else 100_000)
        findings.measured += sampled.values(EXPERIMENT, _cells("1 KiB by tcp", rates), "rate", "messages/s")
        times = costs.ratio(rates["sealed"], rates["plain"])
        findings.rows.append(at_least("messages of 1 KiB a second by tcp, sealed against not", times, "times", 0.7))
        for name, samples in rates.items():
            findings.rows.append(figure(f"messages of 1 KiB a second by tcp, {name}", max(samples), "messages/s"))
    steps.step("joining with an invitation")
    findings.rows += joining.rows(quick)
    steps.step("floods of connections and requests")
    findings.rows += floods.rows(quick)
    steps.step("a flood of datagrams")
    findings.rows += datagrams.rows(quick)
    return findings


class Compared(NamedTuple):
    """What was measured in which mesh, in the lake: `sealed` or `plain`."""

    what: str
    mesh: str


def _cells(what: str, found: Mapping[str, Sequence[float]]) -> dict[Compared, list[list[float]]]:
    """A repetition is a round."""
    return {Compared(what, name): [[one] for one in samples] for name, samples in found.items()}


def judge(findings: Findings, outcomes: dict[str, Outcome]) -> None:
    for kind, outcome in outcomes.items():
        name = f"{outcome.sent:,} packets {KINDS[kind]}: accepted"
        findings.rows.append(at_most(name, None if outcome.crashed else outcome.accepted, "packets", 0))
        if outcome.crashed:
            findings.notes.append(f"{kind}: {outcome.said}")
    crashed = sum(outcome.crashed for outcome in outcomes.values())
    findings.rows.append(at_most("crashes while being attacked", crashed, "processes", 0))
    grown = max(outcome.memory_bytes for outcome in outcomes.values())
    findings.rows.append(at_most("memory grown by while being attacked, at most", grown, "bytes", MEMORY_BYTES))
    heads = ("attack", "sent", "accepted", "forged", "replayed", "old key", "reflected", "unreadable", "memory")
    cells = [
        [kind, *(str(value) for value in (o.sent, o.accepted, o.forged, o.replayed, o.old_key, o.reflected,
                                          o.unreadable, o.memory_bytes))]
        for kind, o in outcomes.items()
    ]  # fmt: skip
    findings.tables.append(Table("What became of the attackers' packets", heads, cells))

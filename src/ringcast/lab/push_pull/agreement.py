"""How long until all nodes know of a change in the tag table: ten real daemons, and a thousand nodes in simulation."""

from __future__ import annotations

import time

from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import Row, at_most, figure, tidy
from ringcast.lab.measuring.samples import summarise
from ringcast.lab.simulation import agreement
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import star

NODES = 10
SIMULATED = 1000
PATIENCE_S = 30.0


def real(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    changes = 10 if quick else 50
    steps.expect(2)
    steps.step(f"starting {NODES} nodes")
    with Testbed(star(NODES)) as bed, MeshNodes(bed, [node.name for node in bed.nodes]) as mesh:
        steps.step(f"{changes} changes of the tag table")
        # Each at another node, and none before all nodes know of the last.
        seconds = [_change(mesh, mesh.names[number % NODES], f"agreement/{number}") for number in range(changes)]
    return conclude(seconds)


def _change(mesh: MeshNodes, where: str, tag: str) -> float:
    """Create a tag on one node; returns how long until the last node lists it, with our queries. Raises LabError."""
    start = time.monotonic()
    mesh.sessions[where].tag(tag)
    missing = set(mesh.names)
    while missing:
        missing = {name for name in missing if not mesh.sessions[name].tags(tag)}
        if time.monotonic() - start > PATIENCE_S:
            raise LabError(f"nodes {', '.join(sorted(missing))} do not know of {tag!r} after {PATIENCE_S:g} s")
    return time.monotonic() - start


def conclude(seconds: list[float]) -> Findings:
    """Pure."""
    seen = summarise(seconds)
    name = f"tag table after a change, {NODES} nodes: all agree within 1 s, the slowest of {seen.number} changes"
    row = at_most(name, max(seconds), "s", 1.0)
    cells = [[f"{x * 1e3:.2f}" for x in (seen.p50, seen.mean, max(seconds))]]
    table = Table(f"A new tag, until all of {NODES} nodes know of it (ms)", ["p50", "mean", "slowest"], cells)
    return Findings([row, figure(f"tag table after a change, {NODES} nodes: p50", seen.p50, "s")], [table])


def simulated(quick: bool, steps: Steps) -> Findings:
    """With `quick` only what a target is set for: the nodes find each other, and a tag is created."""
    steps.expect(2 if quick else 4)
    try:
        seen = agreement.measure(SIMULATED, progress=lambda what: steps.step(f"simulation: {what}"), brief=quick)
    except RuntimeError as exc:
        return Findings([Row(f"tag table in simulation, {SIMULATED} nodes: {exc}", None, "s", met=False, kind="asked")])
    asked = Row(
        f"tag table in simulation, {SIMULATED} nodes: all agree on a new tag (in {seen.change_rounds} rounds, with "
        f"{seen.change_bytes:.0f} bytes sent per node)", tidy(seen.change_s), "s", None, None, True, "asked",
    )  # fmt: skip
    rows = [Row(**{**row, "value": tidy(row["value"])}) for row in agreement.rows(seen)]
    cells = [[row.name.partition(": ")[2], f"{row.value:.4g}", row.unit] for row in rows]
    return Findings([asked, *rows], [Table(f"{SIMULATED} nodes in simulation", ["", "", "unit"], cells)])

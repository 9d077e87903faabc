"""All of it, one after the other, and what it leaves in a folder.

`report.md` has the tables beside the papers' figures, `rows.json` every row, and each picture is an SVG file.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ringcast.lab.measuring import picture
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.push_pull import agreement, components, distance, fan_out, network, streams, tables, wire
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.disturbance import Disturbance

COMMAND = "ringcast lab run push-pull"


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    others = Disturbance()
    # What is asked for first, so that who interrupts has seen that.
    with wire.WireNetwork() as pair:
        findings.add(wire.round_trips(pair, quick, steps))
        findings.add(fan_out.measure(pair, quick, steps))
        findings.add(streams.throughput(pair, quick, steps))
    with wire.WireNetwork(offload=False) as plain:
        findings.add(streams.throughput(plain, quick, steps))
    with network.PushPullNetwork() as paper:
        batches = network.collect(paper, tables.wanted() + distance.wanted(), 5 if quick else 30, steps)
        findings.add(tables.conclude(batches))
        findings.add(distance.conclude(batches))
        findings.add(components.measure(paper, quick, steps))
    findings.add(agreement.real(quick, steps))
    findings.rows += others.rows()
    findings.add(agreement.simulated(quick, steps))
    findings.rows.sort(key=lambda row: ("asked", "shape", "figure").index(row.kind))
    findings.notes.append(machine())
    return findings


def machine() -> str:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown model")
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"measured on {model}, {len(affinity.cores())} cores, {system}"


def write(findings: Findings, folder: Path, words: Sequence[str] = ()) -> list[Path]:
    """Leave the report in `folder` and return its files. Raises LabError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report, rows = folder / "report.md", folder / "rows.json"
        report.write_text(findings.markdown(" ".join([COMMAND, *words])))
        rows.write_bytes(msgspec.json.format(msgspec.json.encode([row.document() for row in findings.rows])))
        return [report, rows, *(picture.draw(one, folder) for one in findings.pictures)]
    except OSError as exc:
        raise LabError(f"cannot write the results into {folder}: {exc}; choose another place with --out") from exc

"""`ringcast admit`: whether a planned system meets its deadlines, where the time goes, and what would fit.

It needs neither a daemon nor that system; `--calibrate` measures what stages take on this machine.
"""

from __future__ import annotations

import argparse
import math
from importlib import metadata
from pathlib import Path

import msgspec

from ringcast.admission import AdmissionError, drawing
from ringcast.admission.calibration import Calibration, default_path, load, save, this_machine
from ringcast.admission.fidelity import Choice, settle
from ringcast.admission.fitting import Fit, fits
from ringcast.admission.model import System
from ringcast.admission.reading import read
from ringcast.admission.verdict import Judged, Verdict, judge
from ringcast.cli.parts import problem_file
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import show_ns
from ringcast.cli.program import FAILED, Misuse

HELP = "Whether declared streams meet their deadlines: worst-case delays from end to end, and what would fit."

EPILOG = """\
The file is TOML, or JSON when it ends so. docs/admission.md has its fields and the formulae; a small one:

  nodes = [{name = "arm", cores = 2}, {name = "desk", cores = 2}]
  links = [{a = "arm", b = "desk", bandwidth = 12.5e6, latency_s = 2e-4}]

  [[streams]]
  tag = "arm/joints"
  node = "arm"
  period_s = 0.005
  bytes = 256
  compute_s = 0.001
  subscribers = [{name = "control", node = "desk", deadline_s = 0.005}]

examples:
  ringcast admit examples/admission/robot.toml
  ringcast admit examples/admission/robot.toml --svg robot.svg
  ringcast admit examples/admission/robot.toml --json
  ringcast admit --calibrate                                what stages take on this machine, some seconds
  ringcast admit --calibrate plan.toml                      and use it at once

A file that gives no 'costs' is computed with this machine's calibration. The exit code is 1 when something is refused.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="nodes, links and streams (TOML or JSON)")
    parser.add_argument("--calibrate", action="store_true", help="measure what stages take on this machine; keep it")
    parser.add_argument(
        "--calibration", metavar="PATH", type=Path, default=None, help="where it is kept (default: in the user's cache)"
    )
    parser.add_argument("--svg", metavar="OUT", type=Path, help="draw where the time goes")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Raises AdmissionError, RingcastError."""
    output = Output(args.json)
    path = args.calibration or default_path()
    measured = _calibrate(output, path) if args.calibrate else None
    if args.file is None:
        if measured is None:
            raise Misuse("say which FILE, or --calibrate to measure this machine")
        _show_calibration(output, measured, path)
        return 0
    system, chosen = settle(_costed(problem_file.read(args.file, read, AdmissionError), path))
    verdict = judge(system)
    proposed = fits(system, verdict)
    if output.json:
        output.document(verdict.document() | {"fits": proposed, "chosen": chosen})
    else:
        _show(output, verdict, proposed, chosen)
    if args.svg:
        problem_file.write(args.svg, drawing.svg(verdict, args.file.stem), AdmissionError)
        output.note(f"drawn into {args.svg}")
    return 0 if verdict.admitted else FAILED


def _costed(system: System, path: Path) -> System:
    """With this machine's costs, where nobody gives any."""
    if system.costs is not None or all(node.costs is not None for node in system.nodes):
        return system
    found = load(path, this_machine(metadata.version("ringcast")))
    nodes = tuple(
        node
        if node.costs or node.blocking_s or node.preemption_s or node.waking_s
        else found.node(node.name, node.cores)
        for node in system.nodes
    )
    return msgspec.structs.replace(system, costs=found.costs, nodes=nodes)


def _calibrate(output: Output, path: Path) -> Calibration:
    from ringcast.lab.bounds.calibrating import calibrate

    found = calibrate(output.progress)
    save(path, found)
    return found


def _show_calibration(output: Output, found: Calibration, path: Path) -> None:
    if output.json:
        output.document(found)
        return
    rows = [
        [name, _time(cost.fixed_s), f"{cost.per_byte_s * 1e12:.0f} ps"]
        for name in found.costs.__struct_fields__
        for cost in [getattr(found.costs, name)]
    ]
    machine = f"{found.machine.processor}, {found.machine.cores} cores"
    output.table(["stage", "each message", "each byte"], rows, machine)
    output.line(
        f"a ready thread of highest priority waits {_time(found.waking_s)}, and {_time(found.blocking_s)} at most"
    )
    output.line(f"a running one loses {_time(found.preemption_s)} each time a more important one wakes")
    output.note(f"kept in {path}" + ("" if found.realtime else "; measured without real-time priority"))


def _show(output: Output, verdict: Verdict, proposed: list[Fit], chosen: tuple[Choice, ...]) -> None:
    output.line("Admitted." if verdict.admitted else "Refused.")
    for one in verdict.refused:
        output.line(f"- {one.sentence()}")
    for fit in proposed:
        output.line(f"    would fit: {fit.sentence()}")
    for choice in chosen:
        output.line(f"- chosen: {choice.sentence()}")
    output.line()
    output.table(
        ["stream", "class", "worst case", "limit", "left", "age", "where"], [_row(one) for one in verdict.judged]
    )
    output.line()
    for line in drawing.text(verdict):
        output.line(line)
    output.line()
    loads = [[name, f"{cores:.1%} of a core"] for name, cores in verdict.nodes.items()]
    loads += [[name, f"{share:.1%} of the link"] for name, share in verdict.links.items()]
    output.table(["load", "busy"], loads)


def _row(one: Judged) -> list[str]:
    left = "" if one.limit_s is None else "no" if not one.met else _time(one.limit_s - one.bound_s)
    where = ", ".join(f"{part.what} {_time(part.worst_s)}" for part in one.parts)
    return [
        one.who, one.priority, _time(one.bound_s), "" if one.limit_s is None else _time(one.limit_s), left,
        _time(one.age_s), where,
    ]  # fmt: skip


def _time(seconds: float) -> str:
    return "-" if math.isinf(seconds) else "0" if seconds == 0 else show_ns(seconds * 1e9)

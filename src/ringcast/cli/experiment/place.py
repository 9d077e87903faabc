"""`ringcast place`: plan where proxies sit, for a network in a file or for the running mesh.

Without `--live` it needs neither a daemon nor that network.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from ringcast.cli.parts import problem_file
from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.placing import live
from ringcast.cli.parts.units import show_ns
from ringcast.cli.program import Misuse
from ringcast.placement import PlacementError, compare, drawing, explain, reading
from ringcast.placement.case import Case
from ringcast.placement.model import Objective
from ringcast.placement.plan import Plan
from ringcast.placement.solve import rule
from ringcast.placement.solve.optimise import optimise_case
from ringcast.placement.solve.program import SolverMissing

HELP = "Where proxies belong in a network: the cheapest places that meet all deadlines and capacities."

EPILOG = """\
The file is TOML, or JSON when it ends so. docs/placement.md has its fields and the formulae; a small one:

  nodes = [{name = "lab"}, {name = "switch"}, {name = "office", cpu = 0.5}]
  links = [{a = "lab", b = "switch"}, {a = "switch", b = "office", bandwidth = 125e3}]
  charge = "sent"                                           # or "multicast", "unicast"

  [[demands]]
  tag = "lab/temp"
  publisher = "lab"
  period_s = 0.01
  bytes = 1024
  subscribers = [{name = "desk", node = "office", every = 10, deadline_s = 0.5}]

examples:
  ringcast place examples/placement/star.toml
  ringcast place examples/placement/plant.toml --svg plant.svg
  ringcast place examples/placement/tree.toml --why
  ringcast place examples/placement/tree.toml --json
  ringcast place --live                                     the mesh that runs: hops, rates and sizes as measured
  ringcast place network.toml --live                        the same, nodes and links as this file declares them
  ringcast place --live --apply                             and move the proxies there, while messages flow

With --live, subscribers with at="auto" are placed; an explicit 'at', or an administrator's setting, stays, unless
--override. What --apply sets counts for that subscriber until it leaves ('ringcast set TAG' shows it).
When no plan fits, it says what is missing, by how much, and what would fit.
"""
_MOST_ROWS = 40


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?",
        help="network, demands and costs (TOML or JSON); with --live only nodes, links and costs count",
    )  # fmt: skip
    parser.add_argument("--live", action="store_true", help="take demands, and without FILE the network, from the mesh")
    parser.add_argument("--apply", action="store_true", help="with --live: move the proxies to where the plan has them")
    parser.add_argument(
        "--override", action="store_true", help="with --live: place those too that chose a place themselves"
    )
    parser.add_argument("--svg", metavar="OUT", type=Path, help="draw the network with streams, proxies and loads")
    parser.add_argument(
        "--why", action="store_true", help="say for every proxy why it sits there, and name the next best place"
    )
    parser.add_argument("--limit", metavar="SECONDS", type=float, default=math.inf, help="stop solving after this long")
    add_access(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Raises PlacementError, SolverMissing, SolverStopped, RingcastError."""
    output = Output(args.json)
    if args.live:
        return _live(args, output)
    if args.file is None:
        raise Misuse("say which FILE, or --live for the mesh that runs")
    if args.apply or args.override:
        raise Misuse("--apply and --override change a mesh that runs: add --live")
    case = Case(problem_file.read(args.file, reading.read, PlacementError))
    plan = optimise_case(case, args.limit)
    _answer(args, output, case, plan, {})
    return 0


def _live(args: argparse.Namespace, output: Output) -> int:
    network = problem_file.read(args.file, reading.network, PlacementError) if args.file else None
    with connect(args, "place") as session:
        found = session.observe()
        made = live.read(found, network, override=args.override)
        try:
            plan = optimise_case(made.case, args.limit)
        except SolverMissing as exc:
            output.note(f"by the rule without a solver ({exc})")
            plan = rule.place(made.case)
        plan = rule.near(made.case, plan) if plan.feasible else plan
        applied = live.apply(session, made, plan) if args.apply and plan.feasible else None
        _answer(args, output, made.case, plan, {} if applied is None else {"applied": applied})
        for words in live.notes(found, made):
            output.note(words)
        if applied is not None:
            moved = sum(row["before"] != row["at"] for row in applied)
            output.note(f"{moved} proxies moved, {len(applied) - moved} were there already")
    return 0


def _answer(args: argparse.Namespace, output: Output, case: Case, plan: Plan, more: dict[str, Any]) -> None:
    if output.json:
        output.document(plan.document() | more)
    else:
        _show(output, case, plan)
        if args.why:
            output.line()
            for index in range(len(plan.places)):
                output.line(explain.sentence(case, plan, index))
    if args.svg:
        problem_file.write(args.svg, drawing.svg(plan, args.file.stem if args.file else "mesh"), PlacementError)
        output.note(f"drawn into {args.svg}")


def _show(output: Output, case: Case, plan: Plan) -> None:
    if not plan.feasible:
        output.line("No plan fits.")
        for reason in plan.reasons:
            output.line(f"- {reason.sentence}")
            for nearest in reason.nearest:
                output.line(f"    would fit: {nearest}")
        return
    _streams(output, plan)
    if len(case.problem.nodes) <= _MOST_ROWS:
        output.line()
        for line in drawing.text(plan):
            output.line(line)
    _loads(output, plan)
    output.line()
    _compared(output, case, plan)


def _streams(output: Output, plan: Plan) -> None:
    rows = [
        [
            one.tag, one.subscriber, one.proxy, " ".join(one.path), _time(one.delay.total_s),
            f"{_time(one.delay.full_s)} + {_time(one.delay.scaled_s)} + {_time(one.delay.latency_s)}",
            _time(one.deadline_s), _time(one.measured.total_s), _time(one.age_s),
        ]
        for one in plan.streams[:_MOST_ROWS]
    ]  # fmt: skip
    heads = [
        "tag", "subscriber", "proxy", "path", "worst delay", "before + after + links", "deadline", "measured", "age",
    ]  # fmt: skip
    output.table(heads, rows, "Streams")
    if len(plan.streams) > _MOST_ROWS:
        output.note(f"{len(plan.streams) - _MOST_ROWS} streams more: --json lists all")


def _loads(output: Output, plan: Plan) -> None:
    busy = [(node, load) for node, load in zip(plan.problem.nodes, plan.nodes, strict=True) if load > 0]
    if busy:
        output.line()
        rows = [[node.name, f"{load:.3%}", "" if math.isinf(node.cpu) else f"{node.cpu:.1%}"] for node, load in busy]
        output.table(["node", "of a core", "allowed"], rows[:_MOST_ROWS], "CPU")


def _compared(output: Output, case: Case, plan: Plan) -> None:
    objective = case.problem.objective
    rows = [["this plan", _cost(objective, plan.cost), "", _worst(plan), "yes"]]
    for other in compare.others(case):
        ratio = f"{other.plan.cost / plan.cost:.2f} times" if plan.cost else ""
        wrong = [f"{other.late} late"] * bool(other.late) + [f"{other.full} overloaded"] * bool(other.full)
        rows.append(
            [other.name, _cost(objective, other.plan.cost), ratio, _worst(other.plan), ", ".join(wrong) or "yes"]
        )
    output.table(["proxies", "cost", "against this", "longest delay", "fits"], rows, "Compared")
    if math.isnan(plan.gap):
        output.note(f"found by {plan.scope}: how far above the optimum is not known")
    elif plan.gap:
        output.note(f"at most {plan.gap:.2%} above the optimum among {plan.scope}")


def _worst(plan: Plan) -> str:
    return _time(max((one.delay.total_s for one in plan.streams), default=0.0))


def _cost(objective: Objective, cost: float) -> str:
    if objective.cpu == 0:
        return drawing.amount(cost) if objective.bandwidth == 1 else f"{cost:.6g}"
    return f"{cost:.4%} of a core" if objective.bandwidth == 0 and objective.cpu == 1 else f"{cost:.6g}"


def _time(seconds: float) -> str:
    if math.isinf(seconds):
        return "-"
    return "0" if seconds == 0 else show_ns(seconds * 1e9)

"""`ringcast adapt`: the models by which a mesh chooses transports, and what it chose."""

from __future__ import annotations

import argparse
import time

from ringcast.adapt import Chooser, ModelError
from ringcast.adapt.wanting import IN_ORDER, plain
from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.client.mesh.administration import load_model
from ringcast.model.carrier import METRICS

HELP = "Have the mesh choose transports by itself, by a model; show what it chose and why."

EPILOG = """\
A subscription, a tag or an administrator leaves the transport to the mesh with 'auto:METRIC', where METRIC is what is
to be as good as it can: relate2 (latency and loss), p99, deadline (late after 100 ms, or lost; 'auto:deadline=20ms'
says another one), bandwidth, delivered. 'auto:p99,loss=2%' also says how much may be missing. What is reliable or
ordered stays so.
The daemon that keeps the tag looks every second at what its receivers counted: receivers, loss and bursts before any
repair, rate, size, delay, bandwidth. A model ranks the transports: one of the package, or what was loaded, which
reaches every node that is here and those that come later. Beyond what it learned from a rule does. A model that is
worse than the one in force is refused. The choice changes only for something clearly better that lasts. Naming a
transport pins it; what the mesh would choose is not looked for meanwhile.

examples:
  ringcast adapt                                       what was chosen, since when, and why
  ringcast adapt load out/lake/models/relate2.json     choose by this model, on every node
  ringcast set cam/front --transport auto:relate2      leave it to the mesh
  ringcast set cam/front --transport auto:p99 --node b for receivers on node b, by what these alone meet
  ringcast set cam/front --transport nak               pin it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("show", "load"), default="show", help="default: show")
    parser.add_argument("model", nargs="?", metavar="MODEL", help="the JSON file, for load")
    add_access(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Raises ModelError, Misuse."""
    from ringcast.cli.program import Misuse

    output = Output(args.json)
    if (args.action == "load") != (args.model is not None):
        raise Misuse("'load' takes a model's file, and 'show' takes nothing")
    with connect(args, "adapt") as session:
        if args.action == "load":
            chooser = _loaded(args.model)
            for warning in load_model(session, args.model):
                output.note(f"warning: {warning}")
            output.line(f"transports for {_asked(chooser.metric)} are chosen by {args.model}, a {chooser.family}")
            return 0
        now_ns = time.time_ns()
        rows = [(tag.name, asked, one) for tag in session.tags() for asked, one in sorted(tag.chosen.items())]
        if output.json:
            output.document(
                [
                    {
                        "tag": tag,
                        "asked": asked,
                        "transport": one.pinned or one.transport,
                        "pinned": bool(one.pinned),
                        "since_ns": 0 if one.pinned else one.since_ns,
                        "why": "" if one.pinned else one.why,
                    }
                    for tag, asked, one in rows
                ]
            )
            return 0
        cells = [
            [tag, asked, one.pinned, "-", "an administrator pinned it"]
            if one.pinned
            else [tag, asked, one.transport, f"{max(0, now_ns - one.since_ns) // 10**9} s", one.why]
            for tag, asked, one in rows
        ]
        if cells:
            output.table(("tag", "asked for", "transport", "for", "why"), cells)
        else:
            output.line("no transport was chosen: nobody asks for 'auto:METRIC', or nothing flows between nodes")
    return 0


def _loaded(path: str) -> Chooser:
    """Raises ModelError."""
    try:
        chooser = Chooser.load(path)
    except OSError as exc:
        raise ModelError(path, exc.strerror or str(exc)) from exc
    if plain(chooser.metric)[0] not in METRICS.values():
        raise ModelError(path, f"it is for {chooser.metric}, which nobody can ask for; {', '.join(METRICS)} can be")
    return chooser


def _asked(metric: str) -> str:
    base, in_order = plain(metric)
    return next(f"auto:{name}" for name, of in METRICS.items() if of == base) + (IN_ORDER if in_order else "")

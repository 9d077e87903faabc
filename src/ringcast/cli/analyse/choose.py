"""`ringcast choose`: asks a trained model which transport suits an environment. Needs neither Spark nor a daemon."""

from __future__ import annotations

import argparse

from ringcast.adapt import Chooser, ModelError, NumbersMissing
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse

HELP = "Which transport suits an environment, by a model that 'ringcast pipeline run train' wrote."

EPILOG = """\
Without numbers it shows the model's inputs, and how good it was in environments it had not been trained on.

examples:
  ringcast choose best.json
  ringcast choose best.json receivers=10 loss_percent=3 burst=1 rate_hz=50 payload_bytes=200 delay_us=500 \\
                            bandwidth_mbit=100
  ringcast set lab/cam --transport "$(ringcast choose best.json receivers=10 ...)"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="the JSON file")
    parser.add_argument("numbers", metavar="NAME=NUMBER", nargs="*", type=_number, help="a property of the environment")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Raises ModelError, Misuse."""
    output = Output(args.json)
    try:
        chooser = Chooser.load(args.model)
    except OSError as exc:
        raise ModelError(args.model, exc.strerror or str(exc)) from exc
    if not args.numbers:
        return _describe(chooser, output)
    environment = dict(args.numbers)
    if unknown := [name for name in environment if name not in chooser.inputs]:
        raise Misuse(f"the model does not look at {', '.join(unknown)}, only at {', '.join(chooser.inputs)}")
    try:
        chosen = chooser.choose(environment)
    except NumbersMissing as exc:
        raise Misuse(str(exc)) from exc
    beyond = chooser.beyond(environment)
    if output.json:
        output.document({"transport": chosen, "metric": chooser.metric, "share": chooser.share, "beyond": beyond})
        return 0
    output.line(chosen)
    for name in beyond:
        low, high = chooser.spans[name]
        output.note(f"{name} was {low:g} to {high:g} where the model learned; its answer here is a guess")
    return 0


def _describe(chooser: Chooser, output: Output) -> int:
    if output.json:
        output.document(
            {
                "metric": chooser.metric, "family": chooser.family, "share": chooser.share,
                "constant": chooser.constant, "spans": chooser.spans, "wins": chooser.wins,
            }
        )  # fmt: skip
        return 0
    rows = [[name, *(f"{end:g}" for end in chooser.spans.get(name, ()))] for name in chooser.inputs]
    output.table(["number", "from", "to"], rows)
    output.line()
    output.table(["best", "environments"], [[name, str(number)] for name, number in chooser.wins.items()])
    output.note(
        f"{chooser.family}: {chooser.metric} within 5 % of the best in {chooser.share:.1%} of environments it had not "
        f"seen; always taking the same transport: {chooser.constant:.1%}"
    )
    return 0


def _number(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        if name and equals:
            return name, float(value)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER, as rate_hz=50")

"""`ringcast bench`: run the benchmarks of the source checkout, with the peers beside.

The benchmarks are not part of the package: they need peers, a C compiler and minutes of time. This verb only finds them
and starts them; `bench/` says what they measure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from ringcast.cli.parts.output import add_json

HELP = "Measure this library beside others, in the same run."

EPILOG = """\
The benchmarks are in the folder bench/ of a source checkout; 'make bench' installs the peers first. docs/benchmarks.md
says what each question means and how to read the answers.

examples:
  ringcast bench round-trip --quick              one question, under a minute
  ringcast bench throughput --peers pyzmq,lcm    beside these peers only
  ringcast bench between-nodes --quick           two nodes in network namespaces, packet by packet (root)
  ringcast bench spark --part demo --part commits  only these parts; a wrong name lists them
  ringcast bench against --tree ../before        channels of this tree beside those of another built one
  ringcast bench all --quick --json              all questions, one list of rows
  ringcast pipeline run history --lake out/lake  every figure of every run beside the one before it
"""

NAMES = (
    "round-trip",
    "ask",
    "throughput",
    "between-nodes",
    "fan-out",
    "pull",
    "idle",
    "recovery",
    "spark",
    "scrape",
    "scale",
    "slow-page",
    "against",
    "all",
)

_ELSEWHERE = {"against": "trees/against.py"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=NAMES, help=f"what to measure: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="fewer samples: under a minute per question")
    add_json(parser, "one list of {name, value, unit, reference, target, met}")
    parser.add_argument(
        "--peers", metavar="A,B", default="", help="only these peers, as files in bench/peers are named"
    )
    parser.add_argument(
        "--part", metavar="NAME", action="append", default=[],
        help="only this part of the question, may be repeated; of those that have parts: between-nodes, spark, scale",
    )  # fmt: skip
    parser.add_argument("--tree", metavar="DIR", default="", help="of 'against': another built checkout")
    parser.add_argument("--lake", metavar="DIR", default="", help="keep the figures there (RINGCAST_LAKE, or out/lake)")


def run(args: argparse.Namespace) -> int:
    folder = find_benchmarks()
    if folder is None:
        print(
            "ringcast bench: there is no bench/ folder here; run this inside a checkout of the source (there, "
            "'make bench' also installs the peers)",
            file=sys.stderr,
        )
        return 1
    script = _ELSEWHERE.get(args.name, f"{args.name.replace('-', '_')}.py")
    command = [sys.executable, str(folder / script)]
    command += ["--quick"] if args.quick else []
    command += ["--json"] if args.json else []
    command += ["--peers", args.peers] if args.peers else []
    command += [word for part in args.part for word in ("--part", part)]
    command += ["--lake", args.lake] if args.lake else []
    command += ["--tree", args.tree] if args.tree else []
    benchmark = subprocess.Popen(command)
    while True:
        try:
            return benchmark.wait()
        except KeyboardInterrupt:
            # Ctrl-C went to the benchmark too, which first ends what it started.
            continue


def find_benchmarks() -> Path | None:
    """The checkout's `bench/`: beside the package's source, or above the working directory."""
    for start in (Path(__file__).resolve(), Path.cwd() / "_"):
        for parent in start.parents:
            if (parent / "bench" / "harness" / "command.py").is_file():
                return parent / "bench"
    return None

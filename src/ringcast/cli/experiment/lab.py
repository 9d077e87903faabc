"""`ringcast lab`: networks of several nodes on this machine (`net`), and experiments that run on them (`run`)."""

from __future__ import annotations

import argparse
import signal
from functools import partial

from ringcast.cli.parts.ending import terminable
from ringcast.cli.parts.labs import everything
from ringcast.cli.parts.labs import net as lab_net
from ringcast.cli.parts.labs import run as lab_run
from ringcast.lab.testbed.cleanup import LabUnavailable
from ringcast.lab.testbed.network import unavailable

HELP = "Networks of several nodes on this machine, and experiments on them (network namespaces; needs root)."

EPILOG = """\
examples:
  ringcast lab net up --chain 3 --rate 10mbit --loss 1%    a network that stays until 'ringcast lab net down'
  ringcast lab net check                                   delay, loss and throughput between all nodes
  ringcast lab run placement --quick                       a paper's experiment; this one needs no root
  ringcast lab run --help                                  all experiments
  ringcast lab run all --quick                             all of them, and one page of what they found
  ringcast lab compare A B                                 what changed between two of these
"""
_PARTS = {"net": lab_net, "run": lab_run, "compare": everything}


def configure(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, part in _PARTS.items():
        part.configure(
            parts.add_parser(
                name, help=part.HELP, description=part.HELP, formatter_class=argparse.RawDescriptionHelpFormatter
            )
        )


def run(args: argparse.Namespace) -> int:
    """Raises LabError, TopologyError, Misuse."""
    if _needs_network(args) and (reason := unavailable()):
        raise LabUnavailable(reason)
    if args.what == "compare":
        return everything.compare(args)
    with terminable(partial(SystemExit, 128 + signal.SIGTERM)):
        code: int = _PARTS[args.what].run(args)
    return code


def _needs_network(args: argparse.Namespace) -> bool:
    return args.what == "net" or (args.what == "run" and lab_run.needs_network(args))

"""Which daemon a verb talks to: the options `--socket` and `--no-start`, and the session that they open."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast.session import Session


def add_socket(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket (default: RINGCAST_SOCKET, or the usual place)"
    )


def add_access(parser: argparse.ArgumentParser) -> None:
    add_socket(parser)
    parser.add_argument(
        "--no-start", action="store_true", help="fail when no daemon runs, instead of starting one that ends when idle"
    )


def connect(args: argparse.Namespace, verb: str) -> Session:
    """A session under the verb's name. Raises DaemonUnavailable, ResourceLimit."""
    import ringcast

    return ringcast.connect(args.socket, start=not args.no_start, program=f"ringcast {verb}")

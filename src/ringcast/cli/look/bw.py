"""`ringcast bw`: how many bytes publishers send."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringcast.cli.parts.measuring import add_measuring, observe
from ringcast.cli.parts.units import show_bytes, show_hz

if TYPE_CHECKING:
    from ringcast.cli.parts.observation import Observation

HELP = "How many bytes per second publishers send, and how large their messages are."

EPILOG = """\
Nothing is received: bytes and messages are those the publishers counted, the time between them is by their own send
times. Bytes are of the messages as encoded, without what a network would add.

examples:
  ringcast bw lab/cam                       until Ctrl-C
  ringcast bw '**' --window 5 --count 1     everything on this node, one report over five seconds
"""

_HEADS = ("tag", "publisher", "bandwidth", "bytes", "sent", "rate", "mean message")
_NOTE = "measured: byte and message counters and send times written by the publishers; nothing was received for it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_measuring(parser)


def run(args: argparse.Namespace) -> int:
    return observe(args, "bw", _HEADS, _NOTE, cells)


def cells(seen: Sequence[Observation]) -> list[list[str]]:
    return [
        [
            one.tag, str(one.publisher), "-" if one.bytes_per_s is None else f"{show_bytes(one.bytes_per_s)}/s",
            show_bytes(one.bytes), str(one.figures.sent), show_hz(one.figures.rate_hz),
            "-" if one.message_bytes is None else show_bytes(one.message_bytes),
        ]
        for one in seen
    ]  # fmt: skip

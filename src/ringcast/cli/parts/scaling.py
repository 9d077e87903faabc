"""The options that shape a stream: every n-th message, a rate, a size, where its proxy sits, and its transport."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ringcast.cli.parts.units import count, positive

_EXTENTS = re.compile(r"(\d{1,7})[xX](\d{1,7})")
_MAX_EXTENT = 2**20


def extents(text: str) -> tuple[int, int]:
    """`320x240`."""
    found = _EXTENTS.fullmatch(text)
    if found is None or not all(1 <= int(extent) <= _MAX_EXTENT for extent in found.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write width and height as 320x240")
    return int(found[1]), int(found[2])


def rate(text: str) -> float | tuple[float, float]:
    """`30`, or `2..30`."""
    least, dots, most = text.partition("..")
    if not dots:
        return positive(text)
    return _upwards(text, (positive(least), positive(most)), f"{most}..{least}")


def sizes(text: str) -> tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]:
    """`320x240`, or `160x120..640x480`."""
    least, dots, most = text.partition("..")
    if not dots:
        return extents(text)
    found = extents(least), extents(most)
    return _upwards(text, found, "160x120..640x480", all(a <= b for a, b in zip(*found, strict=True)))


def _upwards(text: str, found: tuple[Any, Any], example: str, is_: bool | None = None) -> tuple[Any, Any]:
    """A range, from the least to the most."""
    if not (found[0] <= found[1] if is_ is None else is_):
        reason = f"{text!r} goes from the most to the least; a range goes from the least to the most, as {example}"
        raise argparse.ArgumentTypeError(reason)
    return found


def place(text: str) -> str:
    if text in ("publisher", "subscriber") or (text.startswith("node:") and len(text) > len("node:")):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not a place; write publisher, subscriber or node:NAME")


def add_scaling(parser: argparse.ArgumentParser, *, rate_too: bool = False) -> None:
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument(
        "--every", type=count, default=1, metavar="N", help="only messages whose number is a multiple of N"
    )
    if rate_too:
        how_many.add_argument(
            "--rate", type=rate, metavar="HZ", dest="rate",
            help="at most HZ messages per second, on average; 2..30 takes what links and processors allow",
        )  # fmt: skip
    parser.add_argument(
        "--size", type=sizes if rate_too else extents, metavar="WxH",
        help="images and arrays at this size; audio as samples/s x channels"
        + ("; 160x120..640x480 takes what fits" if rate_too else ""),
    )  # fmt: skip
    parser.add_argument(
        "--at", type=place, metavar="PLACE", help="where the proxy sits: publisher, subscriber or node:NAME"
    )


def add_transport(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--transport", metavar="NAME", help=f"nak, udp, tcp, multicast+nak, ... (see docs/transports.md): {what}"
    )


def show_size(size: tuple[int, int] | None) -> str:
    """`320x240`; a dash for as it is."""
    return "-" if size is None else f"{size[0]}x{size[1]}"

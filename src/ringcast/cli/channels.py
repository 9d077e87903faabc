"""`ringcast channels`: the streams between this node and others, and what came over the network that nobody wanted."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from ringcast.cli.access import add_access, connect
from ringcast.cli.output import Output, add_json
from ringcast.cli.scaling import show_size
from ringcast.cli.units import show_bytes, show_hz, show_ns
from ringcast.cli.watching import add_watch, watch

if TYPE_CHECKING:
    from ringcast.cli.watching import Sheet
    from ringcast.control.messages import ChannelStatus
    from ringcast.session import Session

HELP = "List the streams between this node and others: what they carry, how much, and what was lost."

_EPILOG = """\
'in' comes to this node, 'out' leaves it. A publisher sends datagrams by itself, so an 'out' of them is counted at its
other end. 'every' n carries the messages whose number is a multiple of n; with a 'rate', n follows the publisher.
'size' is what messages are scaled to. 'repeated' are pieces that came twice or too late; 'recovered' came out of
repairs; 'naks' are requests sent or, going out, answered; 'repairs' came, or were sent; delay and jitter are of the
last messages, by the clocks of both nodes. '(unicast)': multicast does not reach the node, so it is sent to by itself.
Below, by reason, what was dropped because it belongs to no channel: truncated and malformed datagrams, those of other
programs (foreign), of a newer version, of strangers; and what carried a channel's key but cannot be its sender's
(absurd, forged, mismatched).

examples:
  ringcast channels                 all channels
  ringcast channels --watch         again every second
"""

_HEADS = (
    "tag", "direction", "node", "transport", "every", "rate", "size", "reliable", "messages", "bytes",
    "lost", "repeated", "recovered", "naks", "repairs", "delay", "jitter",
)  # fmt: skip
_FORGED = ("malformed", "absurd", "forged", "mismatched")
"""What came under a channel's own key and cannot be its sender's."""
_DROPPED_HEADS = ("transport", "reason", "dropped")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_watch(parser)
    add_access(parser)
    add_json(parser, "one JSON document (with --watch: one object per line)")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with connect(args, "channels") as session:
        if args.watch is not None:
            watch(output, args.watch, lambda: _look(session), _sheets, lambda seen: {"time_ns": time.time_ns(), **seen})
        seen = _look(session)
        if args.json:
            output.document(seen)
            return 0
        for title, heads, cells in _sheets(seen):
            output.table(heads, cells, title)
        if not seen["channels"]:
            output.line("there are no channels: nobody here reads another node's publisher, or the other way round")
    return 0


def _look(session: Session) -> dict[str, Any]:
    return {"channels": session.channels(), "dropped": session.dropped()}


def _sheets(seen: dict[str, Any]) -> list[Sheet]:
    sheets: list[Sheet] = []
    if seen["channels"]:
        cells = [
            [
                row.tag, row.direction, row.node, _carrier(row), str(row.every),
                show_hz(row.rate_hz or None), show_size(row.size), "yes" if row.reliable else "no",
                _number(row.messages), "-" if row.bytes is None else show_bytes(row.bytes), _number(row.lost),
                str(sum(row.counters.get(name, 0) for name in ("duplicates", "late", "again"))),
                *(_number(row.counters.get(name)) for name in ("recovered", "naks", "repairs")),
                *(_time(row.counters.get(name)) for name in ("delay_ns", "jitter_ns")),
            ]
            for row in sorted(seen["channels"], key=_order)
        ]  # fmt: skip
        sheets.append(("", _HEADS, cells))
    dropped = [
        [f"{row.transport} from {row.node}", reason, str(row.counters[reason])]
        for row in seen["channels"] for reason in _FORGED if row.counters.get(reason)
    ]  # fmt: skip
    dropped += [
        [transport, reason, str(count)]
        for transport, reasons in seen["dropped"].items() for reason, count in reasons.items() if count
    ]  # fmt: skip
    if dropped:
        sheets.append(("\ndropped", _DROPPED_HEADS, dropped))
    return sheets


def _order(row: ChannelStatus) -> tuple[Any, ...]:
    return row.tag, row.direction, row.node, row.every, row.size or ()


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _carrier(row: Any) -> str:
    return f"{row.transport} (unicast)" if row.counters.get("fallen_back") else str(row.transport)


def _time(ns: int | None) -> str:
    return "-" if ns is None else show_ns(ns)

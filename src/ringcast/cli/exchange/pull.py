"""`ringcast pull`: read from a tag's history."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.instants import instant_ns
from ringcast.cli.parts.messages import line, record
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.scaling import add_scaling
from ringcast.cli.parts.units import index
from ringcast.cli.program import Misuse
from ringcast.errors import Empty, HistoryError
from ringcast.model.tag import check_name

if TYPE_CHECKING:
    from ringcast.control.status import PublisherStatus
    from ringcast.history import History
    from ringcast.message import Message
    from ringcast.tag import Tag

HELP = "Pull from a tag's history: the latest message, the n-th latest, or others by number or by time of sending."

EPILOG = """\
Each publisher numbers its messages from 0. When several have published on the tag, name one with --publisher to pull by
number ('ringcast tags TAG --publishers' lists their ids). Histories outlive their publishers as long as the daemon runs
and has memory. Histories of other nodes are read there. --at names another place: 'node:NAME' for what that node holds,
'subscriber' for what came to this node for a subscription.
A TIME is 2026-05-01T10:00, 10:00:30 (today), 5s, 2min, 1h or 3d (ago), or nanoseconds since 1970, as --json prints
them. It is UTC, and is compared with the send time by the publisher's clock. Pulling by time reads all publishers.

examples:
  ringcast pull lab/temp                 the newest
  ringcast pull lab/temp --back 3        the third before it
  ringcast pull lab/temp --seq 17        number 17
  ringcast pull lab/temp --range 10:20   numbers 10 to 20, as far as still held
  ringcast pull lab/temp --since 10 --json
  ringcast pull lab/temp --since 30s     all sent in the last 30 seconds
  ringcast pull lab/temp --before 2min   the newest that had been sent two minutes ago
  ringcast pull lab/temp --between 2026-05-01T10:00 2026-05-01T10:05
  ringcast pull lab/temp --at node:attic --every 4
  ringcast pull cam --size 320x240       scaled where it is held
"""

_RANGE = re.compile(r"(\d{1,18}):(\d{1,18})")
_NUMBER = re.compile(r"-?\d{1,18}")
_END_OF_TIME_NS = 2**63 - 1


def _range(text: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of sequence numbers; write it as 10:20")
    return int(found[1]), int(found[2])


_PUBLISHER = re.compile(r"(?:([A-Za-z0-9_.-]{1,64})/)?(\d{1,18})")


def _publisher(text: str) -> tuple[str, int]:
    found = _PUBLISHER.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a publisher's id; write it as 7, or attic/7 for node attic")
    return found[1] or "", int(found[2])


class _Since(NamedTuple):
    """From where on: a sequence number, or a time in nanoseconds."""

    value: int
    is_time: bool


def _since(text: str) -> _Since:
    """A whole number of up to 18 digits is a sequence number; anything else is a time."""
    return _Since(index(text), False) if _NUMBER.fullmatch(text) else _Since(instant_ns(text), True)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="whose history, as lab/bench1/temp")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--back", type=index, default=0, metavar="N", help="the one N before the newest (default: 0)")
    which.add_argument("--seq", type=index, metavar="N", help="the one with sequence number N")
    which.add_argument(
        "--range", type=_range, metavar="A:B", help="numbers A to B, both included, as far as they are still held"
    )
    which.add_argument("--since", type=_since, metavar="N|TIME", help="all held from number N, or from TIME, on")
    which.add_argument("--before", type=instant_ns, metavar="TIME", help="the newest that had been sent at TIME")
    which.add_argument(
        "--between", type=instant_ns, nargs=2, metavar="TIME", help="those sent from the first TIME to the second"
    )
    parser.add_argument("--publisher", type=_publisher, metavar="[NODE/]ID", help="of this publisher only")
    add_scaling(parser)
    add_access(parser)
    add_json(parser, "one JSON document (with --range, --since and --between: a list)")


def run(args: argparse.Namespace) -> int:
    check_name(args.tag)
    output = Output(args.json)
    span_ns = _span_ns(args)
    numbers = args.range is not None or (args.since is not None and span_ns is None)
    several = numbers or span_ns is not None
    with connect(args, "pull") as session:
        tag = session.tag(args.tag, create=False)
        numbered = numbers or args.seq is not None
        elsewhere = args.at not in (None, "publisher")  # what is held there, that place knows best
        whose = None if elsewhere and args.publisher is None else _whose(tag, args.publisher, numbered)
        with tag.history(publisher=whose, at=args.at, every=args.every, size=args.size) as history:
            messages = history.between(*span_ns) if span_ns else _pull(history, args)
            if not messages and span_ns:
                raise HistoryError(f"the history of {args.tag!r} holds nothing that was sent then")
            if not messages:
                oldest, newest = history.bounds()
                held = f"it holds {oldest} to {newest}" if oldest <= newest else "it is empty"
                raise HistoryError(f"the history of {args.tag!r} has nothing of that; {held}")
            if history.unanswered:
                output.note(f"no answer from {', '.join(history.unanswered)}: what is held there is not in this")
    if args.json:
        output.document([record(message) for message in messages] if several else record(messages[0]))
        return 0
    now_ns = time.time_ns()
    for message in messages:
        if several and message.lost:
            output.note(f"{message.lost} message(s) before #{message.seq} are no longer held")
        output.line(line(message, now_ns - message.sent_ns))
    return 0


def _span_ns(args: argparse.Namespace) -> tuple[int, int] | None:
    """The time that is asked for, if it is a span of time. Raises Misuse."""
    if args.since is not None and args.since.is_time:
        return args.since.value, _END_OF_TIME_NS
    if args.between is None:
        return None
    first_ns, last_ns = args.between
    if first_ns > last_ns:
        raise Misuse("--between ends before it begins; give the earlier time first")
    return first_ns, last_ns


def _pull(history: History, args: argparse.Namespace) -> list[Message]:
    if args.range is not None:
        return history.range(*args.range)
    if args.since is not None:
        return history.since(args.since.value)
    if args.before is not None:
        return [history.before(args.before)]
    return [history.at(args.seq) if args.seq is not None else history.latest(args.back)]


def _whose(tag: Tag, wanted: tuple[str, int] | None, numbered: bool) -> PublisherStatus | None:
    """Whose history is meant; None for everybody's. Raises HistoryError, Empty."""
    known = tag.publishers(left=True)
    if not known:
        raise Empty(f"nobody has published on {tag.name!r} yet, so there is no history")
    ids = ", ".join(
        f"{status.info.node}/{status.info.id} ({'sending' if status.alive else 'left'})" for status in known
    )
    if wanted is not None:
        node, number = wanted
        found = [status for status in known if status.info.id == number and node in ("", status.info.node)]
        if len(found) == 1:
            return found[0]
        what = "several nodes have a" if found else "there is no"
        raise HistoryError(f"{what} publisher {number} on {tag.name!r}; there are {ids}")
    if not numbered:
        return None
    alive = [status for status in known if status.alive]
    if len(known) == 1 or len(alive) == 1:
        return (alive or known)[0]
    raise HistoryError(f"several publishers number their messages on {tag.name!r}; say whose with --publisher: {ids}")

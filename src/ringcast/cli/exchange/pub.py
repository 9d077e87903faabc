"""`ringcast pub`: send values, lines of standard input, or a counter."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import PROGRESS_FROM_S, Output, add_json
from ringcast.cli.parts.units import count, not_negative, positive, show_hz, size
from ringcast.cli.parts.values import counted, parse
from ringcast.cli.program import Misuse
from ringcast.model.tag import check_name

if TYPE_CHECKING:
    from ringcast.publisher import Publisher

HELP = "Publish on a tag: the values given, the lines of standard input, or a counter. Creates the tag when nobody has."

EPILOG = """\
A value is text on a tag of codec bytes, and JSON on one of json, msgpack or numpy. --codec, --depth and --capacity are
for a tag that does not exist yet; for one that exists they must be what it has.

examples:
  ringcast pub lab/temp 21.5 21.6                        two messages
  ringcast pub lab/state --codec json '{"on": true}'     a record
  tail -f log | ringcast pub host/log --stdin            one message per line
  ringcast pub lab/tick --rate 10                        0, 1, 2, ... ten times a second until Ctrl-C
  ringcast pub lab/tick --rate 1000 --count 5000 --wait 1    5000 of them, once somebody listens
  ringcast pub lab/temp 21.5 --hold 60                   stay a minute, so that 'ringcast pull' finds it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="where to publish, as lab/bench1/temp")
    parser.add_argument("values", nargs="*", metavar="VALUE", help="what to send; none with --stdin or for a counter")
    parser.add_argument("--stdin", action="store_true", help="send each line of standard input")
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="messages per second (default: as fast as possible)"
    )
    parser.add_argument("--count", type=count, metavar="N", help="send N messages; repeat the values as needed")
    parser.add_argument("--wait", type=count, metavar="N", help="wait for N subscribers first")
    parser.add_argument("--timeout", type=positive, metavar="S", help="with --wait: give up after S seconds")
    parser.add_argument(
        "--hold",
        type=not_negative,
        default=0.0,
        metavar="S",
        help="keep the publisher open S seconds after the last message",
    )
    parser.add_argument("--codec", help="bytes, json, msgpack, numpy (default: the tag's own; bytes for a new tag)")
    parser.add_argument("--depth", type=count, metavar="N", help="how many messages a publisher's history holds")
    parser.add_argument("--capacity", type=size, metavar="SIZE", help="how many bytes it holds, as 64K or 4M")
    add_access(parser)
    add_json(parser, "a summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    check_name(args.tag)
    if args.stdin and args.values:
        raise Misuse("give values or --stdin, not both")
    if not args.stdin and not args.values and args.rate is None and args.count is None:
        raise Misuse("nothing to send: give values, --stdin, or --rate and --count for a counter")
    if args.timeout is not None and args.wait is None:
        raise Misuse("--timeout is how long --wait waits; give --wait too")
    output = Output(args.json)
    named = {"codec": args.codec, "depth": args.depth, "capacity_bytes": args.capacity}
    with connect(args, "pub") as session:
        tag = session.tag(args.tag, **{name: value for name, value in named.items() if value is not None})
        values = _values(args, tag.attributes.codec)
        # A reliable reader that is too slow loses messages and sees that in `lost`. A command line cannot do better.
        with tag.publisher(on_slow="skip") as publisher:
            if args.wait is not None:
                output.progress(f"waiting for {args.wait} subscriber(s) of {args.tag}")
                publisher.wait_for_subscribers(args.wait, args.timeout)
            begin = time.monotonic()
            try:
                _send(publisher, values, args.rate, output)
                seconds = time.monotonic() - begin
                if args.hold:
                    output.rest(time.monotonic() + args.hold, "holding")
            except KeyboardInterrupt:
                _report(publisher, time.monotonic() - begin, output)
                raise
            _report(publisher, seconds, output)
    return 0


def _values(args: argparse.Namespace, codec: str) -> Iterator[Any]:
    """What to send, in order. Values are parsed before the first is sent. Raises Misuse."""
    if args.stdin:
        source: Iterator[Any] = (parse(os.fsdecode(line.rstrip(b"\r\n")), codec) for line in sys.stdin.buffer)
    elif args.values:
        parsed = [parse(text, codec) for text in args.values]
        source = iter(parsed) if args.count is None else itertools.cycle(parsed)
    else:
        source = (counted(number, codec) for number in itertools.count())
    return itertools.islice(source, args.count)


def _send(publisher: Publisher[Any], values: Iterator[Any], rate: float | None, output: Output) -> None:
    begin = shown = time.monotonic()
    for number, value in enumerate(values):
        if rate is not None:
            # By the clock and not by adding pauses, or the error would add up.
            while (left := begin + number / rate - time.monotonic()) > 0:
                time.sleep(min(left, 1.0))
        publisher.send(value)
        now = time.monotonic()
        if now - shown > PROGRESS_FROM_S / 4 and now - begin > PROGRESS_FROM_S:
            shown = now
            output.progress(f"sent {number + 1} to {publisher.subscribers} subscriber(s)")


def _report(publisher: Publisher[Any], seconds: float, output: Output) -> None:
    counters = publisher.counters()
    sent = counters["sent"]
    rate = (sent - 1) / seconds if sent > 1 and seconds > 0 else None
    if output.json:
        output.document(
            {
                "tag": publisher.tag.name, "publisher": publisher.info, "sent": sent, "first_seq": 0 if sent else None,
                "last_seq": sent - 1 if sent else None, "bytes": counters["bytes"], "seconds": seconds, "rate_hz": rate,
                "subscribers": publisher.subscribers, "passed_over": counters["overruns"],
            }
        )  # fmt: skip
        return
    numbers = "" if not sent else " (number 0)" if sent == 1 else f" (numbers 0 to {sent - 1}, {show_hz(rate)})"
    output.line(f"sent {sent} message(s){numbers} on {publisher.tag.name} to {publisher.subscribers} subscriber(s)")
    if counters["overruns"]:
        output.note(f"{counters['overruns']} time(s) a reliable reader was too slow and lost messages")

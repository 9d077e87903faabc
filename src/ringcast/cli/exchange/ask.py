"""`ringcast ask`: ask the server of a tag, and print its answer."""

from __future__ import annotations

import argparse
import time

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import not_negative
from ringcast.cli.parts.values import as_json, parse, show
from ringcast.model.tag import check_name

HELP = "Ask whoever serves a tag, and print the answer."

EPILOG = """\
The data is text on a tag of codec bytes, and JSON on one of json, msgpack or numpy. Ends with status 1 when nobody
serves the tag, when the server raises, and when it goes away.

examples:
  ringcast ask lab/valve '{"open": true}'        a command
  ringcast ask lab/valve null --timeout 1        a query, for a second at most
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="the tag that is served")
    parser.add_argument("data", metavar="DATA", help="what to ask")
    parser.add_argument(
        "--timeout", type=not_negative, default=10.0, metavar="S", help="give up after S seconds (default: 10)"
    )
    add_access(parser)
    add_json(parser, "the answer as one JSON document")


def run(args: argparse.Namespace) -> int:
    check_name(args.tag)
    output = Output(args.json)
    with connect(args, "ask") as session:
        tag = session.tag(args.tag, create=False)
        data = parse(args.data, tag.attributes.codec)
        begin = time.perf_counter()
        answer = tag.ask(data, args.timeout)
        seconds = time.perf_counter() - begin
    if args.json:
        output.document({"tag": args.tag, "seconds": seconds, **as_json(answer)})
    else:
        output.line("no value" if answer is None else show(answer))
    return 0

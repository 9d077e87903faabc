"""`ringcast set`: administrative override of a tag's channels, while messages flow."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.placing import words
from ringcast.cli.parts.scaling import add_transport
from ringcast.cli.program import Misuse
from ringcast.errors import BrokenError, UnknownTag
from ringcast.model.place import check_place

if TYPE_CHECKING:
    from ringcast.control.status import TagStatus
    from ringcast.session import Session

HELP = "Decide where a tag's proxies sit and what carries it between nodes, while messages flow."

_EPILOG = """\
Open streams move at once, on every node: nothing comes twice or out of order, and nothing is lost except by the
transport. A setting overrides what subscribers ask for and what the tag's attributes say. Without options, this verb
shows the settings, and which subscribers asked for another place and are overridden. When two halves of a partitioned
mesh join again, the settings of both are kept. Of two for the same node, the one of the half that set more wins; if
they set equally many, that of the node whose name sorts later.

examples:
  ringcast set cam/front --at node:edge1         scale on the node edge1
  ringcast set cam/front --transport tcp         carry it by tcp
  ringcast set cam/front --transport lateral+nak:r=4,c=3
  ringcast set cam/front --transport auto:relate2      let the mesh choose, and choose again ('ringcast adapt --help')
                                                 by one that survives loss; its parameters can be changed later
  ringcast set cam/front --node tablet --at publisher
                                                 only for what goes to the node called tablet
  ringcast set cam/front --node tablet --subscriber 17 --at node:edge1
                                                 only for that subscriber there, until it leaves
  ringcast set cam/front --at auto --transport ''
                                                 let the subscribers choose again
  ringcast set cam/front                         show what is set
"""

_HEADS = ("tag", "to node", "proxy", "transport")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("tag", metavar="TAG", help="the tag's name")
    parser.add_argument("--at", metavar="PLACE", help="publisher, subscriber, node:NAME, or auto to remove the setting")
    parser.add_argument("--proxy", dest="at", help=argparse.SUPPRESS)  # its name in earlier versions
    add_transport(parser, "carries the tag between nodes; '' removes the setting")
    parser.add_argument("--node", default="", metavar="NAME", help="only for streams to this node (default: all)")
    parser.add_argument(
        "--subscriber", type=int, default=0, metavar="NUMBER",
        help="only for this subscriber of --node; 'ringcast tags TAG --subscribers' has the numbers",
    )  # fmt: skip
    add_access(parser)
    add_json(parser, "what is set then, as one JSON document")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    if args.at is not None:
        try:
            check_place(args.at)
        except ValueError as exc:
            raise Misuse(f"--{exc}") from exc
    if args.node and args.at is None and args.transport is None:
        raise Misuse("--node says for which node; say also what, with --at or --transport")
    if args.subscriber and not args.node:
        raise Misuse("--subscriber is a number on its node; say also --node")
    with connect(args, "set") as session:
        if args.at is not None or args.transport is not None:
            session.set_channel(
                args.tag, node=args.node, subscriber=args.subscriber, at=args.at, transport=args.transport
            )
        found = session.tags(args.tag)
        if not found:
            raise UnknownTag(args.tag)
        _show(output, found[0], _overridden(session, args.tag))
    return 0


def _overridden(session: Session, tag: str) -> list[str]:
    try:
        found = session.observe(measured=False).subscribers
    except BrokenError:  # without a network there are no proxies elsewhere
        return []
    return [words.overridden(one) for one in found if one.tag == tag and one.overrides]


def _show(output: Output, status: TagStatus, overridden: list[str]) -> None:
    if output.json:
        found = {"tag": status.name, "settings": status.settings}
        output.document(found | ({"overridden": overridden} if overridden else {}))
        return
    cells = [
        [status.name, node or "all", setting.at or "auto", setting.transport or "as asked"]
        for node, setting in sorted(status.settings.items())
    ]
    if cells:
        output.table(_HEADS, cells, "")
    else:
        output.line(f"nothing is set for {status.name}: subscribers choose")
    for line in overridden:
        output.line(line)

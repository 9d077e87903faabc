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
from ringcast.model.place import Setting, check_place
from ringcast.model.priority import Change

if TYPE_CHECKING:
    from ringcast.control.status import TagStatus
    from ringcast.session import Session

HELP = "Decide where a tag's proxies sit, what carries it between nodes and how urgently, while messages flow."

EPILOG = """\
Open streams move at once, on every node: nothing comes twice or out of order, and nothing is lost except by the
transport. A setting overrides what subscribers ask for and what the tag's attributes say. Without options, this verb
shows the settings, and which subscribers asked for another place and are overridden. When two halves of a partitioned
mesh join again, the settings of both are kept. Of two for the same node, the one of the half that set more wins; if
they set equally many, that of the node whose name sorts later.
A priority is in force when this returns; 'ringcast channels' shows what the kernels have. A schedule that the kernel of
a node concerned refuses is not set, and the error says why.

examples:
  ringcast set cam/front --at node:edge1         scale on the node edge1
  ringcast set cam/front --transport tcp         carry it by tcp
  ringcast set cam/front --transport lateral+nak:r=4,c=3
                                                 by one that survives loss; its parameters can be changed later
  ringcast set cam/front --transport auto:relate2
                                                 let the mesh choose, and choose again ('ringcast adapt --help')
  ringcast set cam/front --node tablet --at publisher
                                                 only for what goes to the node called tablet
  ringcast set cam/front --node tablet --subscriber 17 --at node:edge1
                                                 only for that subscriber there, until it leaves
  ringcast set cam/front --priority high         its packets go before others, at cards and switches
  ringcast set cam/front --subscriber 17 --priority critical --sched fifo:30
                                                 and its threads before others, for one subscriber
  ringcast set cam/front --dscp AF42             a code point of your own instead of the class's
  ringcast set cam/front --sched deadline:1ms/10ms
                                                 reserve 1 ms of a core in every 10 ms for each of its threads
  ringcast set cam/front --priority high --bandwidth 20mbit
                                                 keep 20 Mbit/s of the links for it, whatever others send
  ringcast set cam/front --priority normal --sched other
                                                 like all others again; '' leaves it to the subscribers
  ringcast set cam/front --at auto --transport ''
                                                 let the subscribers choose again
  ringcast set cam/front                         show what is set
  ringcast set --auto                            classes and schedules for all channels of the mesh, by deadline
  ringcast set --auto 'arm/**' --dry-run         show what that would be
"""

_AUTO_HEADS = ("tag", "to node", "deadline", "class", "schedule")
_HEADS = ("tag", "to node", "proxy", "transport", "priority")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tag", metavar="TAG", nargs="?", help="the tag's name; with --auto a pattern (default: all tags)"
    )
    parser.add_argument(
        "--auto", action="store_true",
        help="class and schedule of all channels by their deadlines, the shortest first (docs/admission.md)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="with --auto: show what would be set")
    parser.add_argument("--at", metavar="PLACE", help="publisher, subscriber, node:NAME, or auto to remove the setting")
    parser.add_argument("--proxy", dest="at", help=argparse.SUPPRESS)  # its name in earlier versions
    add_transport(parser, "carries the tag between nodes; '' removes the setting")
    parser.add_argument("--node", default="", metavar="NAME", help="only for streams to this node (default: all)")
    parser.add_argument(
        "--subscriber", type=int, default=0, metavar="NUMBER",
        help="only for this subscriber (of --node, where several have the number); 'ringcast tags TAG --subscribers' "
        "has the numbers",
    )  # fmt: skip
    parser.add_argument("--priority", metavar="CLASS", help="low, normal, high or critical; '' removes the setting")
    parser.add_argument(
        "--dscp",
        metavar="CODE",
        help="the packets' code point: 0 to 63, AF11 to AF43, CS0 to CS7, EF, VA; '' removes it",
    )
    parser.add_argument(
        "--sched", metavar="POLICY",
        help="of the threads that send and deliver: fifo:1-99, rr:1-99, deadline:RUNTIME/PERIOD, other; '' removes it",
    )  # fmt: skip
    parser.add_argument(
        "--bandwidth", metavar="RATE",
        help="keep so much of the link for it, as 5mbit, on the nodes that send it; '' removes it",
    )  # fmt: skip
    add_access(parser)
    add_json(parser, "what is set then, as one JSON document")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    if args.auto:
        return _auto(args, output)
    if args.tag is None or args.dry_run:
        raise Misuse("say which tag" if args.tag is None else "--dry-run goes with --auto")
    if args.at is not None:
        try:
            check_place(args.at)
        except ValueError as exc:
            raise Misuse(f"--{exc}") from exc
    change = Change(args.priority, args.dscp, args.sched, args.bandwidth)
    try:
        change.check()
    except ValueError as exc:
        raise Misuse(str(exc)) from exc
    sets = args.at is not None or args.transport is not None or bool(change)
    if (args.node or args.subscriber) and not sets:
        raise Misuse("--node and --subscriber say for whom; say also what, with --at, --transport or --priority")
    with connect(args, "set") as session:
        if sets:
            node = args.node or _node_of(session, args.tag, args.subscriber)
            for warning in session.set_channel(
                args.tag, node=node, subscriber=args.subscriber, at=args.at, transport=args.transport,
                priority=args.priority, dscp=args.dscp, sched=args.sched, bandwidth=args.bandwidth,
            ):  # fmt: skip
                output.note(f"warning: {warning}")
        found = session.tags(args.tag)
        if not found:
            raise UnknownTag(args.tag)
        _show(output, found[0], _overridden(session, args.tag))
    return 0


def _auto(args: argparse.Namespace, output: Output) -> int:
    given = [
        name
        for name in ("at", "transport", "priority", "dscp", "sched", "bandwidth")
        if getattr(args, name) is not None
    ]
    if given or args.node or args.subscriber:
        raise Misuse(f"--auto decides by itself and goes with no other setting (--{(given or ['node'])[0]})")
    with connect(args, "set") as session:
        found = session.assign_priorities(args.tag or "**", dry_run=args.dry_run)
    if output.json:
        output.document({"assigned": found, "dry_run": args.dry_run})
        return 0
    for one in found:
        if one.refused:
            output.note(f"warning: {one.tag} to {one.node} has its class and no schedule: {one.refused}")
    cells = [[one.tag, one.node, f"{one.deadline_s * 1e3:g} ms", one.priority, one.sched or "-"] for one in found]
    if cells:
        output.table(_AUTO_HEADS, cells, "")
    else:
        output.line("no subscriber gave a deadline and no publisher declared a period: nothing to assign")
    return 0


def _node_of(session: Session, tag: str, subscriber: int) -> str:
    """The node of a subscriber by its number alone. Raises Misuse, UnknownTag."""
    if not subscriber:
        return ""
    rows = session.tag(tag, create=False).subscribers()
    nodes = sorted({row.info.node for row in rows if row.info.id == subscriber})
    if len(nodes) != 1:
        who = "no subscriber has" if not nodes else f"subscribers on {' and '.join(nodes)} have"
        raise Misuse(f"{who} number {subscriber} on {tag}; 'ringcast tags {tag} --subscribers' lists them, say --node")
    return nodes[0]


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
    cells = [_row(status.name, node, setting) for node, setting in sorted(status.settings.items())]
    if cells:
        output.table(_HEADS, cells, "")
    else:
        output.line(f"nothing is set for {status.name}: subscribers choose")
    for line in overridden:
        output.line(line)


def _row(tag: str, node: str, setting: Setting) -> list[str]:
    asked = "as asked"
    return [tag, node or "all", setting.at or "auto", setting.transport or asked, setting.priority or asked]

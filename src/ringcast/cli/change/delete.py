"""`ringcast delete`: remove a tag from the mesh, with all its history."""

from __future__ import annotations

import argparse

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.errors import RingcastError, TagInUse
from ringcast.model.tag import check_name

HELP = "Delete a tag on every node, with its history. A tag that programs use is deleted only with --force."

EPILOG = """\
A deleted tag can be created again, with other attributes: 'ringcast pub' or any program does that. With --force,
publishers and subscribers of the tag get the error TagDestroyed. Tags that nobody uses end by themselves after a day;
'ringcast daemon --tag-lease' changes that.

examples:
  ringcast delete lab/temp              nobody publishes on it or subscribes to it
  ringcast delete lab/temp --force      even while programs use it
  ringcast tags lab/temp --publishers   who publishes on it, on which node
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="the tag's name, as lab/bench1/temp")
    parser.add_argument("--force", action="store_true", help="delete it even while programs use it")
    add_access(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Raises BadTagName, UnknownTag, RingcastError (programs use it)."""
    output = Output(args.json)
    check_name(args.tag)  # before a daemon is started for it
    with connect(args, "delete") as session:
        try:
            session.destroy_tag(args.tag, force=args.force)
        except TagInUse as exc:
            raise RingcastError(
                f"tag {exc.name!r} has {exc.publishers} publisher(s) and {exc.subscribers} subscriber(s); stop them, "
                "or use --force"
            ) from exc
    if output.json:
        output.document({"deleted": args.tag})
    else:
        output.line(f"deleted {args.tag}")
    return 0

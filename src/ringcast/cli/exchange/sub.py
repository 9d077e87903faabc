"""`ringcast sub`: receive and print."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Literal

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.messages import line, record
from ringcast.cli.parts.output import PROGRESS_FROM_S, Output, add_json
from ringcast.cli.parts.scaling import add_scaling, add_transport
from ringcast.cli.parts.units import count, index, positive
from ringcast.cli.parts.values import encoded
from ringcast.cli.program import FAILED, Misuse
from ringcast.errors import CorruptRing, DecodeError, UnknownTag
from ringcast.model.place import AUTO
from ringcast.model.tag import check_pattern, is_pattern

if TYPE_CHECKING:
    from ringcast.message import Message
    from ringcast.session import Session
    from ringcast.subscriber import Subscriber

HELP = "Subscribe to a tag, or to all that match a pattern, and print each message: tag, number, time it took, value."

EPILOG = """\
If the tag does not exist yet, this program waits for it. Messages that were overwritten before it read them are counted
and reported on standard error; with --json, the field "lost" of the next message has the number.

examples:
  ringcast sub lab/temp                        what is sent from now on
  ringcast sub 'lab/**' --start latest         first what was sent last
  ringcast sub lab/temp --count 1 --timeout 5  one message, or exit code 1
  ringcast sub lab/temp --json | jq .value     for programs
  ringcast sub host/file --raw > copy          bytes as they were sent
  ringcast sub cam --size 320x240 --rate 5     smaller and fewer, scaled in the publisher's process
  ringcast sub cam --rate 2..30                the best of that which links and processors allow
  ringcast sub cam --every 10 --at node:attic  scaled on a node in between
  ringcast sub cam --transport lateral+nak:r=4,c=3
                                               from other nodes by a transport that survives loss
"""

_LOOK_S = 0.2
_STARTS: dict[str, Literal["new", "latest", "earliest"]] = {"new": "new", "latest": "latest", "earliest": "earliest"}


def _start(text: str) -> Literal["new", "latest", "earliest"] | int:
    try:
        return _STARTS[text] if text in _STARTS else index(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not new, latest, earliest or a sequence number") from None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="a tag, or 'lab/*/temp', 'lab/**'")
    parser.add_argument(
        "--start", type=_start, default="new", metavar="WHERE", help="new (default), latest, earliest or a number"
    )
    parser.add_argument("--count", type=count, metavar="N", help="end after N messages")
    parser.add_argument("--timeout", type=positive, metavar="S", help="end after S seconds without a message")
    parser.add_argument(
        "--reliable", action="store_true", help="publishers wait for this program, up to the tag's max_wait_s"
    )
    add_scaling(parser, rate_too=True)
    add_transport(parser, "carries the messages of other nodes (default: what the tag says)")
    parser.add_argument("--raw", action="store_true", help="write only the messages' bytes")
    add_access(parser)
    add_json(parser, "one JSON object per message and line")


def run(args: argparse.Namespace) -> int:
    check_pattern(args.pattern)
    if args.raw and args.json:
        raise Misuse("--raw writes bytes, --json objects; choose one")
    output = Output(args.json)
    with connect(args, "sub") as session:
        begin = time.monotonic()
        awaited = _wait_for_tag(session, args, output)
        # Everything on a tag that was created while we waited is new.
        subscriber = session.subscribe(
            args.pattern, start="earliest" if awaited and args.start == "new" else args.start, reliable=args.reliable,
            every=args.every, rate_hz=args.rate, size=args.size, at=args.at or AUTO,
            transport=args.transport or "",
        )  # fmt: skip
        received = 0
        try:
            while args.count is None or received < args.count:
                message = _receive(session, subscriber, args, output, time.monotonic() - begin if awaited else 0.0)
                if message is None:
                    continue
                awaited = False
                received += 1
                _show(message, args, output, session)
        except TimeoutError:
            missing = f" ({received} of {args.count} came)" if args.count is not None else ""
            if args.count is not None or not received:
                output.note(f"ringcast: nothing came on {args.pattern} for {args.timeout:g} s{missing}")
                return FAILED
        finally:
            lost = subscriber.counters()["lost"]
            if lost:
                output.note(f"received {received}, lost {lost}")
    return 0


def _wait_for_tag(session: Session, args: argparse.Namespace, output: Output) -> bool:
    """Whether the tag had to be waited for. Subscribing at once would create it, with a codec that may not be the one
    its publisher is going to want. Raises UnknownTag."""
    if is_pattern(args.pattern) or session.tags(args.pattern):
        return False
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    output.note(f"there is no tag {args.pattern} yet; waiting for it")
    while not session.tags(args.pattern):
        if deadline is not None and time.monotonic() > deadline:
            raise UnknownTag(args.pattern)
        time.sleep(_LOOK_S)
    return True


def _receive(
    session: Session, subscriber: Subscriber, args: argparse.Namespace, output: Output, waited_s: float
) -> Message | None:
    """The next message, or None for one that could not be read. Raises TimeoutError."""
    timeout = None if args.timeout is None else max(0.0, args.timeout - waited_s)
    patience = PROGRESS_FROM_S if timeout is None else min(timeout, PROGRESS_FROM_S)
    try:
        try:
            return subscriber.recv(patience)
        except TimeoutError:
            if timeout is not None and timeout <= patience:
                raise
            publishers = sum(row.publishers for row in session.tags(args.pattern)) if session.connected else 0
            output.progress(f"waiting: {publishers} publisher(s) on {args.pattern}, nothing sent for a while")
            return subscriber.recv(None if timeout is None else timeout - patience)
    except (DecodeError, CorruptRing) as exc:  # of one message or one ring; the others go on
        output.note(f"ringcast: {exc}")
        return None


def _show(message: Message, args: argparse.Namespace, output: Output, session: Session) -> None:
    if args.raw:
        codec = "bytes" if isinstance(message.data, bytes) else session.tag(message.tag, create=False).attributes.codec
        sys.stdout.buffer.write(encoded(message.data, codec))
        sys.stdout.buffer.flush()
    elif args.json:
        output.record(record(message))
    else:
        if message.lost:
            output.note(f"{message.tag}: lost {message.lost} message(s) before #{message.seq}")
        output.line(line(message, message.received_ns - message.sent_ns))

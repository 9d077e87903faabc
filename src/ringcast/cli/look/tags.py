"""`ringcast tags`: the tags of this node, with what their publishers and subscribers count in shared memory."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import PROGRESS_FROM_S, Output, add_json
from ringcast.cli.parts.units import show_age, show_bytes, show_hz, show_ns
from ringcast.cli.parts.watching import add_watch, watch
from ringcast.errors import CodecError, UnknownTag
from ringcast.model.tag import check_pattern, is_pattern

if TYPE_CHECKING:
    from ringcast.cli.parts.watching import Sheet
    from ringcast.control.status import SubscriberStatus, TagStatus
    from ringcast.session import Session

HELP = "List tags: what they carry, who publishes and subscribes, how much was sent, how often, and when last."

EPILOG = """\
The rate is that of the last seconds, by the publishers' own send times. A tag without publishers keeps the
histories of the last ones, as far as memory allows; 'ringcast pull' reads them.

examples:
  ringcast tags                          all tags
  ringcast tags 'lab/*/temp' --watch     some of them, again every second
  ringcast tags lab/cam --subscribers    who receives it, how late, and what they lost
"""

_HEADS = ("tag", "codec", "depth", "capacity", "publishers", "subscribers", "sent", "rate", "last message")
_PUBLISHER_HEADS = (
    "tag", "publisher", "process", "program", "state", "sent", "bytes", "waits", "passed over", "last message"
)  # fmt: skip
_SUBSCRIBER_HEADS = (
    "tag", "subscriber", "process", "program", "pattern", "reliable", "received", "lost", "p50", "p99"
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", default="**", metavar="PATTERN", help="a tag, or 'lab/*/temp', 'lab/**'")
    parser.add_argument("--publishers", action="store_true", help="show each publisher")
    parser.add_argument("--subscribers", action="store_true", help="show each subscriber, with latency and loss")
    add_watch(parser)
    add_access(parser)
    add_json(parser, "one JSON document (with --watch: one object per line)")


def run(args: argparse.Namespace) -> int:
    check_pattern(args.pattern)
    output = Output(args.json)
    with connect(args, "tags") as session:
        if args.watch is not None:
            watch(
                output, args.watch, lambda: _look(session, args, output), lambda rows: _tables(rows, args),
                lambda rows: {"time_ns": time.time_ns(), "tags": rows},
            )  # fmt: skip
        rows = _look(session, args, output)
        if args.json:
            output.document(rows)
            return 0
        for title, heads, cells in _tables(rows, args):
            output.table(heads, cells, title)
        if not rows:
            output.line("no tags match" if args.pattern != "**" else "there are no tags yet")
    return 0


def _look(session: Session, args: argparse.Namespace, output: Output) -> list[dict[str, Any]]:
    """Everything asked for, as it goes into JSON. Raises UnknownTag."""
    found = session.tags(args.pattern)
    if not found and not is_pattern(args.pattern) and args.watch is None:
        raise UnknownTag(args.pattern)
    rows: list[dict[str, Any]] = []
    begin = time.monotonic()
    for status in found:
        if time.monotonic() - begin > PROGRESS_FROM_S:
            output.progress(f"looking: {len(rows)} of {len(found)} tags")
        rows.append(_tag(session, status, args))
    return rows


def _tag(session: Session, status: TagStatus, args: argparse.Namespace) -> dict[str, Any]:
    from ringcast.cli.parts.observation import RECENT_NS, rate_lately

    now_ns = time.time_ns()
    busy = status.publishers > 0 and now_ns - status.last_sent_ns < RECENT_NS
    row: dict[str, Any] = {
        "name": status.name, "id": status.id, "attributes": status.attributes, "publisher_count": status.publishers,
        "subscriber_count": status.subscribers, "sent": status.sent, "bytes": status.bytes, "rate_hz": 0.0,
        "last_sent_ns": status.last_sent_ns or None,
        "age_ns": now_ns - status.last_sent_ns if status.last_sent_ns else None,
    }  # fmt: skip
    if not (busy or args.publishers or args.subscribers):
        return row  # with thousands of idle tags the listing is all that is needed
    try:
        tag = session.tag(status.name, create=False)
    except (UnknownTag, CodecError):  # deleted a moment ago, or its codec is not installed here
        return row | {"rate_hz": None}
    row["rate_hz"] = rate_lately(tag, now_ns) if busy else 0.0
    if args.publishers:
        row["publishers"] = tag.publishers(left=True, local=True)
    if args.subscribers:
        row["subscribers"] = [_subscriber(subscriber) for subscriber in tag.subscribers(local=True)]
    return row


def _subscriber(status: SubscriberStatus) -> dict[str, Any]:
    from ringcast import _core
    from ringcast.measure.receiving import percentile

    p50, p99 = (percentile(status.latency, share, _core.latency_bucket_ns) for share in (0.5, 0.99))
    return {"info": status.info, "counters": status.counters, "latency_p50_ns": p50, "latency_p99_ns": p99}


def _tables(rows: list[dict[str, Any]], args: argparse.Namespace) -> Iterator[Sheet]:
    """(title, heads, cells) of each table to show."""
    if not rows:
        return
    now_ns = time.time_ns()
    yield "", _HEADS, [
        [
            row["name"], row["attributes"].codec, str(row["attributes"].depth),
            show_bytes(row["attributes"].capacity_bytes), str(row["publisher_count"]), str(row["subscriber_count"]),
            str(row["sent"]), show_hz(row["rate_hz"]), show_age(row["last_sent_ns"] or 0, now_ns),
        ]
        for row in rows
    ]  # fmt: skip
    if args.publishers:
        yield "\npublishers", _PUBLISHER_HEADS, [
            [
                row["name"], str(status.info.id), str(status.info.pid), status.info.program,
                "sending" if status.alive else "left", str(status.counters.get("sent", 0)),
                show_bytes(status.counters.get("bytes", 0)), str(status.counters.get("waits", 0)),
                str(status.counters.get("overruns", 0)), show_age(status.last_sent_ns, now_ns),
            ]
            for row in rows for status in row.get("publishers", ())
        ]  # fmt: skip
    if args.subscribers:
        yield "\nsubscribers", _SUBSCRIBER_HEADS, [
            [
                row["name"], str(seen["info"].id), str(seen["info"].pid), seen["info"].program, seen["info"].pattern,
                "yes" if seen["info"].reliable else "no", str(seen["counters"].get("received", 0)),
                str(seen["counters"].get("lost", 0)), show_ns(seen["latency_p50_ns"]), show_ns(seen["latency_p99_ns"]),
            ]
            for row in rows for seen in row.get("subscribers", ())
        ]  # fmt: skip

"""`ringcast channels`: the streams between this node and others, and what was dropped."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.gauges import Gauges, carrier, order, records, sheets
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.placing import words
from ringcast.cli.parts.scaling import show_size
from ringcast.cli.parts.units import show_bytes, show_hz, show_ns
from ringcast.cli.parts.watching import add_watch, watch
from ringcast.control.status import InForce
from ringcast.daemon.table.system_tags import channels_tag, decode
from ringcast.errors import RingcastError
from ringcast.measure.channel import LOOKS

if TYPE_CHECKING:
    from ringcast.cli.parts.watching import Sheet
    from ringcast.control.placing import SubscriberPlace
    from ringcast.control.status import ChannelStatus
    from ringcast.measure.channel import Reading
    from ringcast.model.carrier import Chosen
    from ringcast.session import Session

HELP = "List the streams between this node and others: what they carry, how much, and what was lost."

EPILOG = """\
'in' comes to this node, 'out' leaves it. Publishers send datagrams themselves, so only the receiving node counts them.
'receiver' is who takes in what comes: the daemon, or a subscriber that is the only one here to read the stream.
'sealed' channels are encrypted and authenticated: in a mesh with identities all are ('ringcast secure').
'every' n carries the messages whose number is a multiple of n; with a 'rate', n follows the publisher. 'size' is what
messages are scaled to. 'repeated' are fragments that came twice or too late; 'recovered' came from repairs; 'naks' are
retransmission requests, sent ('in') or answered ('out'); 'repairs' were received or sent. Delay and jitter are of the
last messages, by the clocks of both nodes. '(unicast)': multicast does not reach that node, so it gets datagrams of its
own.
With --watch there are two tables: how much came from (<) and went to (>) other nodes, and how well, over the last ten
looks. 'overhead' is bytes on the wire for each byte of messages; ReLate is the mean latency divided by the share that
came, ReLate2 the latency times (percent lost + 1); 2Jit (us2), 2Net and 2Burst (bytes) are ReLate2 times the latency's
deviation, the bandwidth and its deviation. Less is better. --json has them as 'measured', in seconds and bytes per
second, and without --watch since the channel began.
'priority' is what was asked for, and below are, of channels that have one, what the kernel of this node has: code point
and priority of the socket, the policy of the thread that sends ('out') or delivers ('in'), whether the channel has both
for itself, and what is not in force.
'nothing comes' lists streams by plain udp that are sent and do not arrive, as their senders say when they are asked.
Below, by reason, what was dropped because it belongs to no channel: truncated and malformed datagrams, those of other
programs (foreign), of a newer version, of strangers; and what carried a channel's key but cannot be its sender's
(absurd, forged, mismatched), or is not (replayed, old_key). For tcp, refused connections: crowded (more than 128 named
no channel) and no_room (the daemon had no descriptor left). 'mesh' counts messages and requests of other daemons that
this one refused.

examples:
  ringcast channels                 all channels
  ringcast channels --why           and why: where proxies sit, which transport the mesh chose, from which candidates,
                                    and what each channel met in the last seconds
  ringcast channels --watch         what flows and how well, again every second
  ringcast channels --watch --json  the same, an object a line
"""

_HEADS = (
    "tag", "direction", "node", "transport", "receiver", "sealed", "every", "rate", "size", "reliable", "messages",
    "bytes", "priority", "lost", "repeated", "recovered", "naks", "repairs", "delay", "jitter", "relate", "relate2",
)  # fmt: skip
_FORGED = ("malformed", "absurd", "forged", "replayed", "old_key", "mismatched")
"""What came under a channel's own key and cannot be its sender's."""
REMEMBERED_NS = 15_000_000_000
_FORCE_HEADS = ("tag", "direction", "node", "asked", "dscp", "queue", "thread", "cores", "bandwidth", "own",
                "not in force", "bound")  # fmt: skip
_DROPPED_HEADS = ("transport", "reason", "dropped")


def configure(parser: argparse.ArgumentParser) -> None:
    add_watch(parser)
    parser.add_argument("--why", action="store_true", help="say why proxies sit and transports were chosen")
    add_access(parser)
    add_json(parser, "one JSON document (with --watch: one object per line)")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    gauges = Gauges()
    with connect(args, "channels") as session:
        if args.watch is not None:
            for taken_ns, rows in _remembered(session):
                gauges.look(rows, taken_ns * 1e-9)
            watch(output, args.watch, lambda: _look(session, gauges, why=False), _watched, _record)
        seen = _look(session, gauges, why=args.why)
        places = _places(session) if args.why else []
        choices = _choices(session, seen.rows) if args.why else []
        if args.json:
            reasons = {
                "why": [words.document(one) for one in places],
                "chosen": [{"tag": tag, "asked": asked, **msgspec.structs.asdict(one)} for tag, asked, one in choices],
            }  # fmt: skip
            output.document(_document(seen) | (reasons if args.why else {}))
            return 0
        for title, heads, cells in _sheets(seen):
            output.table(heads, cells, title)
        if not seen.rows:
            output.line("there are no channels: no subscriber reads a publisher of another node")
        if args.why:
            output.line()
            for one in places:
                output.line(words.why(one))
            if not places:
                output.line("nobody here wants a scaled stream, so there is no proxy")
            for tag, asked, chosen in choices:
                output.line(words.carried(tag, asked, chosen, time.time_ns()))
            for line in words.explained(seen.rows):
                output.line(line)
    return 0


def _places(session: Session) -> list[SubscriberPlace]:
    here = session.observe(measured=False).subscribers
    return [one for one in here if one.node == session.node and one.wanted.scales]


def _choices(session: Session, rows: list[ChannelStatus]) -> list[tuple[str, str, Chosen]]:
    """Transports that the mesh chose for tags with channels here: (tag, what was asked for, what was chosen)."""
    tags = sorted({row.tag for row in rows})
    found = [row for tag in tags for row in session.tags(tag)]
    return [(row.name, asked, chosen) for row in found for asked, chosen in sorted(row.chosen.items())]


class _Seen(NamedTuple):
    rows: list[ChannelStatus]
    readings: list[Reading]
    dropped: dict[str, dict[str, int]]


def _look(session: Session, gauges: Gauges, *, why: bool) -> _Seen:
    rows = session.channels(why=why)
    return _Seen(rows, gauges.look(rows, time.time()), session.dropped())


def _remembered(session: Session) -> list[tuple[int, list[ChannelStatus]]]:
    """The daemon's counters of its channels in the last seconds, from its ring in shared memory, so that the first view
    has rates already. Empty when it never had channels."""
    oldest_ns = time.time_ns() - REMEMBERED_NS
    try:
        with session.tag(channels_tag(session.node)).local_history() as history:
            first, last = history.bounds()
            looks = [decode(message.data) for message in history.range(max(first, last - LOOKS + 1), last)]
    except (RingcastError, msgspec.ValidationError):
        return []
    return [look for look in looks if oldest_ns <= look[0] <= time.time_ns()]


def _document(seen: _Seen) -> dict[str, Any]:
    return {"channels": records(seen.rows, seen.readings), "dropped": seen.dropped}


def _record(seen: _Seen) -> dict[str, Any]:
    return {"time_ns": time.time_ns(), **_document(seen)}


def _watched(seen: _Seen) -> list[Sheet]:
    return [*sheets(seen.rows, seen.readings), *_dropped(seen)]


def _sheets(seen: _Seen) -> list[Sheet]:
    listing: list[Sheet] = []
    if seen.rows:
        cells = [
            [
                row.tag, row.direction, row.node, carrier(row), row.receiver or "-",
                _yes(row.counters.get("sealed")), str(row.every),
                show_hz(row.rate_hz or None), show_size(row.size), _yes(row.reliable),
                _number(row.messages), "-" if row.bytes is None else show_bytes(row.bytes), row.priority or "-",
                _number(row.lost),
                str(sum(row.counters.get(name, 0) for name in ("duplicates", "late", "again"))),
                *(_number(row.counters.get(name)) for name in ("recovered", "naks", "repairs")),
                *(_time(row.counters.get(name)) for name in ("delay_ns", "jitter_ns")),
                *("-" if score is None else show_ns(score * 1e9) for score in (reading.relate, reading.relate2)),
            ]
            for row, reading in sorted(zip(seen.rows, seen.readings, strict=True), key=lambda pair: order(pair[0]))
        ]  # fmt: skip
        listing.append(("", _HEADS, cells))
    return [*listing, *_unheard(seen.rows), *_fidelities(seen.rows), *_in_force(seen.rows), *_dropped(seen)]


def _unheard(rows: list[ChannelStatus]) -> list[Sheet]:
    """Channels of which nothing comes, though it is sent."""
    cells = [
        [row.tag, row.node, row.transport, str(row.counters["unheard"]), "does a firewall drop datagrams?"]
        for row in sorted((row for row in rows if row.counters.get("unheard")), key=order)
    ]
    return [("\nnothing comes", ("tag", "node", "transport", "sent meanwhile", "check"), cells)] if cells else []


def _fidelities(rows: list[ChannelStatus]) -> list[Sheet]:
    """Channels for subscribers that take what fits of a range."""
    cells = [
        [row.tag, row.node, show_hz(row.rate_hz or None), show_size(row.size), row.fidelity]
        for row in sorted((row for row in rows if row.fidelity), key=order)
    ]
    return [("\nranges", ("tag", "node", "rate", "size", "of"), cells)] if cells else []


def _in_force(rows: list[ChannelStatus]) -> list[Sheet]:
    """What the kernel has of channels that have a priority."""
    cells = []
    for row in sorted((row for row in rows if row.priority or row.bound), key=order):
        has = row.in_force or InForce(refused=f"transport {row.transport} knows no priorities")
        thread = f"{has.sched} ({has.thread})" if has.thread else "the publisher's"
        cells.append([
            row.tag, row.direction, row.node, row.priority, has.dscp or "-", _number(has.queue),
            thread if row.in_force else "-", _cores(has.wake_us), has.bandwidth or "-",
            "yes" if has.own else "no", has.refused or "-", row.bound or "-",
        ])  # fmt: skip
    warned = sorted({row.in_force.warning for row in rows if row.in_force is not None and row.in_force.warning})
    sheets: list[Sheet] = [("\nin force", _FORCE_HEADS, cells)] if cells else []
    return [*sheets, *([("\nwarnings", ("of schedules",), [[one] for one in warned])] if warned else [])]


def _cores(wake_us: int | None) -> str:
    if wake_us is None:
        return "-"
    return f"wake in {wake_us} us" if wake_us else "awake"


def _dropped(seen: _Seen) -> list[Sheet]:
    dropped = [
        [f"{row.transport} from {row.node}", reason, str(row.counters[reason])]
        for row in seen.rows for reason in _FORGED if row.counters.get(reason)
    ]  # fmt: skip
    dropped += [
        [transport, reason, str(count)]
        for transport, reasons in seen.dropped.items() for reason, count in reasons.items() if count
    ]  # fmt: skip
    return [("\ndropped", _DROPPED_HEADS, dropped)] if dropped else []


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _time(ns: int | None) -> str:
    return "-" if ns is None else show_ns(ns)

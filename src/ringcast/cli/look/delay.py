"""`ringcast delay`: how long messages take, from `send` to this program's `recv`.

Nothing is printed while a window runs, and messages that arrive during printing are left out and counted: they would
have waited for the terminal, and the figure would be the terminal's.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ringcast.cli.parts.access import connect
from ringcast.cli.parts.latency import DelayLog, Delays
from ringcast.cli.parts.measuring import Reports, add_measuring
from ringcast.cli.parts.output import Output
from ringcast.cli.parts.units import show_ns
from ringcast.errors import CorruptRing, DecodeError, UnknownTag, WouldBlock
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import check_pattern, is_pattern

if TYPE_CHECKING:
    from ringcast.message import Message
    from ringcast.subscriber import Subscriber

HELP = "How long messages take from send to receive: percentiles, maximum, jitter, and what was lost."

EPILOG = """\
The receiver is this program itself, blocked in recv on this node: it shows what a subscriber with nothing else to do
sees, and what it lost. What other subscribers see is in 'ringcast tags TAG --subscribers'.

examples:
  ringcast delay lab/cam                       until Ctrl-C
  ringcast delay lab/cam --window 10 --count 1 --json
"""

_HEADS = ("tag", "publisher", "messages", "lost", "p50", "p90", "p99", "max", "jitter", "unmeasured")
_NOTE = (
    "measured: from the publisher's send to this tool's blocking recv, so the receiver is the tool itself; unmeasured "
    "are messages that came while it was reporting"
)


class Delayed(msgspec.Struct, frozen=True, kw_only=True):
    """One publisher's messages over one time. `unmeasured` came while the tool was reporting."""

    tag: str
    publisher: PublisherInfo
    delays: Delays
    lost: int
    unmeasured: int


class _Stream:
    """What was received of one publisher."""

    def __init__(self, message: Message) -> None:
        self.tag: str = message.tag
        self.publisher: PublisherInfo = message.publisher
        self.log = DelayLog()
        self.lost = 0
        self.unmeasured = 0

    def take(self, other: _Stream) -> None:
        self.log.take(other.log)
        self.lost += other.lost
        self.unmeasured += other.unmeasured

    def figures(self) -> Delayed:
        return Delayed(
            tag=self.tag, publisher=self.publisher, delays=self.log.delays(), lost=self.lost, unmeasured=self.unmeasured
        )


class _Receiver:
    """Receives in windows, by publisher."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self._streams: dict[int, _Stream] = {}
        self._totals: dict[int, _Stream] = {}
        self.unreadable: defaultdict[str, int] = defaultdict(int)

    def receive(self, until: float) -> None:
        """Measure what arrives until that monotonic time."""
        receive = self._subscriber.recv
        while (left := until - time.monotonic()) > 0:
            try:
                message = self._next(receive, left)
            except TimeoutError:
                return
            if message is not None:
                self._stream(message).log.add(message.received_ns - message.sent_ns)

    def report(self) -> list[Delayed]:
        """Figures of the window, which ends with it."""
        figures = [stream.figures() for stream in self._streams.values()]
        for incarnation, stream in self._streams.items():
            if incarnation in self._totals:
                self._totals[incarnation].take(stream)
            else:
                self._totals[incarnation] = stream
        self._streams = {}
        return figures

    def skip(self) -> None:
        """Leave out what was sent before this moment."""
        now_ns = time.time_ns()
        while True:
            try:
                message = self._next(self._subscriber.recv_nowait)
            except WouldBlock:
                return
            if message is not None:
                self._stream(message).unmeasured += 1
                if message.sent_ns >= now_ns:
                    return

    def totals(self) -> list[Delayed]:
        self.report()
        return [stream.figures() for stream in self._totals.values()]

    def _next(self, receive: Callable[..., Message], *timeout: float) -> Message | None:
        """What `receive` gives, its losses counted; None for a message that cannot be read."""
        try:
            message = receive(*timeout)
        except (DecodeError, CorruptRing) as exc:
            self.unreadable[str(exc)] += 1
            return None
        self._stream(message).lost += message.lost
        return message

    def _stream(self, message: Message) -> _Stream:
        incarnation = message.publisher.incarnation
        stream = self._streams.get(incarnation)
        if stream is None:
            stream = self._streams[incarnation] = _Stream(message)
        return stream


def configure(parser: argparse.ArgumentParser) -> None:
    add_measuring(parser)


def run(args: argparse.Namespace) -> int:
    check_pattern(args.pattern)
    output = Output(args.json)
    with connect(args, "delay") as session:
        if not is_pattern(args.pattern) and not session.tags(args.pattern):
            raise UnknownTag(args.pattern)
        receiver = _Receiver(session.subscribe(args.pattern))
        reports = Reports(args, output, _HEADS, _NOTE)
        try:
            while not reports.done:
                reports.announce()
                receiver.skip()
                receiver.receive(reports.due)
                reports.report(receiver.report(), cells)
        finally:
            reports.summarise(receiver.totals(), cells)
            for reason, times in receiver.unreadable.items():
                output.note(f"ringcast: {times} message(s) could not be read: {reason}")
    return 0


def cells(seen: Sequence[Delayed]) -> list[list[str]]:
    rows = []
    for one in seen:
        delays = one.delays
        rows.append(
            [
                one.tag, str(one.publisher), str(delays.messages), str(one.lost), show_ns(delays.p50_ns),
                show_ns(delays.p90_ns), show_ns(delays.p99_ns), show_ns(delays.max_ns), show_ns(delays.jitter_ns),
                str(one.unmeasured),
            ]
        )  # fmt: skip
    return rows

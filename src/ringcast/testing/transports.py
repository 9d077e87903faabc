"""What every transport has to do, as checks that any of them can run.

Both ends are in this process: a ring that is written, the transport's sending end, its receiving end on 127.0.0.1,
and a reader of the mirror. Invariant: a check says nothing about how fast a transport is; it fails only when something
is wrong or does not come within PATIENCE_S. Run them all by `check_all(transport)`, or one test per entry of `CHECKS`.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ringcast import _core
from ringcast.control.descriptor import Descriptor
from ringcast.daemon.rings.fanout import FanOut
from ringcast.errors import SlowSubscriber, WouldBlock
from ringcast.message import Message
from ringcast.model.closing import Closing
from ringcast.testing.waiting import PATIENCE_S
from ringcast.transport.interface import (
    Channel,
    FanOutLinks,
    GroupTransport,
    Mirror,
    Receiving,
    Sending,
    Transport,
)

_HOST = "127.0.0.1"
_POLL_S = 0.001
_keys = itertools.count(0x5EED0001)


class Violation(AssertionError):
    """The transport does not do what the interface says."""


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


class Publisher:
    """A ring that is written here, with the daemon's end of its fan-out."""

    def __init__(self, depth: int, capacity_bytes: int, max_wait_s: float) -> None:
        self.writer = _core.RingWriter(depth=depth, capacity_bytes=capacity_bytes, max_wait_s=max_wait_s)
        self._monitor = _core.RingMonitor(
            self.ring_fd, self.bell_fd, depth=self.depth, capacity_bytes=self.capacity_bytes, incarnation=self.ring
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            self.writer.attach_fanout(ours.fileno())
        self.fanout = FanOut(
            Descriptor(theirs.detach()), self._monitor.bump_fanout, Descriptor(self._monitor.take_fanout_fd())
        )

    @property
    def ring_fd(self) -> int:
        return self.writer.ring_fd

    @property
    def bell_fd(self) -> int:
        return self.writer.bell_fd

    @property
    def ring(self) -> int:
        return self.writer.incarnation

    @property
    def depth(self) -> int:
        return self.writer.depth

    @property
    def capacity_bytes(self) -> int:
        return self.writer.capacity_bytes

    @property
    def next_seq(self) -> int:
        return self._monitor.next_seq

    @property
    def links(self) -> FanOutLinks:
        return self

    def add_link(self, number: int, fd: int, **how: int) -> None:
        self.fanout.add_link(number, fd, **how)
        self.fanout.flush()

    def remove_link(self, number: int) -> None:
        self.fanout.remove_link(number)
        self.fanout.flush()

    def close(self) -> None:
        self.fanout.close()
        self._monitor.close()
        self.writer.close()


class Path(Closing):
    """From a ring, by the transport, to a reader of the mirror. `settle` stands in for the daemon's event loop."""

    def __init__(
        self, transport: Transport, receiving: Receiving, publisher: Publisher, *, first_seq: int, every: int,
        reliable: bool,
    ) -> None:  # fmt: skip
        self.publisher = publisher
        self._receiving = receiving
        self._transport = transport
        self.channel = Channel(
            key=next(_keys), incarnation=publisher.ring, depth=publisher.depth,
            capacity_bytes=publisher.capacity_bytes, first_seq=-(-first_seq // every) * every, every=every,
            reliable=reliable, transport=transport.name, sender=_HOST,
        )  # fmt: skip
        if isinstance(transport, GroupTransport):
            seat = transport.admit(self.channel, publisher, _HOST, receiving.port)
            self.channel = msgspec.structs.replace(self.channel, seat=seat)
        self.mirror: Mirror = receiving.open(self.channel)
        self.reader = _core.RingReader(reliable=reliable)
        self.reader.attach(
            self.mirror.ring_fd, self.mirror.bell_fd, depth=publisher.depth, capacity_bytes=publisher.capacity_bytes,
            incarnation=self.mirror.incarnation, start=_core.START_EARLIEST, decode=bytes,
        )  # fmt: skip
        self.sending: Sending = transport.send(self.channel, publisher, _HOST, receiving.port)
        asyncio.run(self.sending.ready())

    def settle(self) -> None:
        for answer in self.publisher.fanout.take_answers():
            if answer.link in (self.channel.key, getattr(self.sending, "link", 0)):
                give_back = self.sending.behind if answer.behind else self.sending.too_long
                give_back(answer.seq)
        if self.sending.unsettled:
            self.sending.settle()

    def receive(self, count: int, patience_s: float = PATIENCE_S, *, all_of_them: bool = True) -> list[Message]:
        found: list[Message] = []
        deadline = time.monotonic() + patience_s
        while len(found) < count and time.monotonic() < deadline:
            self.settle()
            try:
                found.append(self.reader.recv_nowait())
            except WouldBlock:
                time.sleep(_POLL_S)
        expect(len(found) == count or not all_of_them, f"{len(found)} of {count} messages came; the rest never did")
        return found

    def expect_silence(self) -> None:
        self.settle()
        try:
            message = self.reader.recv_nowait()
        except WouldBlock:
            return
        raise Violation(f"message {message.seq} came, which was not due")

    def close(self) -> None:
        self.sending.release()
        self.sending.close()
        self.left()
        self._receiving.close_channel(self.channel.key)
        self.reader.close()

    def left(self) -> None:
        """Let a transport with groups see that the channel is gone."""
        if isinstance(self._transport, GroupTransport):
            self._transport.take_changes()


class Bench:
    """A receiving end and a publisher, to make paths between."""

    def __init__(self, transport: Transport, receiving: Receiving, publisher: Publisher) -> None:
        self.transport = transport
        self.receiving = receiving
        self.publisher = publisher

    def path(self, first_seq: int | None = None, every: int = 1, reliable: bool = False) -> Path:
        first = self.publisher.next_seq if first_seq is None else first_seq
        return Path(self.transport, self.receiving, self.publisher, first_seq=first, every=every, reliable=reliable)

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.publisher.writer.send(payload)


@contextmanager
def bench(
    transport: Transport, depth: int = 256, capacity_bytes: int = 1 << 20, max_wait_s: float = 0.1
) -> Iterator[Bench]:
    receiving = transport.receive(_HOST)
    publisher = Publisher(depth, capacity_bytes, max_wait_s)
    try:
        yield Bench(transport, receiving, publisher)
    finally:
        receiving.close()
        publisher.close()


def _numbers(messages: list[Message]) -> list[int]:
    return [message.seq for message in messages]


# ---------------------------------------------------------------------- the checks


def keeps_order_numbers_and_times(transport: Transport) -> None:
    with bench(transport) as b, b.path() as path:
        for i in range(200):
            b.publisher.writer.send(b"%d" % i, event_ns=1_000 + i)
        got = path.receive(200)
        expect(_numbers(got) == list(range(200)), "numbers are the publisher's, in order and each once")
        expect([m.data for m in got] == [b"%d" % i for i in range(200)], "bytes arrive as they were sent")
        expect([m.event_ns for m in got] == [1_000 + i for i in range(200)], "event times are the publisher's")
        history = _core.RingHistory()
        history.attach(
            b.publisher.ring_fd, depth=b.publisher.depth, capacity_bytes=b.publisher.capacity_bytes,
            incarnation=b.publisher.ring,
        )  # fmt: skip
        sent = [m.sent_ns for m in history.range(0, 199)]
        history.close()
        expect([m.sent_ns for m in got] == sent, "send times are the publisher's")
        expect(all(m.lost == 0 for m in got), "nothing was lost, and nothing is said to be")
        path.expect_silence()


def begins_now(transport: Transport) -> None:
    with bench(transport) as b:
        b.send(b"0", b"1", b"2")
        with b.path() as path:
            b.send(b"3")
            (message,) = path.receive(1)
            expect((message.seq, message.lost) == (3, 0), "a channel from now on carries nothing older")


def begins_in_the_past(transport: Transport) -> None:
    with bench(transport) as b:
        b.send(*(b"%d" % i for i in range(50)))
        with b.path(first_seq=10) as path:
            b.send(b"50")
            b.send(b"51")
            got = path.receive(42)
            expect(_numbers(got) == list(range(10, 52)), "history comes first, then what is new, each once")
            expect(all(m.lost == 0 for m in got), "what was not asked for is not loss")


def history_needs_no_further_message(transport: Transport) -> None:
    with bench(transport) as b:
        b.send(*(b"%d" % i for i in range(5)))
        with b.path(first_seq=0) as path:
            # Whatever is sent while the history travels arrives without another message pushing it on.
            b.send(b"5")
            expect(_numbers(path.receive(6)) == list(range(6)), "the last message sent arrives by itself")


def carries_every_nth(transport: Transport) -> None:
    with bench(transport) as b, b.path(every=7) as path:
        b.send(*(b"%d" % i for i in range(100)))
        got = path.receive(15)
        expect(_numbers(got) == list(range(0, 100, 7)), "the messages whose number is a multiple of n")
        expect(all(m.lost == 0 for m in got), "those left out are not loss")
        path.expect_silence()


def carries_every_nth_of_the_past(transport: Transport) -> None:
    with bench(transport) as b:
        b.send(*(b"%d" % i for i in range(50)))
        with b.path(first_seq=11, every=4) as path:
            b.send(*(b"%d" % i for i in range(50, 61)))
            got = path.receive(13)
            expect(_numbers(got) == list(range(12, 61, 4)), "scaling begins at the first multiple that was asked for")
            expect(all(m.lost == 0 for m in got), "those left out are not loss")


def carries_messages_of_all_sizes(transport: Transport) -> None:
    """One at a time. Who promises nothing may lose one, on a busy machine; then it is counted, and sent again."""
    tries = 1 if transport.promises.reliable else 4
    with bench(transport, capacity_bytes=8 << 20) as b, b.path() as path:
        due = 0
        for i, size in enumerate([0, 1, 47, 1_000, 1_500, 65_000, 70_000, 10, 300_000, 0, 1 << 20, 3]):
            for attempt in range(1, tries + 1):
                b.send(bytes([i]) * size)
                if found := path.receive(1, PATIENCE_S / tries, all_of_them=attempt == tries):
                    break
            expect(found[0].seq - found[0].lost == due, f"a message of {size} bytes comes in its turn")
            expect(found[0].data == bytes([i]) * size, f"{size} bytes arrive as they were sent")
            due = found[0].seq + 1


def keeps_channels_apart(transport: Transport) -> None:
    with bench(transport) as b, b.path() as one, b.path(every=2) as two, b.path(every=3) as three:
        b.send(*(b"%d" % i for i in range(31)))
        for path, every in ((one, 1), (two, 2), (three, 3)):
            due = list(range(0, 31, every))
            expect(_numbers(path.receive(len(due))) == due, "each channel carries its own")
            path.expect_silence()


def carries_nothing_once_closed(transport: Transport) -> None:
    with bench(transport) as b:
        path, other = b.path(), b.path()
        b.send(b"0")
        path.receive(1)
        path.sending.release()
        path.sending.close()
        b.send(b"1", b"2")
        expect(_numbers(other.receive(3)) == [0, 1, 2], "closing one channel leaves the others alone")
        path.expect_silence()
        path._receiving.close_channel(path.channel.key)
        path.reader.close()
        other.close()


def opens_again_where_it_ended(transport: Transport) -> None:
    with bench(transport) as b:
        with b.path() as path:
            b.send(b"0", b"1")
            path.receive(2)
            resume = path.mirror.next_seq
        b.send(b"2", b"3")
        with b.path(first_seq=resume) as path:
            b.send(b"4")
            expect(_numbers(path.receive(3)) == [2, 3, 4], "the next channel goes on where the last one ended")


def refuses_nobody_there(transport: Transport) -> None:
    """Sending to a port where nobody listens ends in an error or in silence; the publisher does not notice."""
    with bench(transport) as b:
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            port = probe.getsockname()[1]
        channel = Channel(
            key=next(_keys), incarnation=b.publisher.ring, depth=b.publisher.depth,
            capacity_bytes=b.publisher.capacity_bytes, first_seq=0,
        )  # fmt: skip
        if isinstance(transport, GroupTransport):
            seat = transport.admit(channel, b.publisher, _HOST, port)
            channel = msgspec.structs.replace(channel, seat=seat)
        sending = None
        try:
            sending = transport.send(channel, b.publisher, _HOST, port)
            asyncio.run(sending.ready())
        except OSError:
            pass
        b.send(b"0", b"1")
        if sending is not None:
            sending.release()
            sending.close()


def loses_nothing_under_back_pressure(transport: Transport) -> None:
    """Only of transports that promise to be reliable."""
    if not transport.promises.reliable:
        return
    count, payload = 3_000, bytes(2_000)
    with bench(transport, depth=16, capacity_bytes=1 << 16, max_wait_s=PATIENCE_S) as b, b.path(reliable=True) as path:
        failures: list[BaseException] = []

        def send() -> None:
            try:
                for _ in range(count):
                    b.publisher.writer.send(payload)
            except SlowSubscriber as exc:
                failures.append(exc)

        sender = threading.Thread(target=send)
        sender.start()
        deadline = time.monotonic() + PATIENCE_S
        # The reader stands still until the publisher has to wait for it.
        while not b.publisher.writer.counters()["waits"]:
            expect(time.monotonic() < deadline, "a reliable channel holds back a publisher whose reader stands still")
            time.sleep(_POLL_S)
        got = path.receive(count)
        sender.join()
        expect(not failures, f"the publisher waited in vain: {failures}")
        expect(_numbers(got) == list(range(count)), "everything arrives, in order and once")
        expect(all(m.lost == 0 for m in got), "nothing is said to be lost")


CHECKS: dict[str, Callable[[Transport], None]] = {
    check.__name__: check
    for check in (
        keeps_order_numbers_and_times, begins_now, begins_in_the_past, history_needs_no_further_message,
        carries_every_nth, carries_every_nth_of_the_past, carries_messages_of_all_sizes, keeps_channels_apart,
        carries_nothing_once_closed, opens_again_where_it_ended, refuses_nobody_there,
        loses_nothing_under_back_pressure,
    )
}  # fmt: skip


def check_all(transport: Transport) -> None:
    """Raises Violation."""
    for check in CHECKS.values():
        check(transport)

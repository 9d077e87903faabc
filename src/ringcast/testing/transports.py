"""What every transport has to do, as checks that any of them can run.

Both ends are in this process: a ring that is written, the transport's sending end, its receiving end on 127.0.0.1,
and a reader of the mirror. Invariant: a check says nothing about how fast a transport is; it fails only when something
is wrong or does not come within PATIENCE_S. Run them all by `check_all(transport)`, or one test per entry of `CHECKS`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable

import msgspec

from ringcast import _core
from ringcast.errors import SlowSubscriber
from ringcast.message import Message
from ringcast.testing.bench import HOST, POLL_S, Bench, Path, Violation, bench, expect, new_key, sealed
from ringcast.testing.waiting import PATIENCE_S
from ringcast.transport.interface import Channel, GroupTransport, Transport

__all__ = ["CHECKS", "Bench", "Path", "Violation", "bench", "check_all", "sealed"]


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
    tries = 1 if transport.promises.reliable else 20
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
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
        channel = Channel(
            key=new_key(), incarnation=b.publisher.ring, depth=b.publisher.depth,
            capacity_bytes=b.publisher.capacity_bytes, first_seq=0,
        )  # fmt: skip
        if isinstance(transport, GroupTransport):
            seat = transport.admit(channel, b.publisher, HOST, port)
            channel = msgspec.structs.replace(channel, seat=seat)
        sending = None
        try:
            sending = transport.send(channel, b.publisher, HOST, port)
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
            time.sleep(POLL_S)
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

"""A ring against a model of it: a list of messages, and two numbers that say how far the writer has claimed.

Whatever is sent, reserved, cut short, given up, received, pulled and attached in whatever order, the real thing does
what the model says: which messages are whole, who gets which next, and how many were lost before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ringcast import _core
from ringcast.errors import Empty, HistoryError, MessageTooLarge, NotYet, Overwritten, SlowSubscriber, WouldBlock


def padded(length: int) -> int:
    return (length + 7) & ~7


@dataclass
class Model:
    """What a ring is, without shared memory."""

    depth: int
    capacity: int
    messages: list[tuple[int, bytes]] = field(default_factory=list)  # position, bytes
    next_pos: int = 0
    claim_seq: int = 0
    claim_pos: int = 0

    @property
    def tail(self) -> int:
        return len(self.messages)

    def claim(self, length: int) -> None:
        self.claim_seq = self.tail + 1
        self.claim_pos = max(self.claim_pos, self.next_pos + padded(length))

    def complete(self, data: bytes) -> None:
        self.messages.append((self.next_pos, data))
        self.next_pos += padded(len(data))

    def holds(self, seq: int) -> bool:
        return (
            0 <= seq < self.tail
            and self.claim_seq - seq <= self.depth
            and self.claim_pos - self.messages[seq][0] <= self.capacity
        )

    def held(self, first: int = 0) -> list[int]:
        return [seq for seq in range(first, self.tail) if self.holds(seq)]


@dataclass
class Subscriber:
    reader: _core.RingReader
    expected: int
    """The number of the message it should have next."""
    reliable: bool
    may_lose: bool = False


class RingMachine(RuleBasedStateMachine):
    @initialize(depth=st.integers(1, 70), pages=st.sampled_from([1, 2, 4]))
    def begin(self, depth: int, pages: int) -> None:
        self.model = Model(depth, pages * _core.PAGE_BYTES)
        self.geometry = {"depth": depth, "capacity_bytes": self.model.capacity}
        self.writer = _core.RingWriter(**self.geometry, max_wait_s=0.0)
        self.grant = {**self.geometry, "incarnation": self.writer.incarnation}
        self.history = _core.RingHistory()
        self.history.attach(self.writer.ring_fd, **self.grant)
        self.subscribers: list[Subscriber] = []
        self.lent: list[_core.Message] = []
        self.reservation: _core.Reservation | None = None

    def teardown(self) -> None:
        for subscriber in getattr(self, "subscribers", []):
            subscriber.reader.close()

    # ---------------------------------------------------------------- writing

    def content(self, length: int, offset: int = 0) -> bytes:
        return bytes((self.model.tail + offset + i) % 251 for i in range(length))

    def passed_over(self) -> None:
        for subscriber in self.subscribers:
            subscriber.may_lose = True

    lengths = st.one_of(st.integers(0, 64), st.integers(0, 4200), st.just(4096), st.integers(0, 17_000))

    @precondition(lambda self: self.reservation is None)
    @rule(length=lengths)
    def send(self, length: int) -> None:
        data = self.content(length)
        if length > self.model.capacity:
            with pytest.raises(MessageTooLarge):
                self.writer.send(data)
            return
        try:
            assert self.writer.send(data) == self.model.tail
        except SlowSubscriber:
            self.passed_over()
            return
        self.model.claim(length)
        self.model.complete(data)

    @precondition(lambda self: self.reservation is None)
    @rule(sizes=st.lists(st.integers(0, 600), min_size=1, max_size=100))
    def send_many(self, sizes: list[int]) -> None:
        batch = [self.content(size, i) for i, size in enumerate(sizes)]
        before = self.model.tail
        try:
            assert self.writer.send_many(batch) == before + len(batch) - 1
        except SlowSubscriber:
            self.passed_over()
        for data in batch[: self.writer.next_seq - before]:
            self.model.claim(len(data))
            self.model.complete(data)

    @precondition(lambda self: self.reservation is None)
    @rule(length=st.integers(0, 17_000))
    def reserve(self, length: int) -> None:
        if length > self.model.capacity:
            with pytest.raises(MessageTooLarge):
                self.writer.reserve(length)
            return
        try:
            self.reservation = self.writer.reserve(length)
        except SlowSubscriber:
            self.passed_over()
            return
        with memoryview(self.reservation) as room:
            room[:] = b"\xee" * length  # over whatever was there
        self.model.claim(length)

    @precondition(lambda self: self.reservation is not None)
    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        assert self.reservation is not None
        length = int(len(self.reservation) * share)
        data = self.content(length)
        with memoryview(self.reservation) as room:
            room[:length] = data
        assert self.reservation.commit(length) == self.model.tail
        self.model.complete(data)
        self.reservation = None

    @precondition(lambda self: self.reservation is not None)
    @rule()
    def cancel(self) -> None:
        assert self.reservation is not None
        self.reservation.cancel()
        self.reservation = None

    # ---------------------------------------------------------------- reading

    @precondition(lambda self: len(self.subscribers) < 8)
    @rule(start=st.one_of(st.sampled_from(["new", "latest", "earliest"]), st.integers(0, 400)), reliable=st.booleans())
    def attach(self, start: str | int, reliable: bool) -> None:
        tail, held = self.model.tail, self.model.held()
        native, expected = {
            "new": (_core.START_NEW, tail),
            "latest": (_core.START_LATEST, tail - 1 if held else tail),
            "earliest": (_core.START_EARLIEST, held[0] if held else tail),
        }.get(str(start), (start, start))
        reader = _core.RingReader(reliable=reliable)
        reader.attach(self.writer.ring_fd, self.writer.bell_fd, **self.grant, start=int(native))
        # What is gone when a reliable reader comes is no promise broken.
        missing = any(not self.model.holds(seq) for seq in range(int(expected), tail))
        self.subscribers.append(Subscriber(reader, int(expected), reliable, may_lose=missing))

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data())
    def detach(self, data: Any) -> None:
        self.subscribers.pop(data.draw(st.integers(0, len(self.subscribers) - 1))).reader.close()

    def check(self, subscriber: Subscriber, message: _core.Message) -> None:
        seq = self.model.held(subscriber.expected)[0]
        assert message.seq == seq
        assert bytes(message.data) == self.model.messages[seq][1]
        assert message.lost == seq - subscriber.expected
        if subscriber.reliable and not subscriber.may_lose:
            assert message.lost == 0
        subscriber.expected = seq + 1

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), copy=st.booleans())
    def receive(self, data: Any, copy: bool) -> None:
        subscriber = self.subscribers[data.draw(st.integers(0, len(self.subscribers) - 1))]
        if not self.model.held(subscriber.expected):
            with pytest.raises(WouldBlock):
                subscriber.reader.recv_nowait()
            with pytest.raises(TimeoutError):
                subscriber.reader.recv(timeout=0)
            return
        message = subscriber.reader.recv(copy=copy)
        self.check(subscriber, message)
        if not copy:
            self.lent.append(message)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), n=st.integers(1, 100))
    def receive_many(self, data: Any, n: int) -> None:
        subscriber = self.subscribers[data.draw(st.integers(0, len(self.subscribers) - 1))]
        waiting = self.model.held(subscriber.expected)
        if not waiting:
            with pytest.raises(TimeoutError):
                subscriber.reader.recv_many(n, timeout=0)
            return
        messages = subscriber.reader.recv_many(n)
        assert len(messages) == min(n, len(waiting))
        for message in messages:
            self.check(subscriber, message)

    # ---------------------------------------------------------------- pulling

    @rule(back=st.integers(0, 80))
    def latest(self, back: int) -> None:
        seq = self.model.tail - 1 - back
        if self.model.holds(seq):
            message = self.history.latest(back)
            assert (message.seq, message.data) == (seq, self.model.messages[seq][1])
            return
        with pytest.raises(Overwritten if seq >= 0 and back > 0 else Empty if back == 0 else HistoryError):
            self.history.latest(back)

    @rule(seq=st.integers(0, 500))
    def at(self, seq: int) -> None:
        if self.model.holds(seq):
            message = self.history.at(seq)
            assert (message.seq, message.data) == (seq, self.model.messages[seq][1])
            return
        with pytest.raises(Empty if self.model.tail == 0 else NotYet if seq >= self.model.tail else Overwritten):
            self.history.at(seq)

    @rule(first=st.integers(0, 500), count=st.integers(0, 100))
    def range(self, first: int, count: int) -> None:
        expected, seqs = first, [seq for seq in self.model.held(first) if seq <= first + count]
        messages = self.history.range(first, first + count)
        assert [m.seq for m in messages] == seqs
        for message in messages:
            assert message.data == self.model.messages[message.seq][1]
            assert message.lost == message.seq - expected
            expected = message.seq + 1

    # ---------------------------------------------------------------- always

    @invariant()
    def bounds_are_the_models(self) -> None:
        if not hasattr(self, "model"):
            return
        held, tail = self.model.held(), self.model.tail
        assert held == list(range(tail - len(held), tail))  # no holes
        assert self.history.bounds() == (held[0] if held else tail, tail - 1)
        assert self.writer.next_seq == tail

    @invariant()
    def lent_messages_know_whether_they_are_whole(self) -> None:
        for message in getattr(self, "lent", []):
            assert message.valid == self.model.holds(message.seq)
            if message.valid:
                assert bytes(message.data) == self.model.messages[message.seq][1]


TestRingModel = RingMachine.TestCase
TestRingModel.settings = settings(
    derandomize=True, database=None, max_examples=150, stateful_step_count=60, deadline=None
)

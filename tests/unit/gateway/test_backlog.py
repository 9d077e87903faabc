"""What waits for a page: short, in order, and with `lost` that adds up whatever is left out."""

from __future__ import annotations

import random

import pytest

from ringcast.errors import BadMessage
from ringcast.gateway.backlog import BURST, BURST_S, LOWER_S, QUEUED, QUIET_S, Backlog, Entry, Stream


def made(*streams: Stream, most_bytes: int = 10**6) -> Backlog:
    backlog = Backlog(most_bytes)
    for stream in streams:
        backlog.add(stream)
    return backlog


def entry(seq: int, source: int = 0, size: int = 1, discardable: bool = False, lost: int = 0) -> Entry:
    return Entry(source, seq, bytes(size), discardable=discardable, lost=lost)


class Reader:
    """A page that checks that nothing is missing which is not in `lost`."""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self.last: dict[tuple[int, int], int] = {}
        self.seen: list[int] = []
        self.lost = 0
        self.numbers: dict[int, int] = {}

    def read(self, now_s: float, most: int = 10**9) -> int:
        for count in range(most):
            found = self.backlog.take(now_s)
            if found is None:
                return count
            stream, message = found
            key = stream.number, message.source
            assert message.seq == self.last.get(key, -1) + 1 + message.lost
            self.last[key] = message.seq
            self.seen.append(message.seq)
            self.lost += message.lost
            stream.note_sent(message, now_s)
            number = self.numbers[stream.number] = self.numbers.get(stream.number, 0) + 1
            stream.taken(number, now_s)
        return most


def test_a_page_that_keeps_up_gets_everything() -> None:
    stream = Stream(1)
    backlog = made(stream)
    reader = Reader(backlog)
    for seq in range(1000):
        assert not backlog.push(stream, entry(seq), seq / 100)
        reader.read(seq / 100)
    assert reader.seen == list(range(1000))
    assert stream.left_out == 0


def test_a_page_that_is_behind_gets_the_newest_and_a_count() -> None:
    stream = Stream(1)
    backlog = made(stream)
    for seq in range(200):
        backlog.push(stream, entry(seq), seq / 10)
    assert len(stream.queue) <= QUEUED + 1
    reader = Reader(backlog)
    reader.read(100.0)
    assert reader.seen[-1] == 199
    assert len(reader.seen) + stream.left_out == 200
    assert reader.lost == stream.left_out


def test_a_burst_is_not_taken_for_being_behind() -> None:
    stream = Stream(1)
    backlog = made(stream)
    for seq in range(BURST):
        backlog.push(stream, entry(seq), BURST_S / 2)
    assert len(stream.queue) == BURST
    backlog.push(stream, entry(BURST), BURST_S / 2)
    assert len(stream.queue) == BURST


def test_fewer_for_as_long_as_it_is_behind() -> None:
    stream = Stream(1)
    backlog = made(stream)
    reader = Reader(backlog)
    now_s, seq, most = 0.0, 0, 1
    for _ in range(3000):  # a hundred a second come, ten a second are taken
        now_s += 0.01
        backlog.push(stream, entry(seq), now_s)
        seq += 1
        most = max(most, stream.every)
        if seq % 10 == 0:
            reader.read(now_s, 1)
    assert most >= 8
    spaced = [later - sooner for sooner, later in zip(reader.seen[-20:], reader.seen[-19:], strict=False)]
    assert max(spaced) <= 64  # regularly, and not in bursts
    for _ in range(6000):
        now_s += 0.01
        backlog.push(stream, entry(seq), now_s)
        seq += 1
        reader.read(now_s)
    assert stream.every == 1


def test_trying_again_too_soon_is_punished() -> None:
    stream = Stream(1)
    backlog = made(stream)
    reader = Reader(backlog)
    now_s, changes = 0.0, 0
    for seq in range(20_000):
        now_s += 0.01
        before = stream.every
        backlog.push(stream, entry(seq), now_s)
        changes += before != stream.every
        if seq % 5 == 0:
            reader.read(now_s, 1)
    assert changes < 200 / LOWER_S  # 200 s


def test_discardable_ones_go_first() -> None:
    stream = Stream(1)
    backlog = made(stream)
    for seq in range(40):
        backlog.push(stream, entry(seq, discardable=seq % 4 != 0), seq / 10)
    reader = Reader(backlog)
    reader.read(10.0)
    assert [seq for seq in range(0, 40, 4) if seq not in reader.seen] == []
    assert stream.discarded == stream.left_out == 40 - len(reader.seen)
    assert stream.every == 1


def test_how_it_ended_is_told_when_nothing_newer_comes() -> None:
    stream = Stream(1)
    stream.every = 64
    backlog = made(stream)
    for seq in range(11):
        backlog.push(stream, entry(seq), 1.0)
    reader = Reader(backlog)
    reader.read(1.0)
    assert reader.seen == [0]
    reader.read(1.0 + 2 * QUIET_S)
    assert reader.seen == [0, 10]
    assert reader.lost == stream.left_out == 9


def test_important_streams_go_first_and_others_are_left_out_first() -> None:
    voice, video = Stream(1, priority=4), Stream(2)
    backlog = made(voice, video, most_bytes=10_000)
    for seq in range(20):
        backlog.push(video, entry(seq, size=2_000), 0.0)
        if seq < 10:
            backlog.push(voice, entry(seq, size=100), 0.0)
    assert backlog.bytes <= 10_000
    assert voice.left_out == 0
    assert video.left_out > 0
    first = backlog.take(0.0)
    assert first is not None
    assert first[0] is voice


def test_one_message_longer_than_the_bound_passes_alone() -> None:
    stream = Stream(1)
    backlog = made(stream, most_bytes=100)
    backlog.push(stream, entry(0, size=1000), 0.0)
    assert len(stream.queue) == 1
    backlog.push(stream, entry(1, size=1000), 0.0)
    assert [one.seq for one in stream.queue] == [1]
    Reader(backlog).backlog.take(0.0)


def test_a_reliable_stream_says_when_it_is_full_and_sends_again() -> None:
    stream = Stream(1, reliable=True)
    backlog = made(stream)
    seq = 0
    while backlog.has_room(stream):
        backlog.push(stream, entry(seq), float(seq))
        seq += 1
    assert seq == QUEUED
    for _ in range(5):
        found = backlog.take(100.0)
        assert found is not None
        stream.note_sent(found[1], 100.0)
    stream.resume(2)
    assert [one.seq for one in stream.queue] == list(range(2, QUEUED))
    assert stream.left_out == 0


def test_what_did_not_arrive_before_a_page_was_back_is_lost() -> None:
    stream = Stream(1)
    backlog = made(stream)
    for seq in range(8):
        backlog.push(stream, entry(seq), 0.0)
    for _ in range(5):
        found = backlog.take(0.0)
        assert found is not None
        stream.note_sent(found[1], 0.0)
    stream.resume(2)
    found = backlog.take(0.0)
    assert found is not None
    assert (found[1].seq, found[1].lost, stream.left_out) == (5, 3, 3)
    with pytest.raises(BadMessage):
        stream.resume(2**31)


@pytest.mark.parametrize("seed", range(20))
def test_at_random_it_always_adds_up(seed: int) -> None:
    chance = random.Random(seed)
    streams = [Stream(number, priority=chance.randrange(3)) for number in range(3)]
    backlog = made(*streams, most_bytes=20_000)
    reader = Reader(backlog)
    now_s = 0.0
    following = {(stream.number, source): 0 for stream in streams for source in range(3)}
    due = 0
    for _ in range(3000):
        now_s += chance.expovariate(100)
        stream, source = chance.choice(streams), chance.randrange(3)
        gap = chance.randrange(3) if chance.random() < 0.1 else 0
        seq = following[stream.number, source] + gap
        following[stream.number, source] = seq + 1
        due += 1 + gap
        backlog.push(stream, entry(seq, source, chance.randrange(1, 3000), chance.random() < 0.3, lost=gap), now_s)
        assert backlog.bytes <= 20_000
        if chance.random() < 0.2:
            reader.read(now_s, chance.randrange(4))
    reader.read(now_s)
    for _ in range(10):
        now_s += 10.0
        reader.read(now_s)
    # What is still missing are messages whose publisher sent nothing after them.
    missing = sum(sum(stream._missed.values()) for stream in streams)
    assert len(reader.seen) + reader.lost + missing == due

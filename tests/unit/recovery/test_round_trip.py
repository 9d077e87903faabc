"""The greatest round trip of a group is measured: probes in heartbeats, answers in naks and by lot, peak with decay."""

from __future__ import annotations

import itertools
import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from recovery_network import KEY, MS, Network, kind

from ringcast import _core

NAK, HEARTBEAT, ANSWER = 3, 5, 8
LEAST_NS, MOST_NS = MS // 10, 1_000 * MS


def sender(**tuning: int) -> _core.Sending:
    return _core.Sending(["ordering", "nak"], lambda *_: None, lambda: 0, key=KEY, tuning=tuning)


def receiver(me: int = 0, **tuning: int) -> _core.Receiving:
    return _core.Receiving(["ordering", "nak"], key=KEY, me=me, seed=me + 1, tuning=tuning)


def heartbeats(actions: list) -> list[tuple[int, int, int]]:
    """(probe, GRTT in us, answers asked for) of each that was sent."""
    return [struct.unpack_from("<QII", action[3], 32) for action in actions if action[3][3] == HEARTBEAT]


def heartbeat(probe_ns: int, *, grtt_us: int = 0, answers: int = 0, following: int = 0) -> bytes:
    head = struct.pack("<2sBBIQ", b"RC", 2, HEARTBEAT, 0xFFFFFFFF, KEY)
    return head + struct.pack("<QQQII", 0, following, probe_ns, grtt_us, answers)


def answer(probe_ns: int, held_us: int = 0, sender: int = 0) -> bytes:
    return struct.pack("<2sBBIQQII", b"RC", 2, ANSWER, sender, KEY, probe_ns, held_us, 0)


def probed(stack: _core.Sending, now_ns: int) -> int:
    """A message, and the probe that follows it."""
    stack.on_message(now_ns // MS, now_ns)
    ((probe, _, answers),) = heartbeats(stack.tick(now_ns + 5 * MS))
    assert answers > 0
    return probe


def test_the_parameter_is_where_it_begins() -> None:
    assert sender(grtt_ns=7 * MS).counters()["grtt_ns"] == 7 * MS
    assert receiver(grtt_ns=7 * MS).counters()["grtt_ns"] == 7 * MS


def test_a_slower_receiver_raises_it_at_once() -> None:
    stack = sender(grtt_ns=20 * MS)
    probe = probed(stack, 1_000 * MS)
    stack.on_datagram(answer(probe), probe + 3 * MS)
    assert stack.counters()["grtt_ns"] == 20 * MS
    stack.on_datagram(answer(probe, sender=1), probe + 60 * MS)
    assert stack.counters()["grtt_ns"] == 60 * MS


def test_what_an_answer_was_held_back_does_not_count() -> None:
    stack = sender(grtt_ns=1 * MS)
    probe = probed(stack, 1_000 * MS)
    stack.on_datagram(answer(probe, held_us=40_000), probe + 44 * MS)
    assert stack.counters()["grtt_ns"] == 4 * MS


def rounds(stack: _core.Sending, first: int, *trips_ms: int) -> list[int]:
    """What the round trip is after each round in which somebody answered so late; in milliseconds."""
    seen = []
    for second, trip_ms in enumerate(trips_ms, first):
        probe = probed(stack, second * 1_100 * MS)
        stack.on_datagram(answer(probe), probe + trip_ms * MS)
        seen.append(stack.counters()["grtt_ns"] // MS)
    return seen


def test_it_falls_the_faster_the_more_rounds_stay_below() -> None:
    stack = sender(grtt_ns=100 * MS)
    seen = rounds(stack, 1, *[10] * 12)
    assert seen == sorted(seen, reverse=True)
    assert seen[1] > 80, "one fast round is no reason to believe that the slow ones have gone"
    assert seen[6] < 25, "a queue that was emptied is forgotten within seconds"
    assert seen[-1] == 10


def test_a_slow_round_between_fast_ones_makes_it_fall_slowly_again() -> None:
    stack = sender(grtt_ns=100 * MS)
    rounds(stack, 1, 10, 10, 10, 10)
    again = rounds(stack, 5, 90, 10, 10)
    assert again[0] == 90
    assert again[-1] > 75


def test_silence_changes_nothing() -> None:
    stack = sender(grtt_ns=100 * MS)
    for second in range(1, 20):
        probed(stack, second * 1_100 * MS)
    assert stack.counters()["grtt_ns"] == 100 * MS


def test_a_steady_stream_is_probed_once_a_second_although_no_heartbeat_is_due() -> None:
    stack = sender()
    asked = []
    for ms in range(1, 5_000):
        stack.on_message(ms, ms * MS)
        if stack.wake_at_ns <= ms * MS:
            asked += [ms for _, _, answers in heartbeats(stack.tick(ms * MS)) if answers]
    assert len(asked) == 5
    assert all(950 <= b - a <= 1_100 for a, b in itertools.pairwise(asked))


def test_an_idle_stream_asks_nobody() -> None:
    stack = sender()
    probed(stack, 1_000 * MS)
    for second in range(2, 20):
        assert all(answers == 0 for _, _, answers in heartbeats(stack.tick(second * 1_000 * MS)))


def test_whoever_asks_for_packets_answers_too() -> None:
    stack = receiver()
    stack.on_datagram(heartbeat(123_456, following=3), 1_000 * MS)
    (nak,) = [a[3] for a in stack.tick(1_004 * MS) if a[0] == "send"]
    assert nak[3] == NAK
    held_us, probe = struct.unpack_from("<IQ", nak, 20)
    assert (probe, held_us) == (123_456, 4_000)


def test_of_a_large_group_few_answer_and_in_turn() -> None:
    group = [receiver(i, group=200) for i in range(200)]
    rounds = [
        sum(kind(a[3]) == "answer" for stack in group for a in stack.on_datagram(heartbeat(at, answers=4), at))
        for at in range(1_000 * MS, 51_000 * MS, 1_000 * MS)
    ]
    assert 2.5 < sum(rounds) / len(rounds) < 5.5
    assert max(rounds) < 15
    assert sum(stack.counters()["answers"] > 0 for stack in group) > 100


def test_everybody_of_a_small_group_answers() -> None:
    sent = receiver(group=3).on_datagram(heartbeat(5, answers=4), 1_000 * MS)
    assert [(a[1], kind(a[3])) for a in sent] == [("publisher", "answer")]


def test_receivers_wait_as_long_as_the_sender_says() -> None:
    stack = receiver(grtt_ns=1 * MS)
    stack.on_datagram(heartbeat(5, grtt_us=6_000), 0)
    assert stack.counters()["grtt_ns"] == 6 * MS


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    said=st.lists(
        st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 3), st.integers(0, 2**32 - 1), st.integers(0, 5_000)),
        max_size=40,
    ),
    start_ms=st.integers(1, 500),
)
def test_no_answer_is_believed_further_than_it_can_be_true(said: list[tuple[int, int, int]], start_ms: int) -> None:
    """Small numbers stand for probes that were really sent."""
    stack = sender(grtt_ns=start_ms * MS)
    probes, now = [], 1_000 * MS
    for number, held_us, after_ms in said:
        now += 1_100 * MS
        probes.append(probed(stack, now))
        before, known = stack.counters()["grtt_ns"], number < len(probes)
        stack.on_datagram(answer(probes[number] if known else number, held_us), now + 5 * MS + after_ms * MS)
        after = stack.counters()["grtt_ns"]
        assert LEAST_NS <= after <= max(MOST_NS, start_ms * MS)
        assert after <= 8 * before, "one round raises it eightfold at most"
        assert known or after == before
        now += after_ms * MS
    counters = stack.counters()
    assert counters["answers"] + counters["answers_absurd"] == len(said)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=20))
def test_no_heartbeat_makes_receivers_wait_for_ever_or_shout(said: list[tuple[int, int]]) -> None:
    stack = receiver(grtt_ns=1 * MS, group=100)
    for i, (grtt_us, answers) in enumerate(said):
        stack.on_datagram(heartbeat(7 + i, grtt_us=grtt_us, answers=answers), 1_000 * MS + i * MS)
        assert LEAST_NS <= stack.counters()["grtt_ns"] <= MOST_NS
    assert stack.counters()["answers"] <= 1, "heartbeats a millisecond apart"


def test_a_group_across_a_slow_network_learns_its_round_trip() -> None:
    """Started as for a local network: the value is found, and few naks are then sent for one loss."""
    far = 30 * MS
    network = Network(["ordering", "nak"], receivers=20, fate=lambda _kind, _datagram: [far])
    seq = 0
    for seq in range(300):
        network.send(seq, b"x")
        network.run(network.now_ns + 20 * MS)
    assert 2 * far <= network.sending.counters()["grtt_ns"] <= 2.2 * far
    assert {stack.counters()["grtt_ns"] for stack in network.receiving} == {network.sending.counters()["grtt_ns"]}
    before = network.wire.count("nak")
    network.fate = lambda _kind, _datagram: []
    network.send(seq + 1, b"lost by all")
    network.fate = lambda _kind, _datagram: [far]
    network.run(network.now_ns + 2_000 * MS)
    assert network.wire.count("nak") - before < 10
    assert all(len(delivered) == seq + 2 for delivered in network.delivered)


def test_a_blackout_longer_than_many_round_trips_is_survived() -> None:
    """A measured round trip of a tenth of a millisecond must not use all tries up in a tenth of a second."""
    network = Network(["ordering", "nak"], receivers=2, multicast=False, fate=lambda _kind, _datagram: [MS // 20])
    for seq in range(2_000):
        network.send(seq, b"x")
        network.run(network.now_ns + 10 * MS)
    assert network.sending.counters()["grtt_ns"] < MS // 3
    network.fate = lambda name, _datagram: [] if name in ("data", "nak") else [MS // 20]
    network.send(2_000, b"x")
    network.run(network.now_ns + 800 * MS)
    network.fate = lambda _kind, _datagram: [MS // 20]
    network.run(network.now_ns + 2_000 * MS)
    assert [len(delivered) for delivered in network.delivered] == [2_001, 2_001]
    assert not any(network.lost)

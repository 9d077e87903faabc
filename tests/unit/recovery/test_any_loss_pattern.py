"""For any pattern of loss, repetition and reordering of anything, what is delivered is a duplicate-free part of what
was sent, in order where order was promised, and all of it where that was promised."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recovery_network import KEY, MS, Network, datagrams, dice, place

from ringcast import _core

STACKS = {
    "multicast": [],
    "ordering": ["ordering"],
    "nak": ["nak"],
    "nak, ordered": ["ordering", "nak"],
    "lateral": ["lateral"],
    "lateral, ordered": ["ordering", "lateral"],
    "parity": ["parity"],
    "ack": ["ordering", "ack"],
    "lateral+nak": ["ordering", "lateral", "nak"],
    "parity+nak": ["ordering", "parity", "nak"],
    "everything": ["ordering", "parity", "lateral", "nak", "ack"],
}
PROMISES = {name: (complete, ordered) for name, complete, ordered in _core.recovery_stages()}

scripts = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "loss": st.sampled_from([0.0, 0.02, 0.1, 0.3]),
        "repeat": st.sampled_from([0.0, 0.2]),
        "reorder": st.sampled_from([0.0, 0.2]),
        "burst": st.sampled_from([1, 4]),
    }
)


@pytest.mark.parametrize("name", STACKS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    script=scripts,
    sizes=st.lists(st.sampled_from([0, 1, 12, 100, 101, 350]), min_size=1, max_size=40),
    every=st.sampled_from([1, 3]),
    gap_ms=st.sampled_from([0, 1, 10]),
    join=st.integers(0, 20),
    r=st.sampled_from([1, 3, 8]),
    stagger=st.sampled_from([1, 4]),
    multicast=st.booleans(),
    cells=st.sampled_from([4, 1024]),
)
def test_what_is_delivered_was_sent(
    name: str, script: dict, sizes: list[int], every: int, gap_ms: int, join: int, r: int, stagger: int,
    multicast: bool, cells: int,
) -> None:  # fmt: skip
    stages = STACKS[name]
    first = 30
    joins = {2: first + join * every}
    network = Network(
        stages, every=every, first_seq=first, joins=joins, seed=script["seed"], fate=dice(**script),
        multicast=multicast, cells=cells,
        tuning={"r": r, "c": 2, "stagger": stagger, "tries": 64, "ack_tries": 64, "patience_ns": 8 * MS},
    )  # fmt: skip
    for i, size in enumerate(sizes):
        network.send(first + i * every, bytes([i % 251]) * size)
        network.run(network.now_ns + gap_ms * MS)
    network.run(network.now_ns + 60_000 * MS)
    sent = [packet for seq in sorted(network.ring) for packet in network.ring[seq]]
    for i, delivered in enumerate(network.delivered):
        mine = [packet for packet in sent if place(packet)[0] >= joins.get(i, first)]
        assert set(delivered) <= set(mine)
        assert len(set(delivered)) == len(delivered)
        numbers = [place(packet)[0] for packet in delivered]
        if any(PROMISES[stage][1] for stage in stages):
            assert numbers == sorted(numbers)
        if any(PROMISES[stage][0] for stage in stages):
            assert not network.lost[i]
            assert sorted(delivered, key=place) == mine
        assert not network.receiving[i].counters()["malformed"]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(script=scripts, count=st.integers(5, 60), keep=st.integers(1, 8))
def test_what_the_ring_no_longer_has_is_skipped_and_reported(script: dict, count: int, keep: int) -> None:
    network = Network(["ordering", "nak"], fate=dice(**script), keep=keep, tuning={"tries": 4})
    for seq in range(count):
        network.send(seq, b"x" * 12)
        network.run(network.now_ns + MS)
    network.fate = lambda _kind, _datagram: [MS]
    network.run(network.now_ns + 60_000 * MS)
    for delivered, lost, stack in zip(network.delivered, network.lost, network.receiving, strict=True):
        got = [place(packet)[0] for packet in delivered]
        gone = [seq for first, messages in lost for seq in range(first, first + messages)]
        assert sorted(got + gone) == list(range(count)), "each message is delivered or reported, once"
        assert stack.base_seq == stack.end_seq == count


@settings(max_examples=30, deadline=None, derandomize=True)
@given(script=scripts, name=st.sampled_from(sorted(STACKS)))
def test_a_restarted_publisher_is_another_channel(script: dict, name: str) -> None:
    network = Network(STACKS[name], fate=dice(**script), receivers=1)
    old = [packet for seq in range(20) for packet in datagrams(seq, b"old", key=KEY + 1)]
    for seq in range(20):
        network.send(seq, b"new")
        network._do(0, network.receiving[0].on_datagram(old[seq], network.now_ns))
        network.run(network.now_ns + MS)
    network.run(network.now_ns + 10_000 * MS)
    assert not set(network.delivered[0]) & set(old)
    assert network.receiving[0].counters()["stranger"] == 20


@settings(max_examples=30, deadline=None, derandomize=True)
@given(script=scripts, changes=st.lists(st.sampled_from([(1, 1), (2, 4), (8, 1), (16, 8)]), min_size=1, max_size=6))
def test_codes_can_be_changed_while_running(script: dict, changes: list[tuple[int, int]]) -> None:
    network = Network(["ordering", "parity", "lateral", "nak"], fate=dice(**script), tuning={"tries": 64})
    seq = 0
    for r, stagger in changes:
        for stack in (network.sending, *network.receiving):
            stack.retune({"r": r, "stagger": stagger, "c": 1 + r % 3})
        for _ in range(10):
            network.send(seq, bytes([seq % 251]) * 12)
            seq += 1
            network.run(network.now_ns + 2 * MS)
    network.run(network.now_ns + 60_000 * MS)
    for delivered in network.delivered:
        assert [place(packet)[0] for packet in delivered] == list(range(seq))


@pytest.mark.parametrize("name", sorted(STACKS))
def test_packets_that_come_twice_or_overtake_each_other(name: str) -> None:
    """As `lossy` makes them, at every receiver: nothing is delivered twice, and what promises order keeps it."""
    stages = STACKS[name]
    network = Network(stages, tuning={"patience_ns": 50 * MS})
    for i, stack in enumerate(network.receiving):
        stack.lose(0.0, duplicate=0.3, overtake=0.3, seed=i)
    for seq in range(200):
        network.send(seq, bytes([seq % 251]) * 12)
        network.run(network.now_ns + MS)
    network.run(network.now_ns + 10_000 * MS)
    for delivered, lost, stack in zip(network.delivered, network.lost, network.receiving, strict=True):
        numbers = [place(packet)[0] for packet in delivered]
        assert sorted(numbers) == list(range(200)), "nothing was lost, only mixed"
        assert not lost
        assert stack.counters()["duplicates"] > 20
        if any(PROMISES[stage][1] for stage in stages):
            assert numbers == sorted(numbers)


@pytest.mark.parametrize("name", [name for name in sorted(STACKS) if any(PROMISES[s][0] for s in STACKS[name])])
@pytest.mark.parametrize(
    "kinds", ["data", "repair", "nak", "confirm", "heartbeat", "ack", "answer", "data nak heartbeat"]
)
def test_the_first_of_each_kind_are_lost(name: str, kinds: str) -> None:
    """Repairs, requests and heartbeats as well as data: eight of each, wherever they go."""
    left = dict.fromkeys(kinds.split(), 8)

    def fate(kind: str, _datagram: bytes) -> list[int]:
        if left.get(kind, 0) == 0:
            return [MS // 5]
        left[kind] -= 1
        return []

    network = Network(STACKS[name], receivers=2, fate=fate, tuning={"tries": 64, "ack_tries": 64})
    for seq in range(30):
        network.send(seq, b"x")
        network.run(network.now_ns + MS)
    network.run(network.now_ns + 60_000 * MS)
    for delivered, lost in zip(network.delivered, network.lost, strict=True):
        assert sorted(place(packet)[0] for packet in delivered) == list(range(30))
        assert not lost


@pytest.mark.parametrize("name", sorted(STACKS))
def test_numbers_near_their_end(name: str) -> None:
    """Numbers have 63 bits; the last of them are as good as the first, and the one after them is none."""
    end = 1 << 63
    network = Network(
        STACKS[name], fate=dice(3, 0.1, 0.1, 0.1), first_seq=end - 60, tuning={"patience_ns": 60_000 * MS}
    )
    for seq in range(end - 60, end):
        network.send(seq, b"x")
        network.run(network.now_ns + MS)
    network.run(network.now_ns + 20_000 * MS)
    malformed = network.receiving[0].counters()["malformed"]
    network._do(0, network.receiving[0].on_datagram(datagrams(end, b"wrapped")[0], network.now_ns))
    assert network.receiving[0].counters()["malformed"] == malformed + 1
    complete = any(PROMISES[stage][0] for stage in STACKS[name])
    for delivered in network.delivered:
        numbers = {place(packet)[0] for packet in delivered}
        assert len(numbers) == len(delivered)
        assert numbers == set(range(end - 60, end)) if complete else numbers <= set(range(end - 60, end))

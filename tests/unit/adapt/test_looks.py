"""What several looks at a node's counters say together."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest
from bursts import bursts

from ringcast.adapt.looks import LONGEST_BURST, Look, between, by_key, differ, met, rate, taken, total, usual_rate
from ringcast.control.between.choosing import Counted


def look(messages: int, elapsed_s: float = 1.0, skipped: int = 0) -> Look:
    return Look(elapsed_s, messages, 100 * messages, messages + skipped, skipped, skipped, 1)


def test_together_they_are_one_longer_look() -> None:
    both = total([look(100, 1.0), look(20, 0.2)])
    assert (both.messages, both.elapsed_s) == (120, pytest.approx(1.2))
    assert rate(both) == pytest.approx(100.0)


def test_a_pause_during_one_of_them_leaves_the_rate_that_most_have() -> None:
    assert usual_rate([look(100), look(100), look(20), look(100)]) == 100.0
    assert usual_rate([look(100), look(30, 0.3), look(0)]) == 100.0


def test_few_messages_say_no_usual_rate() -> None:
    assert usual_rate([]) == 0.0
    assert usual_rate([look(1), look(0), look(1)]) == 0.0


def test_chance_is_no_other_environment_and_many_losses_are() -> None:
    assert not differ(look(1_000, 10.0, 10), look(100, 1.0, 3))
    assert differ(look(1_000, 10.0, 10), look(100, 1.0, 20))
    assert differ(look(1_000, 10.0), look(200))
    assert not differ(look(1_000, 10.0), look(50)), "a stream may have stopped"


def counted(messages: int, skipped: int, gaps: int, packets: int) -> Counted:
    """By a transport that repairs nothing."""
    return Counted(7, "udp", messages - skipped, 100 * messages, skipped, skipped, gaps, packets=packets)


NOTHING_YET = counted(0, 0, 0, 0)


@pytest.mark.parametrize("packets", [1, 2, 4])
def test_bursts_are_told_in_packets_whatever_is_between_messages(packets: int) -> None:
    found = met(1.0, NOTHING_YET, counted(60_000, *bursts(0.05, 4.0, packets, 60_000)))
    assert found is not None
    assert found.burst == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("packets", [1, 2, 4])
def test_losses_that_chance_puts_in_a_row_are_no_burst(packets: int) -> None:
    chance, seen, no_burst = random.Random(3), 3_000, 0
    for _ in range(50):
        lost = [chance.random() < 0.03 for _ in range(seen)]
        skipped, gaps = sum(lost), sum(b and not a for a, b in itertools.pairwise([False, *lost]))
        found = met(1.0, NOTHING_YET, counted(seen, skipped, gaps, round(0.97 * packets * seen)))
        assert found is not None
        assert found.burst is not None
        no_burst += found.burst < 1.1
    assert no_burst >= 45


@pytest.mark.parametrize(("gaps", "packets"), [(0, 0), (0, 900), (1, 2**62)])
def test_losses_without_a_beginning_and_absurd_counts_are_the_longest_burst(gaps: int, packets: int) -> None:
    """A run that is noticed in two looks has its gap in the first one; another node may say anything."""
    found = met(1.0, NOTHING_YET, counted(2_000, 1_000, gaps, packets))
    assert found is not None
    assert found.burst == LONGEST_BURST


def test_what_is_lost_later_than_its_gap_was_counted_has_a_gap() -> None:
    before, after = by_key([counted(100, 4, 2, 0)]), by_key([msgspec.structs.replace(counted(200, 4, 2, 0), lost=7)])
    assert between(1.0, before, after).gaps == 1


def test_of_two_channels_alike_the_one_that_is_retuned_counts_on() -> None:
    """What the other one had counted is not taken for what it had."""

    def come(transport: str, messages: int) -> Counted:
        return Counted(7, transport, messages, 100 * messages, 0, 0, 0)

    before = by_key([come("parity:r=4,c=3", 900), come("parity:r=8,c=2", 500)])
    after = by_key([come("parity:r=4,c=3", 1_000), come("parity:r=16,c=1", 600)])
    assert sorted((one.transport, one.rate_hz) for one in taken(1.0, before, after)) == [
        ("parity:r=16,c=1", 100.0), ("parity:r=4,c=3", 100.0),
    ]  # fmt: skip

"""More and less of a range, by what becomes of messages."""

from __future__ import annotations

import random

from ringcast.adapt.fidelity import CLIMB_AFTER, FALL_AFTER, MOST_PATIENCE, SETTLE, Follower, Seen

RATES = [30.0, 20.0, 13.0, 9.0, 6.0, 4.0, 2.0]
GOOD = Seen(30, 0, 0, 30.0)


def looks(follower: Follower, seen: Seen, number: int) -> list[int]:
    """The steps after each of so many looks."""
    found = []
    for _ in range(number):
        follower.look(seen)
        found.append(follower.step)
    return found


def fallen(seen: Seen = Seen(10, 20, 0, 10.0)) -> Follower:
    follower = Follower(RATES)
    looks(follower, seen, FALL_AFTER)
    return follower


def test_one_bad_look_changes_nothing_and_two_do():
    follower = Follower(RATES)
    assert not follower.look(Seen(10, 20, 0, 10.0))
    assert follower.look(Seen(10, 20, 0, 10.0))
    assert RATES[follower.step] == 9.0  # the most that what came would have fitted in
    assert follower.why == "20 of 30 messages were lost"


def test_late_messages_count_as_lost_ones_do():
    follower = fallen(Seen(5, 0, 5, 5.0))
    assert RATES[follower.step] == 4.0
    assert follower.why == "5 of 5 messages came late"


def test_some_loss_is_nobodys_fault():
    assert looks(Follower(RATES), Seen(990, 10, 0, 30.0), 50) == [0] * 50


def test_silence_says_nothing():
    follower = Follower(RATES)
    follower.look(Seen(10, 20, 0, 10.0))
    assert looks(follower, Seen(0, 0, 0, 0.0), 100) == [0] * 100
    assert follower.look(Seen(10, 20, 0, 10.0))


def test_packets_of_which_no_message_becomes_whole_count_as_loss():
    follower = Follower(RATES)
    looks(follower, Seen(0, 0, 0, 0.0, pieces=7), FALL_AFTER)
    assert follower.step == len(RATES) - 1
    assert follower.why == "no message became whole of 7 packets that came"
    assert looks(follower, GOOD, SETTLE + CLIMB_AFTER)[-1] == len(RATES) - 2


def test_queues_are_emptied_before_it_falls_further():
    follower = fallen()
    step = follower.step
    assert looks(follower, Seen(4, 0, 4, 8.0), SETTLE) == [step] * SETTLE


def test_where_even_the_least_is_too_much_it_stays_at_the_least():
    follower = fallen(Seen(0, 30, 0, 0.0))
    assert follower.step == len(RATES) - 1
    looks(follower, Seen(0, 30, 0, 0.0), 20)
    assert follower.step == len(RATES) - 1


def test_it_gets_more_again_step_by_step_until_the_best():
    follower = fallen()
    steps = looks(follower, GOOD, SETTLE + CLIMB_AFTER * 3)
    assert steps[-1] == 0
    assert sorted(steps, reverse=True) == steps
    assert follower.why == ""
    assert looks(follower, GOOD, 100) == [0] * 100


def test_a_step_up_that_fails_is_tried_ever_later():
    follower = fallen(Seen(9, 10, 0, 9.0))
    floor = follower.step
    waits = []
    for _ in range(6):
        count = 0
        while follower.step == floor:
            follower.look(GOOD)
            count += 1
        waits.append(count - SETTLE)
        looks(follower, Seen(9, 10, 0, 9.0), FALL_AFTER)
        assert follower.step == floor
    assert waits == [CLIMB_AFTER * min(MOST_PATIENCE, 2**n) for n in range(6)]


def test_a_step_up_that_holds_makes_the_next_wait_short_again():
    follower = fallen(Seen(9, 10, 0, 9.0))
    floor = follower.step
    while follower.step == floor:
        follower.look(GOOD)
    looks(follower, Seen(9, 10, 0, 9.0), FALL_AFTER)
    while follower.step == floor:
        follower.look(GOOD)
    assert looks(follower, GOOD, CLIMB_AFTER)[-1] == floor - 2


def test_sizes_go_step_by_step():
    follower = Follower([0.0] * 4)
    looks(follower, Seen(1, 9, 0, 1.0), FALL_AFTER)
    assert follower.step == 1


def test_it_finds_a_capacity_that_changes():
    chance = random.Random(14)
    for capacity in (25.0, 7.0, 3.0, 60.0):
        follower = Follower(RATES)
        seen = []
        for _ in range(400):
            sent = RATES[follower.step] / 2
            came = min(sent, capacity / 2) * chance.uniform(0.99, 1.0)
            lost = 0 if sent <= capacity / 2 else round(sent - came)
            follower.look(Seen(max(1, round(came)), lost, 0, 2 * came))
            seen.append(RATES[follower.step])
        fitting = [hz for hz in RATES if hz <= capacity]
        usual = max(set(seen[40:]), key=seen[40:].count)
        assert usual in fitting[:2], capacity

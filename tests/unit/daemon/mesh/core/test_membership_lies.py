"""What cannot be true: rumours far ahead, claims to this daemon's name, and addresses that nobody proved."""

from __future__ import annotations

from typing import Any

import pytest
from membership_desk import ALIVE, DEAD, MS, SUSPECT, TIMING, Desk, S, of, record, sent

from ringcast.control.limits import COUNTER_STEP, DIAL_BURST, DIALS_PER_MINUTE, MAX_COUNTER
from ringcast.control.peering import (
    Hello,
    NodeRecord,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.events import (
    Action,
    Connect,
    DialFailed,
    Doubted,
    LinkDown,
    LinkUp,
    NameConflict,
    NodeDown,
    Scouted,
    Tick,
)


def test_a_rumour_of_death_far_ahead_is_not_believed_and_the_dead_is_asked() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    liar, _ = desk.link(record(70))
    actions = desk.hear(liar, Rumours(rumours=[Rumour(record(60, counter=MAX_COUNTER), DEAD)]))
    assert desk.status(60) is ALIVE
    assert of(actions, Connect) == [Connect("h60:1")]
    assert desk.core.refused == {"implausible rumour": 1}
    within = record(60, counter=COUNTER_STEP)
    desk.hear(liar, Rumours(rumours=[Rumour(within, DEAD)]))
    assert desk.status(60) is SUSPECT  # and it is told, and objects
    assert of(desk.hear(link, Rumours(rumours=[Rumour(record(60, counter=COUNTER_STEP + 1))])), NodeDown) == []
    assert desk.status(60) is ALIVE


def test_what_is_said_of_this_daemon_is_outbid_up_to_a_step_and_answered_beyond() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    me = desk.core.me
    far = NodeRecord("me", me.incarnation, COUNTER_STEP + me.counter + 1, control=me.control)
    (told,) = sent(desk.hear(link, Rumours(rumours=[Rumour(far, DEAD)])), Rumours)
    assert told.rumours == [Rumour(me)]
    assert desk.core.me == me
    near = NodeRecord("me", me.incarnation, COUNTER_STEP + me.counter, control=me.control)
    desk.hear(link, Rumours(rumours=[Rumour(near, DEAD)]))
    assert desk.core.me.counter == near.counter + 1


@pytest.mark.parametrize("lie", [{"counter": MAX_COUNTER}, {"name": "other"}])
def test_of_a_daemon_that_was_called_its_own_word_counts_against_any_rumour(lie: dict[str, Any]) -> None:
    desk = Desk()
    liar, _ = desk.link(record(70))
    desk.hear(liar, Rumours(rumours=[Rumour(record(60, **lie))]))
    desk.link(record(60))  # anybody can call and say so
    assert desk.core.roster.members[60].record != record(60)
    desk.link(record(60), dialled=True)
    assert desk.core.roster.members[60].record == record(60)
    assert desk.core.names.holders["n60"] == record(60)
    assert "other" not in desk.core.names.holders
    desk.link(record(60, counter=MAX_COUNTER), dialled=True)  # somebody else, who answers to its number
    assert desk.core.roster.members[60].record == record(60)


def test_addresses_that_were_only_heard_of_are_dialled_so_often() -> None:
    desk = Desk(seeds=("seed:1",))
    dialled = [address for _ in range(2) for address in of(desk.do(Tick()), Connect)]
    assert dialled == [Connect("seed:1")]
    calls = [desk.do(Scouted(f"x{i}:1", 1000 + i)) for i in range(DIAL_BURST + 50)]
    assert sum(len(of(actions, Connect)) for actions in calls) == DIAL_BURST
    assert desk.core.refused["dial put off"] == 50
    desk.do(DialFailed("seed:1", True))
    assert of(desk.do(Tick(), after_ns=TIMING.max_redial_ns), Connect) == [Connect("seed:1")]
    later = [desk.do(Scouted(f"y{i}:1", 9000 + i)) for i in range(50)]
    earned = int(DIALS_PER_MINUTE / 60 * TIMING.max_redial_ns / S)
    assert earned <= sum(len(of(actions, Connect)) for actions in later) <= earned + 2


def test_a_daemon_that_answered_before_is_called_again_at_once() -> None:
    desk = Desk()
    link, _ = desk.link(record(60), dialled=True)
    for i in range(DIAL_BURST + 5):
        desk.do(Scouted(f"x{i}:1", 1000 + i))
    assert of(desk.do(LinkDown(link)), Connect) == [Connect("h60:1")]


def claim(age_ns: int = 100 * S, **fields: Any) -> tuple[Desk, list[Action], NodeRecord]:
    """A daemon that is called and told by another that it has the same name and is older."""
    desk = Desk(50, start_ns=0)
    other = NodeRecord(**{"name": "me", "incarnation": 40, "control": ("h40:1",)} | fields)
    desk.do(LinkUp(1, None))
    return desk, desk.hear(1, Hello(record=other, age_ns=age_ns)), other


def test_an_older_daemon_is_called_back_before_its_claim_counts() -> None:
    desk, actions, other = claim()
    assert of(actions, NameConflict) == []
    assert of(actions, Connect) == [Connect("h40:1")]
    assert desk.core.serving
    desk.do(LinkUp(2, "h40:1"))
    (conflict,) = of(desk.hear(2, Hello(record=other, age_ns=100 * S + 2 * MS)), NameConflict)
    assert conflict.mine
    assert not desk.core.serving


def test_a_claim_from_where_nobody_answers_is_asked_after_ever_more_seldom_and_changes_nothing() -> None:
    desk, _, _ = claim()
    desk.do(DialFailed("h40:1", True))
    assert desk.tick_until(Connect) == [Connect("h40:1")]
    desk.do(DialFailed("h40:1", True))
    assert desk.core.serving
    assert desk.core.refused["unproven name"] == 1


@pytest.mark.parametrize("fields", [{"control": ()}, {"control": ("h50:1",)}], ids=["nowhere", "at the victim's"])
def test_a_claim_that_cannot_be_called_back_changes_nothing(fields: dict[str, Any]) -> None:
    desk, actions, _ = claim(**fields)
    for connect in of(actions, Connect):
        desk.do(LinkUp(2, connect.address))
        desk.hear(2, Hello(record=desk.core.me))
    assert desk.tick_until(NameConflict, 10 * S) == []
    assert desk.core.serving


def test_an_age_that_jumps_is_no_age() -> None:
    desk, _, other = claim()
    desk.do(LinkUp(2, "h40:1"))
    assert of(desk.hear(2, Hello(record=other, age_ns=200 * S)), NameConflict) == []
    assert desk.core.serving
    assert desk.core.refused["implausible age"] == 1


def test_data_goes_to_where_a_daemon_comes_from_or_answered() -> None:
    desk = Desk()
    several = NodeRecord("n60", 60, control=("10.0.0.1:7", "10.0.1.1:7", "[fd00::1]:7", "not an address"))
    link, _ = desk.link(several)
    assert desk.core.proven_host(link, "10.0.1.1") == "10.0.1.1"
    assert desk.core.proven_host(link, "fd00:0::1") == "fd00::1"
    assert desk.core.proven_host(link, "10.9.9.9") is None
    assert of(desk.do(Doubted(link)), Connect) == [Connect("10.0.0.1:7")]
    desk.do(LinkUp(9, "10.0.0.1:7"))
    desk.hear(9, Hello(record=record(70)))  # another one is there
    assert desk.core.proven_host(link, "10.9.9.9") is None
    desk.do(LinkUp(10, "10.0.1.1:7"))
    desk.hear(10, Hello(record=several))
    assert desk.core.proven_host(link, "10.9.9.9") == "10.0.1.1"
    desk.do(LinkDown(10))
    assert desk.core.proven_host(link, "10.9.9.9") == "10.0.1.1"
    assert desk.core.proven_host(99, "10.0.0.1") is None


def test_all_of_the_loopback_network_is_one_host_and_dialled_names_are_proven() -> None:
    desk = Desk()
    link, _ = desk.link(NodeRecord("n60", 60, control=("127.0.0.9:7",)))
    assert desk.core.proven_host(link, "127.0.0.1") == "127.0.0.9"
    link, _ = desk.link(NodeRecord("n70", 70, control=("lab.example:7",)), dialled=True)
    assert desk.core.proven_host(link, "10.0.0.7") == "lab.example"
    link, _ = desk.link(NodeRecord("n80", 80, control=("127.0.0.1:7",)))
    assert desk.core.proven_host(link, "10.0.0.8") is None

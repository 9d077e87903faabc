"""Two daemons with one name, restarts, and who is whose neighbour."""

from __future__ import annotations

from random import Random

import pytest
from membership_desk import ALIVE, DEAD, MS, Desk, S, of, record

from ringcast.control.peering import (
    Hello,
    NodeRecord,
    Ping,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.events import (
    Close,
    LinkDown,
    LinkUp,
    NameCleared,
    NameConflict,
    NodeChanged,
    NodeDown,
    NodeRestarted,
    NodeUp,
    Tick,
)
from ringcast.daemon.mesh.core.roster import Roster


def test_a_restarted_daemon_takes_the_place_of_its_predecessor() -> None:
    desk = Desk()
    link, _ = desk.link(record(60, "cam"))
    desk.do(LinkDown(link))
    successor = NodeRecord("cam", 61, control=("h60:1",))
    _, actions = desk.link(successor)
    assert of(actions, NodeRestarted) or (of(actions, NodeDown) and of(actions, NodeUp))
    assert desk.core.names.holders["cam"] == successor


def test_a_change_of_the_record_is_told() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    changed = record(60, counter=1, life=7)
    assert of(desk.hear(link, Rumours(rumours=[Rumour(changed)])), NodeChanged) == [NodeChanged(changed)]


@pytest.mark.parametrize(("my_age", "their_age", "mine"), [(5, 9, True), (9, 5, False), (7, 7, True)])
def test_of_two_with_one_name_the_younger_yields(my_age: int, their_age: int, mine: bool) -> None:
    desk = Desk(50, start_ns=0)
    desk.do(LinkUp(1, "h40:1"), after_ns=my_age)
    other = NodeRecord("me", 40, control=("h40:1",))
    (conflict,) = of(desk.hear(1, Hello(record=other, age_ns=their_age)), NameConflict)
    assert conflict.mine is mine
    assert desk.core.serving is not mine
    assert ("serves nobody" in str(conflict)) is mine


def test_the_name_returns_when_the_other_is_gone() -> None:
    desk = Desk(50, start_ns=0)
    other = NodeRecord("me", 40, control=("h40:1",))
    link, _ = desk.link(other, dialled=True, age_ns=10 * S)
    assert not desk.core.serving
    assert of(desk.hear(link, Rumours(rumours=[Rumour(other, DEAD)])), NameCleared)
    assert desk.core.serving


def test_when_both_yield_one_does_not() -> None:
    desk = Desk(30, start_ns=0)
    desk.do(LinkUp(1, "h40:1"))
    other = NodeRecord("me", 40)
    desk.hear(1, Hello(record=other, age_ns=10 * S))
    assert not desk.core.serving
    yields = NodeRecord("me", 40, counter=1, yields=True)
    assert of(desk.hear(1, Rumours(rumours=[Rumour(yields)])), NameCleared)


def test_everybody_gives_a_name_to_the_same_one() -> None:
    claims = [NodeRecord("x", 9), NodeRecord("x", 3, yields=True), NodeRecord("x", 7)]
    for seed in range(6):
        Random(seed).shuffle(claims)
        roster = Roster(record(50))
        for claim in claims:
            roster.merge(claim, ALIVE, 0)
        holder = roster.holder("x")
        assert holder is not None
        assert holder.incarnation == 7


def test_neighbours_see_each_other_alike_and_reach_everybody() -> None:
    numbers = sorted({Random(seed).getrandbits(64) for seed in range(300)})
    links = {}
    for me in numbers:
        roster = Roster(NodeRecord(f"n{me}", me))
        for other in numbers:
            if other != me:
                roster.merge(NodeRecord(f"n{other}", other), ALIVE, 0)
        links[me] = roster.neighbours()
    assert all(me in links[other] for me in numbers for other in links[me])
    reached, edge = {numbers[0]}, {numbers[0]}
    steps = 0
    while edge:
        edge = {other for me in edge for other in links[me]} - reached
        reached |= edge
        steps += bool(edge)
    assert len(reached) == len(numbers)
    assert steps <= 9


def test_of_two_links_the_one_that_is_heard_is_used_and_the_other_closed() -> None:
    desk = Desk(50)
    dead, _ = desk.link(record(60))
    living, _ = desk.link(record(60))
    desk.hear(living, Ping(seq=1))
    assert desk.core.link_to("n60") == living
    closed: list[Close] = []
    for _ in range(20):
        desk.hear(living, Ping(seq=1))
        closed += of(desk.do(Tick(), after_ns=500 * MS), Close)
    assert [close.link for close in closed] == [dead]
    assert desk.status(60) is ALIVE

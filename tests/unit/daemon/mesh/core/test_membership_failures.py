"""Who no longer answers: suspicion, death, return, and rosters that differ."""

from __future__ import annotations

from random import Random

import pytest
from membership_desk import ALIVE, DEAD, MS, SUSPECT, TIMING, Desk, S, of, record, sent

from ringcast.control.peering import (
    Ack,
    Ping,
    PingFor,
    RosterDigest,
    RosterSummary,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.events import (
    Close,
    Connect,
    DialFailed,
    Leave,
    LinkDown,
    NodeDown,
    NodeUp,
    Send,
    Tick,
)
from ringcast.daemon.mesh.core.roster import MAX_DEAD, Roster, Status


def test_pings_are_answered() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    assert sent(desk.hear(link, Ping(seq=9, roster=desk.core.roster.keyed_sums.total)), Ack) == [Ack(seq=9)]


def test_silence_leads_over_others_and_suspicion_to_death() -> None:
    desk = Desk()
    desk.link(record(60))
    helper, _ = desk.link(record(70))
    asked: list[Send] = []
    for _ in range(100):
        asked = [s for s in desk.tick_until(Send) if isinstance(s.message, PingFor) and s.message.target == 60]
        if asked:
            break
        desk.hear(helper, Ack(seq=0))
    assert [s.link for s in asked] == [helper]
    assert desk.status(60) is ALIVE
    downs: list[NodeDown] = []
    statuses = set()
    for _ in range(1000):
        if downs:
            break
        desk.hear(helper, Ack(seq=0))
        downs = of(desk.do(Tick(), after_ns=100 * MS), NodeDown)
        statuses.add(desk.status(60))
    assert downs == [NodeDown(record(60))]
    assert SUSPECT in statuses
    assert desk.core.roster.is_here(70)


def test_an_answer_by_way_of_another_counts() -> None:
    desk = Desk()
    desk.link(record(60))
    helper, _ = desk.link(record(70))
    for _ in range(200):
        for action in of(desk.do(Tick(), after_ns=50 * MS), Send):
            if isinstance(action.message, PingFor):
                desk.hear(helper, Ack(seq=action.message.seq))
        desk.hear(helper, Ack(seq=0))
    assert desk.status(60) is ALIVE


def test_helping_another_to_ping() -> None:
    desk = Desk()
    asker, _ = desk.link(record(60))
    target, _ = desk.link(record(70))
    (ping,) = of(desk.hear(asker, PingFor(seq=5, target=70)), Send)
    assert ping.link == target
    assert of(desk.hear(target, Ack(seq=ping.message.seq)), Send) == [Send(asker, Ack(seq=5))]


def test_helping_another_to_ping_one_that_is_not_linked() -> None:
    desk = Desk(80)
    asker, _ = desk.link(record(60))
    desk.hear(asker, Rumours(rumours=[Rumour(record(70))]))
    assert of(desk.hear(asker, PingFor(seq=5, target=70)), Connect) == [Connect("h70:1")]
    _, actions = desk.link(record(70), dialled=True)
    assert Send(asker, Ack(seq=5)) in actions


def test_a_host_that_refuses_shortens_the_wait() -> None:
    times = {}
    for refused in (True, False):
        desk = Desk()
        link, _ = desk.link(record(60))
        began_ns = desk.now_ns
        assert of(desk.do(LinkDown(link)), Connect) == [Connect("h60:1")]
        desk.do(DialFailed("h60:1", refused=refused))
        assert desk.tick_until(NodeDown)
        times[refused] = desk.now_ns - began_ns
    assert times[True] < times[False]


def test_a_suspect_may_object_and_the_dead_return() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    desk.link(record(70))
    actions = desk.hear(link, Rumours(rumours=[Rumour(record(70), SUSPECT)]))
    assert desk.status(70) is SUSPECT
    assert sent(actions, Rumours), "70 is told, too"
    desk.hear(link, Rumours(rumours=[Rumour(record(70, counter=1))]))
    assert desk.status(70) is ALIVE
    desk.hear(link, Rumours(rumours=[Rumour(record(70, counter=1), SUSPECT)]))
    desk.now_ns += TIMING.refused_ns
    assert of(desk.hear(link, Rumours(rumours=[Rumour(record(70, counter=1), DEAD)])), NodeDown)
    assert not of(desk.hear(link, Rumours(rumours=[Rumour(record(70, counter=1))])), NodeUp)
    assert of(desk.hear(link, Rumours(rumours=[Rumour(record(70, counter=2))])), NodeUp)


def test_the_sudden_word_of_others_does_not_bury_one_who_is_believed_alive() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    desk.link(record(70))
    actions = desk.hear(link, Rumours(rumours=[Rumour(record(70), DEAD)]))
    assert not of(actions, NodeDown)
    assert not of(desk.hear(link, Rumours(rumours=[Rumour(record(70), DEAD)])), NodeDown)
    assert {s.message.rumours[0].status for s in of(actions, Send) if s.link == 2} == {SUSPECT}


def test_a_goodbye_is_believed_at_once() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    actions = desk.hear(link, Rumours(rumours=[Rumour(record(60, counter=1), DEAD)]))
    assert of(actions, NodeDown) == [NodeDown(record(60))]
    assert of(actions, Close)


def test_saying_goodbye() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    (goodbye,) = of(desk.do(Leave()), Send)
    assert goodbye.link == link
    assert [(r.record.name, r.status) for r in goodbye.message.rumours] == [("me", DEAD)]
    assert not sent(desk.hear(link, goodbye.message), Rumours), "and no word against it afterwards"


@pytest.mark.parametrize("status", [SUSPECT, DEAD])
def test_what_is_wrongly_said_of_oneself_is_contradicted(status: Status) -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    lie = Rumour(record(50, "me", counter=4), status)
    (news,) = sent(desk.hear(link, Rumours(rumours=[lie])), Rumours)
    assert [(r.record.counter, r.status) for r in news.rumours] == [(5, ALIVE)]


def test_one_who_is_thought_dead_is_told_when_it_calls() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    desk.hear(link, Rumours(rumours=[Rumour(record(60), DEAD)]))
    _, actions = desk.link(record(60))
    assert [(r.record.incarnation, r.status) for m in sent(actions, Rumours) for r in m.rumours] == [(60, DEAD)]


def test_the_dead_are_called_now_and_then_until_forgotten() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    desk.hear(link, Rumours(rumours=[Rumour(record(60), DEAD)]))
    assert desk.tick_until(Connect) == [Connect("h60:1")]
    desk.do(DialFailed("h60:1", refused=False))
    assert desk.tick_until(Connect) == [Connect("h60:1")]
    desk.do(DialFailed("h60:1", refused=False))
    desk.do(Tick(), after_ns=TIMING.forget_ns + S)
    desk.do(Tick(), after_ns=S)
    assert 60 not in desk.core.roster.members
    desk.do(Tick(), after_ns=S)
    assert desk.core.due_ns() is None


def test_rosters_that_differ_are_compared_by_buckets() -> None:
    ours, theirs = Desk(50), Desk(60)
    ours.link(theirs.core.me)
    theirs.link(ours.core.me, dialled=True)
    for number in range(100, 140):
        theirs.core.roster.merge(record(number), ALIVE, 0)
    theirs.core.roster.take_news()
    actions = ours.hear(1, Ping(seq=1, roster=theirs.core.roster.keyed_sums.total))
    (summary,) = sent(actions, RosterSummary)
    (digest,) = sent(theirs.hear(1, summary), RosterDigest)
    (answer,) = sent(ours.hear(1, digest), RosterDigest)
    for rumours in sent(theirs.hear(1, answer), Rumours):
        ours.hear(1, rumours)
    assert ours.core.roster.keyed_sums.total == theirs.core.roster.keyed_sums.total


def test_a_roster_is_the_same_in_whatever_order_it_heard() -> None:
    rumours = [(record(n, counter=c), s) for n in (1, 2, 3) for c in (0, 1) for s in (ALIVE, SUSPECT, DEAD)]
    totals = set()
    for seed in range(20):
        Random(seed).shuffle(rumours)
        roster = Roster(record(50))
        for number in (1, 2, 3):
            roster.merge(record(number), ALIVE, 0)
        for rumour, status in rumours:
            roster.merge(rumour, status, 0)
            roster.merge(rumour, status, 0)
        totals.add((roster.keyed_sums.total, tuple(roster.keyed_sums.sums), len(roster)))
    assert totals == {(Roster(record(50)).keyed_sums.total, tuple(Roster(record(50)).keyed_sums.sums), 1)}


def test_the_dead_are_remembered_within_bounds() -> None:
    roster = Roster(record(50))
    for number in range(100, 100 + 2 * MAX_DEAD):
        roster.merge(record(number), ALIVE, 0)
        roster.merge(record(number), DEAD, 0)
    roster.forget_dead(before_ns=-1)
    assert len(roster.dead) == MAX_DEAD

"""One daemon's membership, told by hand what happens: whom it calls, whom it believes, and whom it gives up."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ringcast.control.limits import COUNTER_STEP, DIAL_BURST, DIALS_PER_MINUTE, MAX_COUNTER
from ringcast.control.peering import (
    Ack,
    Hello,
    NodeRecord,
    Ping,
    PingFor,
    Refusal,
    RosterDigest,
    RosterSummary,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.events import (
    Action,
    Announce,
    Close,
    Connect,
    DialFailed,
    Doubted,
    Event,
    Foreign,
    Leave,
    LinkDown,
    Linked,
    LinkUp,
    NameCleared,
    NameConflict,
    NodeChanged,
    NodeDown,
    NodeRestarted,
    NodeUp,
    Offence,
    Received,
    Scouted,
    Seeds,
    Send,
    Tick,
    Unlinked,
    Wanted,
)
from ringcast.daemon.mesh.core.membership import Membership
from ringcast.daemon.mesh.core.roster import MAX_DEAD, SMALL, Roster, Status
from ringcast.daemon.mesh.core.timing import Timing

TIMING = Timing()
MS = 1_000_000
S = 1000 * MS
ALIVE, SUSPECT, DEAD = Status.ALIVE, Status.SUSPECT, Status.DEAD


def record(number: int, name: str = "", **fields: Any) -> NodeRecord:
    return NodeRecord(name or f"n{number}", number, control=(f"h{number}:1",), **fields)


class Desk:
    """A membership with its clock, and the other ends of its links."""

    def __init__(self, number: int = 50, seeds: tuple[str, ...] = (), start_ns: int = -5 * S) -> None:
        self.now_ns = start_ns
        self.core = Membership(record(number, "me"), rng=Random(7), now_ns=start_ns, seeds=seeds, timing=TIMING)
        self._links = 0

    def do(self, event: Event, after_ns: int = MS) -> list[Action]:
        self.now_ns += after_ns
        return self.core.handle(event, self.now_ns)

    def hear(self, link: int, message: Any) -> list[Action]:
        return self.do(Received(link, message))

    def link(self, peer: NodeRecord, *, dialled: bool = False, age_ns: int = 0) -> tuple[int, list[Action]]:
        """A link whose other side says it is `peer`."""
        self._links += 1
        self.do(LinkUp(self._links, peer.control[0] if dialled else None))
        return self._links, self.hear(self._links, Hello(record=peer, age_ns=age_ns))

    def tick_until(self, kind: type, limit_ns: int = 60 * S) -> list[Any]:
        """Ticks when due, until such an action is seen."""
        end_ns = self.now_ns + limit_ns
        while self.now_ns < end_ns:
            due_ns = self.core.due_ns()
            if due_ns is None:
                return []
            self.now_ns = max(self.now_ns + 1, due_ns)
            found = of(self.core.handle(Tick(), self.now_ns), kind)
            if found:
                return found
        return []

    def status(self, number: int) -> Status:
        return self.core.roster.members[number].status


def of(actions: list[Action], kind: type) -> list[Any]:
    return [action for action in actions if isinstance(action, kind)]


def sent(actions: list[Action], kind: type) -> list[Any]:
    return [action.message for action in of(actions, Send) if isinstance(action.message, kind)]


# ------------------------------------------------------------------ meeting


def test_a_daemon_alone_sleeps() -> None:
    desk = Desk()
    desk.do(Tick())
    assert desk.core.due_ns() is None


def test_seeds_are_dialled_until_somebody_answers() -> None:
    desk = Desk(seeds=("a:1",))
    assert desk.do(Tick()) == [Connect("a:1")]
    assert not of(desk.do(Tick()), Connect), "one dial at a time"
    waits = []
    for _ in range(8):
        failed_ns = desk.now_ns
        desk.do(DialFailed("a:1", refused=True))
        assert desk.tick_until(Connect) == [Connect("a:1")]
        waits.append(desk.now_ns - failed_ns)
    assert waits[-1] > 4 * waits[0], "ever more seldom"
    assert max(waits) <= TIMING.max_redial_ns + TIMING.redial_ns


def test_a_link_begins_with_hello_and_makes_a_node() -> None:
    desk = Desk()
    hello = sent(desk.do(LinkUp(1, None)), Hello)
    assert [h.record.name for h in hello] == ["me"]
    actions = desk.hear(1, Hello(record=record(60)))
    assert of(actions, NodeUp) == [NodeUp(record(60))]
    assert of(actions, Linked) == [Linked(1, record(60))]
    assert desk.core.link_to("n60") == 1
    assert desk.core.peer(1) == record(60)


@pytest.mark.parametrize("message", [Ping(seq=1), Rumours(rumours=[]), Ack(seq=1)])
def test_nothing_is_heard_before_hello(message: Any) -> None:
    desk = Desk()
    desk.do(LinkUp(1, None))
    assert [close.link for close in of(desk.hear(1, message), Close)] == [1]
    assert desk.hear(1, Hello(record=record(60))) == []


def test_a_link_that_says_nothing_is_closed() -> None:
    desk = Desk()
    desk.do(LinkUp(1, None))
    assert desk.tick_until(Close) == [Close(1, "no hello")]


def test_another_mesh_is_refused_with_the_reason() -> None:
    desk = Desk()
    desk.do(LinkUp(1, "b:1"))
    actions = desk.hear(1, Hello(record=record(60), mesh="theirs"))
    assert "the other of mesh 'theirs'" in sent(actions, Refusal)[0].reason
    assert [action.mesh for action in of(actions, Foreign)] == ["theirs"]
    assert of(actions, Close)
    assert len(desk.core.roster) == 1


def test_a_node_of_another_mesh_is_not_called_again_soon() -> None:
    desk = Desk(seeds=("b:1",))
    assert desk.tick_until(Connect) == [Connect("b:1")]
    desk.do(LinkUp(1, "b:1"))
    began_ns = desk.now_ns
    desk.hear(1, Hello(record=record(60), mesh="theirs"))
    assert desk.tick_until(Connect, limit_ns=2 * TIMING.foreign_ns) == [Connect("b:1")]
    assert desk.now_ns - began_ns >= TIMING.foreign_ns


def test_a_node_that_came_over_to_this_mesh_is_called_when_it_is_heard() -> None:
    desk = Desk(seeds=("b:1",))
    desk.tick_until(Connect)
    desk.do(LinkUp(1, "b:1"))
    desk.hear(1, Hello(record=record(60), mesh="theirs"))
    assert of(desk.do(Scouted("b:1", 61)), Connect) == [Connect("b:1")]


def test_other_seeds_are_called_and_those_before_no_more() -> None:
    desk = Desk(seeds=("a:1",))
    assert desk.tick_until(Connect) == [Connect("a:1")]
    desk.do(DialFailed("a:1", refused=True))
    desk.do(Seeds(("b:1",)))
    assert desk.tick_until(Connect) == [Connect("b:1")]
    desk.do(DialFailed("b:1", refused=True))
    assert desk.tick_until(Connect) == [Connect("b:1")]


def test_a_refusal_is_remembered_for_the_doctor() -> None:
    desk = Desk(seeds=("b:1",))
    desk.do(LinkUp(1, "b:1"))
    desk.hear(1, Refusal(reason="this node speaks peering protocol 2"))
    assert desk.core.links.refusals == {"b:1": "this node speaks peering protocol 2"}


def test_an_offence_is_answered_with_its_reason() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    actions = desk.do(Offence(link, "nonsense"))
    assert sent(actions, Refusal) == [Refusal(reason="nonsense")]
    assert of(actions, Unlinked) == [Unlinked(record(60))]


def test_a_daemon_that_dials_itself_stops() -> None:
    desk = Desk(seeds=("localhost:1",))
    desk.do(Tick())
    desk.do(LinkUp(1, "localhost:1"))
    assert of(desk.hear(1, Hello(record=desk.core.me)), Close)
    assert desk.tick_until(Connect) == []


def test_whoever_is_talked_of_is_dialled_by_the_lower_number_and_by_the_higher_after_a_while() -> None:
    desk = Desk(50)
    link, _ = desk.link(record(60))
    actions = desk.hear(link, Rumours(rumours=[Rumour(record(70)), Rumour(record(40))]))
    assert of(actions, Connect) == [Connect("h70:1")]
    began_ns = desk.now_ns
    assert desk.tick_until(Connect) == [Connect("h40:1")]
    assert desk.now_ns - began_ns >= TIMING.grace_ns


def test_of_two_links_with_one_peer_exactly_one_end_closes_one() -> None:
    low, high = Desk(50), Desk(60)
    for desk, peer in ((low, record(60)), (high, record(50))):
        desk.link(peer, dialled=True)
        desk.link(peer, dialled=False)
    assert len(low.core.links.numbered) == 2
    assert [link.dialled for link in high.core.links.numbered.values()] == [False]


def test_scouted_daemons_are_dialled_once() -> None:
    desk = Desk()
    assert desk.do(Scouted("a:1", 60)) == [Connect("a:1")]
    assert desk.do(Scouted("a:1", 60)) == []
    desk.link(record(60))
    assert desk.do(Scouted("a:2", 60)) == []


def test_an_address_at_which_another_answers_is_not_dialled_in_a_circle() -> None:
    desk = Desk()
    link, _ = desk.link(record(60))
    stray = NodeRecord("stray", 70, control=("h60:1",))
    assert of(desk.hear(link, Rumours(rumours=[Rumour(stray)])), Connect) == [Connect("h60:1")]
    desk.do(LinkUp(9, "h60:1"))
    actions = desk.hear(9, Hello(record=record(60)))
    assert not of(actions, Connect)
    assert desk.core.due_ns() is not None


def test_a_wanted_node_is_dialled_at_once() -> None:
    desk = Desk(50)
    link, _ = desk.link(record(60))
    desk.hear(link, Rumours(rumours=[Rumour(record(40))]))
    assert desk.do(Wanted("n40")) == [Connect("h40:1")]
    assert desk.do(Wanted("nobody")) == []


def test_in_a_large_mesh_links_are_few_and_unneeded_ones_are_closed() -> None:
    desk = Desk(1000)
    link, _ = desk.link(record(60), dialled=True)
    desk.hear(link, Rumours(rumours=[Rumour(record(number)) for number in range(2000, 2100)]))
    assert len(desk.core.roster) == 102
    wanted = desk.core.roster.neighbours()
    assert SMALL > len(wanted) > 5
    if 60 not in wanted:
        for _ in range(100):
            desk.hear(link, Ping(seq=1))
            if of(desk.do(Tick(), after_ns=S), Close):
                break
        assert desk.core.links.to(60) is None


def test_own_addresses_are_told_when_they_change() -> None:
    desk = Desk()
    desk.link(record(60))
    (news,) = sent(desk.do(Announce(control=("me:2",), data=("me:3",))), Rumours)
    assert news.rumours[0].record.control == ("me:2",)
    assert news.rumours[0].record.counter == 1
    assert desk.do(Announce(control=("me:2",))) == []


# ------------------------------------------------------------------ who no longer answers


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


# ------------------------------------------------------------------ comparing


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


# ------------------------------------------------------------------ names


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


# ------------------------------------------------------------------ what cannot be


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


# ------------------------------------------------------------------ somebody claims this daemon's name


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


# ------------------------------------------------------------------ where data may be sent


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

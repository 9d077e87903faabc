"""One daemon's membership, told by hand what happens: whom it calls, and how links begin."""

from __future__ import annotations

from typing import Any

import pytest
from membership_desk import TIMING, Desk, S, of, record, sent

from ringcast.control.peering import (
    Ack,
    Hello,
    NodeRecord,
    Ping,
    Refusal,
    Rumour,
    Rumours,
)
from ringcast.daemon.mesh.core.events import (
    Announce,
    Close,
    Connect,
    DialFailed,
    Foreign,
    Linked,
    LinkUp,
    NodeUp,
    Offence,
    Scouted,
    Seeds,
    Tick,
    Unlinked,
    Wanted,
)
from ringcast.daemon.mesh.core.roster import SMALL


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

"""Somebody tells the mesh that a node is dead, with a counter after which there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ringcast.control.limits import COUNTER_STEP, MAX_COUNTER
from ringcast.control.peering import Rumour, Rumours

ALIVE, SUSPECT, DEAD = range(3)


@pytest.mark.parametrize("counter", [MAX_COUNTER, MAX_COUNTER - 1, COUNTER_STEP * 2, COUNTER_STEP, 1])
@pytest.mark.parametrize("status", [SUSPECT, DEAD])
def test_the_living_stay_or_return(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], counter: int, status: int
) -> None:
    a, b = victims("a", "b")
    a.session.publisher("before")
    eventually(lambda: b.knows("before"))
    to_a, to_b = attack(a.address, name="m1"), attack(b.address, name="m2")
    victim = to_a.their_hello.record
    forged = msgspec.structs.replace(victim, counter=victim.counter + counter if counter < MAX_COUNTER - 1 else counter)
    for attacker in (to_b, to_a):
        attacker.say(Rumours(rumours=[Rumour(forged, status)]))
        assert attacker.heard_all()
    a.session.publisher("after")
    eventually(lambda: a.here() >= {"a", "b"} and b.here() >= {"a", "b"} and b.knows("after") and b.knows("before"))
    known = {node.name: node for node in b.session.nodes() if node.state == "here"}
    assert known["a"].incarnation == victim.incarnation
    if counter > COUNTER_STEP:
        assert a.refused["implausible rumour"] >= 1
        assert b.refused["implausible rumour"] >= 1


def test_a_newcomer_that_hears_the_lie_first_learns_the_truth_from_the_node_itself(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    (b,) = victims("b")
    (_, a) = victims("a")
    to_a = attack(a.address)
    victim = to_a.their_hello.record
    forged = msgspec.structs.replace(victim, counter=MAX_COUNTER, control=("127.0.0.1:9",))
    # Not before: who answers no ping while daemons start is taken for dead.
    lie = attack(b.address)
    lie.say(Rumours(rumours=[Rumour(forged)]))
    assert lie.heard_all()
    (*_, c) = victims("c")
    lie = attack(c.address, name="m3")
    lie.say(Rumours(rumours=[Rumour(forged, DEAD)]))
    assert lie.heard_all()
    a.session.publisher("after")
    eventually(lambda: c.here() >= {"a", "b", "c"} and c.knows("after") and b.knows("after"))

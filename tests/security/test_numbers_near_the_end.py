"""Somebody speaks of lives, births and terms near the end of their types, so that the next one would be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringcast.control.limits import MAX_BORN, MAX_LIFE, MAX_TERM, MAX_VERSION, PLAUSIBLE_LIFE
from ringcast.control.peering import Rumour, Rumours, TableDigest
from ringcast.daemon.table.rows import TagRow
from ringcast.model.tag import TagAttributes


def tag(name: str, primary: str, **fields: Any) -> TagRow:
    return TagRow(name=name, attributes=TagAttributes(), primary=primary, **fields)


@pytest.mark.parametrize("life", [MAX_LIFE, MAX_LIFE - 1, PLAUSIBLE_LIFE + 1, PLAUSIBLE_LIFE])
def test_a_life_of_the_victim_that_it_could_hardly_outlive(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], life: int
) -> None:
    a, b = victims("a", "b")
    a.session.publisher("before")
    eventually(lambda: b.knows("before"))
    for victim in (a, b):
        attacker = attack(victim.address)
        attacker.say_rows("a", life, tag("forged", "a"))
        attacker.say(TableDigest(buckets=list(range(32)), versions={"a": (life, 1)}))
        assert attacker.heard_all()
    a.session.publisher("after")
    eventually(lambda: b.knows("before") and b.knows("after") and not b.knows("forged"))
    assert a.here() >= {"a", "b"}
    assert b.here() >= {"a", "b"}
    if life > PLAUSIBLE_LIFE:
        assert b.refused["implausible life"] >= 1


def test_a_record_of_the_victim_with_the_last_life(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    a, b = victims("a", "b")
    a.session.publisher("before")
    eventually(lambda: b.knows("before"))
    attacker = attack(a.address)
    victim = attacker.their_hello.record
    attacker = attack(b.address)
    forged = type(victim)(victim.name, victim.incarnation, victim.counter + 1, MAX_LIFE, victim.control)
    attacker.say(Rumours(rumours=[Rumour(forged)]))
    attacker.say_rows("a", MAX_LIFE, tag("forged", "a"))
    assert attacker.heard_all()
    a.session.publisher("after")
    eventually(lambda: b.knows("before") and b.knows("after") and not b.knows("forged"))


def test_a_version_of_the_victims_rows_that_it_never_reaches(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    a, b = victims("a", "b")
    a.session.publisher("before")
    eventually(lambda: b.knows("before"))
    life = attack(a.address).their_hello.record.life
    attacker = attack(b.address)
    attacker.say_rows("a", life, tag("forged", "a"), through=MAX_VERSION)
    assert attacker.heard_all()
    a.session.publisher("after")
    eventually(lambda: b.knows("before") and b.knows("after") and not b.knows("forged"))


@pytest.mark.parametrize("number", [2**62, MAX_BORN + 1, MAX_BORN, MAX_TERM])
def test_a_birth_and_a_term_after_which_there_is_none(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None], number: int
) -> None:
    a, b = victims("a", "b")
    for victim in (a, b):
        attacker = attack(victim.address)
        attacker.say_rows("mallory", 1, tag("young", "mallory", born=number, term=number, backup="a"))
        assert attacker.heard_all()
    a.session.publisher("after")  # born after all that it knows
    eventually(lambda: b.knows("after"))
    attacker.close()  # and what it kept may be taken over
    a.session.publisher("later")
    eventually(lambda: b.knows("later"))
    if number > MAX_BORN:
        assert a.refused["implausible row"] >= 1
        assert not b.knows("young")

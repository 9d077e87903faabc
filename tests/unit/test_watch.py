"""What a watch remembers: whoever takes everything knows exactly what is there, however little it was told in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.control.notices import Presences
from ringcast.model.identity import Presence, PublisherInfo, SubscriberInfo
from ringcast.watch import Ledger


def node(name: str, came: bool = True) -> Presence:
    return Presence(kind="node", came=came, node=name)


def told(ledger: Ledger) -> list[str]:
    return [str(ledger.take()) for _ in range(len(ledger))]


def begin(ledger: Ledger, *names: str) -> None:
    ledger.note(Presences(watch=1, rows=[node(name) for name in names], anew=True))
    ledger.complete()


def test_all_that_is_there_comes_first_and_then_changes() -> None:
    ledger = Ledger()
    begin(ledger, "a", "b")
    ledger.note(Presences(watch=1, rows=[node("b", came=False), node("c")]))
    assert told(ledger) == ["node a came", "node b came", "node b went", "node c came"]
    assert ledger.present == [node("a"), node("c")]


def test_a_restarted_daemon_is_compared_with_what_was_known() -> None:
    ledger = Ledger()
    begin(ledger, "a", "b")
    told(ledger)
    ledger.note(Presences(watch=1, rows=[node("b")], anew=True))
    ledger.note(Presences(watch=1, rows=[node("c")]))
    ledger.complete()
    assert told(ledger) == ["node c came", "node a went"]


def test_a_daemon_that_dies_while_it_tells_undoes_nothing() -> None:
    ledger = Ledger()
    begin(ledger, "a", "b")
    told(ledger)
    ledger.note(Presences(watch=1, rows=[node("c")], anew=True))
    begin(ledger, "a")
    assert told(ledger) == ["node c came", "node b went", "node c went"]


def publisher(number: int, incarnation: int, came: bool = True) -> Presence:
    info = PublisherInfo(id=number, node="a", tag="t", incarnation=incarnation, pid=7, user="ada")
    return Presence(kind="publisher", came=came, node="a", publisher=info)


def subscriber(number: int, incarnation: int, came: bool = True) -> Presence:
    info = SubscriberInfo(id=number, node="a", pattern="t", incarnation=incarnation, pid=7, user="ada")
    return Presence(kind="subscriber", came=came, node="a", subscriber=info)


@pytest.mark.parametrize("thing", [publisher, subscriber])
def test_a_restarted_daemon_gives_other_numbers_to_the_same(thing: Callable[..., Presence]) -> None:
    ledger = Ledger()
    ledger.note(Presences(watch=1, rows=[thing(1, incarnation=11), thing(2, incarnation=12)], anew=True))
    ledger.complete()
    told(ledger)
    ledger.note(Presences(watch=1, rows=[thing(1, incarnation=12), thing(2, incarnation=13)], anew=True))
    ledger.complete()
    assert [ledger.take(), ledger.take()] == [thing(2, incarnation=13), thing(1, incarnation=11, came=False)]
    assert ledger.present == [thing(2, incarnation=12), thing(2, incarnation=13)]
    ledger.note(Presences(watch=1, rows=[thing(1, incarnation=12, came=False)]))
    assert [ledger.take() for _ in range(len(ledger))] == [thing(2, incarnation=12, came=False)]


def test_repetitions_say_nothing() -> None:
    ledger = Ledger()
    begin(ledger, "a")
    ledger.note(Presences(watch=1, rows=[node("a"), node("b", came=False)]))
    assert told(ledger) == ["node a came"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("change"), st.sampled_from("abcd"), st.booleans()),
            st.tuples(st.just("anew"), st.lists(st.sampled_from("abcd"), unique=True), st.booleans()),
            st.tuples(st.just("take"), st.integers(1, 4), st.none()),
        ),
        max_size=60,
    ),
    st.integers(1, 6),
)
def test_coming_and_going_alternate_and_end_in_what_is(steps: list[tuple[str, object, object]], most: int) -> None:
    ledger = Ledger(max_waiting=most)
    begin(ledger)
    seen: dict[str, bool] = {}

    def take(number: int) -> None:
        for _ in range(min(number, len(ledger))):
            row = ledger.take()
            assert seen.get(row.node, False) is not row.came
            seen[row.node] = row.came

    for kind, what, more in steps:
        if kind == "change":
            ledger.note(Presences(watch=1, rows=[node(str(what), bool(more))]))
        elif kind == "anew":
            ledger.note(Presences(watch=1, rows=[node(name) for name in what], anew=True))  # type: ignore[attr-defined]
            if more:
                ledger.complete()
        else:
            take(int(what))  # type: ignore[call-overload]
        assert len(ledger) <= max(most, 2 * 4)
    begin(ledger, *(row.node for row in ledger.present))
    take(len(ledger))
    assert {name for name, came in seen.items() if came} == {row.node for row in ledger.present}

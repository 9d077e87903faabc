"""The states of a channel: only the steps of the table, and all of them lead on."""

from __future__ import annotations

import itertools

import pytest

from ringcast.daemon.streams.state import TRANSITIONS, Event, IllegalTransition, Life, State


def told(*events: Event) -> Life:
    life = Life()
    for event in events:
        life.on(event)
    return life


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((), State.OPENING),
        ((Event.OPENED,), State.READY),
        ((Event.OPENED, Event.STARTED), State.FLOWING),
        ((Event.FAILED,), State.CLOSED),
        ((Event.OPENED, Event.FAILED), State.CLOSED),
        ((Event.OPENED, Event.STARTED, Event.LEFT), State.DRAINING),
        ((Event.OPENED, Event.STARTED, Event.LEFT, Event.RETURNED), State.FLOWING),
        ((Event.OPENED, Event.STARTED, Event.LEFT, Event.CLOSED), State.CLOSED),
        ((Event.OPENED, Event.STARTED, Event.LOST), State.BROKEN),
        ((Event.OPENED, Event.STARTED, Event.LOST, Event.CLOSED), State.CLOSED),
    ],
)
def test_the_life_of_a_channel(events: tuple[Event, ...], state: State) -> None:
    assert told(*events).state is state


@pytest.mark.parametrize(
    ("state", "event"), [step for step in itertools.product(State, Event) if step not in TRANSITIONS]
)
def test_a_step_that_is_not_in_the_table_raises_and_changes_nothing(state: State, event: Event) -> None:
    life = Life()
    life.state = state
    with pytest.raises(IllegalTransition, match=f"{state.name}.*{event.name}"):
        life.on(event)
    assert life.state is state


def test_every_state_can_be_reached_and_only_the_last_one_ends() -> None:
    assert {State.OPENING, *TRANSITIONS.values()} == set(State)
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.CLOSED}

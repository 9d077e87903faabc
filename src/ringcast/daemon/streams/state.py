"""The states of a channel at its receiving end, and what leads from one to the next, as a table. Pure.

    OPENING --opened--> READY --started--> FLOWING --left--> DRAINING
                                              ^--returned------'
    FLOWING or DRAINING --lost--> BROKEN; whatever is open --closed--> CLOSED; OPENING or READY --failed--> CLOSED

Invariant: a step that the table does not have raises, and leaves the state as it is.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    OPENING = "the sender is asked where the stream begins"
    READY = "the mirror is there, and nothing is sent yet"
    FLOWING = "messages come"
    DRAINING = "the publisher left; what it sent last is still to come"
    BROKEN = "nothing comes any more; the mirror is kept for what it holds"
    CLOSED = "nothing is left of it"


class Event(Enum):
    OPENED = "the sender answered, and the mirror was made"
    STARTED = "the sender sends"
    FAILED = "it could not be opened"
    LEFT = "the publisher left"
    RETURNED = "the publisher is back"
    LOST = "the sender is gone"
    CLOSED = "nobody wants it any more, or another channel continues it"


TRANSITIONS = {
    (State.OPENING, Event.OPENED): State.READY,
    (State.OPENING, Event.FAILED): State.CLOSED,
    (State.READY, Event.STARTED): State.FLOWING,
    (State.READY, Event.FAILED): State.CLOSED,
    (State.FLOWING, Event.FAILED): State.CLOSED,  # there was no room to show it
    (State.FLOWING, Event.LEFT): State.DRAINING,
    (State.FLOWING, Event.LOST): State.BROKEN,
    (State.FLOWING, Event.CLOSED): State.CLOSED,
    (State.DRAINING, Event.RETURNED): State.FLOWING,
    (State.DRAINING, Event.LOST): State.BROKEN,
    (State.DRAINING, Event.CLOSED): State.CLOSED,
    (State.BROKEN, Event.LOST): State.BROKEN,
    (State.BROKEN, Event.CLOSED): State.CLOSED,
}


class IllegalTransition(RuntimeError):
    """A mistake of the daemon's."""

    def __init__(self, state: State, event: Event) -> None:
        self.state = state
        self.event = event
        super().__init__(f"a channel in state {state.name} cannot be told {event.name}")


class Life:
    """The state of one channel."""

    def __init__(self) -> None:
        self.state = State.OPENING

    def on(self, event: Event) -> None:
        """Raises IllegalTransition."""
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            raise IllegalTransition(self.state, event)
        self.state = after

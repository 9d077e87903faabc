"""A daemon's membership for tests: its clock, and the other ends of its links, moved by hand."""

from __future__ import annotations

from random import Random
from typing import Any

from ringcast.control.peering import (
    Hello,
    NodeRecord,
)
from ringcast.daemon.mesh.core.events import (
    Action,
    Event,
    LinkUp,
    Received,
    Send,
    Tick,
)
from ringcast.daemon.mesh.core.membership import Membership
from ringcast.daemon.mesh.core.roster import Status
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

"""The priority of one end of a channel: its socket's marking, its threads' schedule, and what the kernel made of both.

A channel that takes the place of another one is there before that one goes. What both together may not have, the new
one gets when the old one gives it up. Invariant: what cannot be put in force is told, and the channel works without it.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

from ringcast import _core
from ringcast.control.status import InForce
from ringcast.model import priority
from ringcast.model.priority import MAX_DSCP
from ringcast.model.schedule import DEADLINE, OTHER, Schedule
from ringcast.transport.addressing import mark, marking_of
from ringcast.transport.urgent import scheduling
from ringcast.transport.urgent.awake import AWAKE
from ringcast.transport.urgent.caution import CAUTION
from ringcast.transport.urgent.limits import LIMITS

if TYPE_CHECKING:
    from ringcast.transport.urgent.links import Reservation

logger = logging.getLogger("ringcast.transport")


_NOT_RESERVED = "its bandwidth is not reserved"
LOST_S = 10.0
"""How long a channel counts as one that has just taken another's place."""
RANKS = {2: -2, 0: 0, 6: 1}
"""By the socket's priority: bulk after all others, urgent before them."""


_heirs: dict[int, list[Urgency]] = {}
"""By publisher: ends without the reservation of a core that they are to have."""
_turn = threading.RLock()
"""Ends are made by the daemon's loop and by threads that connect, and closed by others."""


class Urgency:
    """Of one end, of a channel that carries that publisher's stream. Raises ValueError when `text` is no priority."""

    def __init__(self, text: str, publisher: int = 0) -> None:
        self.asked = priority.read(text)
        self.marking = self.asked.marking
        self._publisher = publisher
        self._schedule = self.asked.schedule
        self._refused: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._warning = ""
        self._since = time.monotonic()
        self._locked: list[_core.LockedMemory] = []
        self._reservation: Reservation | None = None
        self._thread = 0
        self._counted = False
        self._awake = False

    @property
    def dedicated(self) -> bool:
        """Whether the channel has a thread of its own, with a schedule."""
        return bool(self.asked.sched)

    @property
    def rank(self) -> int:
        """Among the links that a publisher pushes to: 0 of a usual one, more of an urgent one."""
        return RANKS.get(self.marking.queue, 0) * (MAX_DSCP + 1) + (self.marking.dscp if self.marking.queue else 0)

    def schedule(self, thread: int, *, helper: bool = False) -> None:
        """Give a thread of this end the channel's schedule. A `helper` gets no reservation beside that of the thread
        that carries the messages."""
        if not self.asked.sched or (helper and self._schedule.policy == DEADLINE):
            return
        with _turn:
            self._thread = thread
            self._give()

    def _give(self) -> None:
        """The thread that carries the messages has its schedule, or this end waits for it."""
        refused = "" if self._counted else LIMITS.take(self._schedule, self._publisher)
        if not refused:
            self._counted = True
            refused = scheduling.give(self._thread, self._schedule)
            if refused:
                self._uncount()
            else:
                self._stay_awake()
                self._warning = CAUTION.log(self._schedule)
        self._note("schedule", refused, had=bool(refused and LIMITS.share_of((self._publisher,))))
        waiting = _heirs.setdefault(self._publisher, [])
        if self in waiting:
            waiting.remove(self)
        if refused and self._schedule.policy == DEADLINE and self._publisher:
            waiting.append(self)
        if not waiting:
            del _heirs[self._publisher]

    def _uncount(self) -> None:
        if self._counted:
            LIMITS.give_back(self._schedule, self._publisher)
            self._counted = False

    def retire(self) -> None:
        """The end is about to be closed, its threads run still: give up what they reserved, to whoever waits for
        it."""
        with _turn:
            waiting = _heirs.get(self._publisher, [])
            if self in waiting:
                waiting.remove(self)
            if self._counted and self._schedule.policy == DEADLINE:
                scheduling.give(self._thread, Schedule())
            self._thread = 0
            self._uncount()
            for heir in list(waiting):
                heir._give()

    def _stay_awake(self) -> None:
        """Cores do not fall asleep while this end lives: waking them takes longer than a schedule saves."""
        if not self._awake and self._schedule.policy != OTHER:
            AWAKE.hold()
            self._awake = True

    def mark(self, sock: socket.socket) -> None:
        try:
            mark(sock, self.marking)
        except OSError as exc:
            self._note("marking", f"the kernel does not mark its packets: {exc.strerror}")

    def lock(self, fd: int) -> None:
        """Keep a ring in memory for as long as this end lives, all of it from now on: a page that was missing would
        hold up a thread with a schedule. Usual channels take memory as they need it."""
        if not self.asked.sched:
            return
        try:
            self._locked.append(_core.LockedMemory(fd))
            self._note("memory", "")
        except OSError as exc:
            self._note("memory", f"its memory is not locked ({exc.strerror}): raise LimitMEMLOCK=")

    def reserve(self, to: str) -> None:
        """Keep the channel's bandwidth for it on the link that packets to the address `to` leave by."""
        if not self.asked.bandwidth:
            return
        from ringcast.transport.urgent.links import LINKS, Refused  # only daemons whose channels want it load it

        stream = (self._publisher, to)
        try:
            self._reservation = LINKS.reserve(to, self.marking.dscp, self.asked.bandwidth_bps, stream)
            self._note("bandwidth", "")
        except Refused as exc:
            self._note("bandwidth", f"{_NOT_RESERVED}: {exc}", had=LINKS.holds(stream))

    def close(self) -> None:
        """Release what is held for it."""
        self.retire()
        if self._awake:
            AWAKE.release()
            self._awake = False
        if self._reservation is not None:
            from ringcast.transport.urgent.links import LINKS

            LINKS.release(self._reservation)
            self._reservation = None
        for memory in self._locked:
            memory.close()
        self._locked.clear()

    def in_force(self, sock: socket.socket | None, thread: int, *, own: bool) -> InForce:
        """`thread` is the one that carries the messages; 0 is a publisher's own."""
        marking = marking_of(sock) if sock is not None else None
        kept, missing = self._bandwidth()
        return InForce(
            dscp="" if marking is None else priority.name_of(marking.dscp),
            queue=None if marking is None else marking.queue,
            sched=scheduling.of(thread), thread=thread, own=own, bandwidth=kept,
            wake_us=AWAKE.in_force() if self.asked.sched else None,
            locked_bytes=sum(memory.bytes for memory in self._locked),
            refused="; ".join([*self._refused.values(), *missing]), lost="; ".join(self._just_lost(missing)),
            warning=self._warning,
        )  # fmt: skip

    def _just_lost(self, missing: list[str]) -> list[str]:
        """What the channel before had; once this one has been there for a while it is nobody's question any more."""
        return [*self._lost.values(), *missing] if time.monotonic() < self._since + LOST_S else []

    def _bandwidth(self) -> tuple[str, list[str]]:
        """What the kernel keeps for the channel, and what of it is missing."""
        reservation = self._reservation
        if reservation is None:
            return "", []
        from ringcast.transport.urgent.links import LINKS

        if reservation.waiting:
            return "", [f"{_NOT_RESERVED} yet: {reservation.waiting}"]
        bps = LINKS.in_force(reservation)
        kept = priority.show_rate(bps) if bps else ""
        return kept, [] if bps == reservation.bps else [f"the kernel keeps {kept or 'nothing'} of its bandwidth"]

    def _note(self, what: str, refused: str, *, had: bool = False) -> None:
        """`had`: the channel before, whose place this one takes."""
        self._refused.pop(what, None)
        self._lost.pop(what, None)
        if refused and had:
            self._lost[what] = refused
        if refused:
            self._refused[what] = refused
            logger.warning("a channel's priority %r is not in force: %s", self.asked.text, refused)

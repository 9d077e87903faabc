"""The priority of one end of a channel: its socket's marking, its threads' schedule, and what the kernel made of both.

Invariant: what cannot be put in force is told, and the channel works without it.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from ringcast import _core
from ringcast.control.status import InForce
from ringcast.model import priority
from ringcast.model.priority import MAX_DSCP
from ringcast.model.schedule import DEADLINE, OTHER
from ringcast.transport.addressing import mark, marking_of
from ringcast.transport.urgent import scheduling
from ringcast.transport.urgent.awake import AWAKE
from ringcast.transport.urgent.limits import LIMITS

if TYPE_CHECKING:
    from ringcast.transport.urgent.links import Reservation

logger = logging.getLogger("ringcast.transport")


RANKS = {2: -2, 0: 0, 6: 1}
"""By the socket's priority: bulk after all others, urgent before them."""


class Urgency:
    """Of one end. Raises ValueError when `text` is no priority."""

    def __init__(self, text: str) -> None:
        self.asked = priority.read(text)
        self.marking = self.asked.marking
        self._schedule = self.asked.schedule
        self._refused: dict[str, str] = {}
        self._locked: list[_core.LockedMemory] = []
        self._reservation: Reservation | None = None
        self._taken = 0.0
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
        refused = LIMITS.refusal(self._schedule) or scheduling.give(thread, self._schedule)
        if not refused:
            self._taken += LIMITS.take(self._schedule)
            self._stay_awake()
        self._note("schedule", refused)

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

        try:
            self._reservation = LINKS.reserve(to, self.marking.dscp, self.asked.bandwidth_bps)
            self._note("bandwidth", "")
        except Refused as exc:
            self._note("bandwidth", f"its bandwidth is not reserved: {exc}")

    def close(self) -> None:
        """Release what is held for it."""
        LIMITS.give_back(self._taken)
        self._taken = 0.0
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
        return InForce(
            dscp="" if marking is None else priority.name_of(marking.dscp),
            queue=None if marking is None else marking.queue,
            sched=scheduling.of(thread), thread=thread, own=own,
            bandwidth=priority.show_rate(self._reservation.bps) if self._reservation is not None else "",
            wake_us=AWAKE.in_force() if self.asked.sched else None,
            locked_bytes=sum(memory.bytes for memory in self._locked), refused="; ".join(self._refused.values()),
        )  # fmt: skip

    def _note(self, what: str, refused: str) -> None:
        self._refused.pop(what, None)
        if refused:
            self._refused[what] = refused
            logger.warning("a channel's priority %r is not in force: %s", self.asked.text, refused)

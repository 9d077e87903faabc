"""Threads of an application that read a subscription, and the schedule that they have from its channels.

Invariant: a thread that was given a schedule here has the usual policy again once it is let go of, or once the channels
have none; what the kernel refuses is logged, and the thread works without it.
"""

from __future__ import annotations

import logging
import threading

from ringcast.model import priority, schedule

logger = logging.getLogger("ringcast")


class UrgentThreads:
    """Of one subscription; any thread may call."""

    def __init__(self, asked: str = "") -> None:
        self._lock = threading.Lock()
        self._asked = asked
        self._channels: dict[int, str] = {}
        self._threads: dict[int, str | None] = {}  # by the kernel's number: a schedule of its own, or the channels'
        self._given: dict[int, str] = {}

    @property
    def sched(self) -> str:
        """That of the most urgent channel, or what the subscription asked for, one priority below the threads that
        deliver: those go first (paper 000, Figure 4). '' is none."""
        found = [priority.read(text).schedule for text in (self._asked, *self._channels.values()) if text]
        best = max(found, key=lambda one: one.rank, default=schedule.Schedule())
        return "" if best.policy == schedule.OTHER else best._replace(priority=max(best.priority - 1, 1)).text

    def asked(self, text: str) -> None:
        """The subscription asks for another priority."""
        with self._lock:
            self._asked = text
            self._follow()

    def channel(self, publisher: int, text: str) -> None:
        """A publisher's stream comes with that priority from now on."""
        with self._lock:
            if self._channels.get(publisher, "") == text:
                return
            self._channels[publisher] = text
            self._follow()

    def gone(self, publisher: int) -> None:
        """A publisher's stream comes no more: it left, or its channel ended."""
        with self._lock:
            if self._channels.pop(publisher, ""):
                self._follow()

    def take(self, sched: str | None = None) -> str:
        """Let the calling thread have the schedule of the channels, also when that changes, or one of its own. Returns
        what the kernel has. Raises ValueError."""
        thread = threading.get_native_id()
        wanted = sched if sched is None else schedule.read(sched or schedule.OTHER).text
        with self._lock:
            self._threads[thread] = wanted
            self._follow()
            if thread not in self._given:
                return schedule.OTHER
        from ringcast.transport.urgent import scheduling

        return scheduling.of(thread)

    def release(self) -> None:
        """The calling thread reads it no more."""
        with self._lock:
            self._let_go(threading.get_native_id())

    def close(self) -> None:
        """The subscription is closed: no thread reads it any more."""
        with self._lock:
            for thread in list(self._threads):
                self._let_go(thread)
            self._channels.clear()

    def _let_go(self, thread: int) -> None:
        self._threads.pop(thread, None)
        given = self._given.pop(thread, "")
        if given and _has(thread, given):  # or another subscription gave it a schedule since
            _give(thread, schedule.OTHER)

    def _follow(self) -> None:
        for thread, own in list(self._threads.items()):
            wanted = self.sched if own is None else own
            had = self._given.get(thread, "")
            if wanted == had or (wanted in ("", schedule.OTHER) and not had):
                continue
            if not _give(thread, wanted or schedule.OTHER):  # it has ended
                self._threads.pop(thread)
                self._given.pop(thread, None)
            elif wanted and wanted != schedule.OTHER:
                self._given[thread] = wanted
            else:
                self._given.pop(thread, None)


def _has(thread: int, text: str) -> bool:
    from ringcast.transport.urgent import scheduling

    return scheduling.of(thread) == text


def _give(thread: int, text: str) -> bool:
    """False when there is no such thread any more."""
    from ringcast.transport.urgent import scheduling  # only programs that use schedules load it
    from ringcast.transport.urgent.caution import CAUTION

    wanted = schedule.read(text)
    refused = scheduling.give(thread, wanted)
    if refused and not scheduling.of(thread):
        return False
    if refused:
        logger.warning("thread %d does not have the schedule %s: %s", thread, text, refused)
    else:
        CAUTION.log(wanted)
    return True

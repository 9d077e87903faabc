"""What became of messages on their way to this node, by tag: how many, and how many were late or lost.

An application's own counters say it where one of this node subscribes to the tag by name: it is its channel that is
judged, whatever transport that has. Where only wildcards do, or nobody, it is a subscription made for it, by the
transport that the tag comes with already. Where nothing comes the publishers' nodes are asked how far they are.
Invariant: what is counted as missed had the time of a whole look to come.
"""

from __future__ import annotations

import os
import select
import time
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from ringcast import _core
from ringcast.errors import RingcastError

if TYPE_CHECKING:
    from ringcast.control.status import SubscriberStatus
    from ringcast.session import Session
    from ringcast.subscriber import Subscriber


class Seen(NamedTuple):
    messages: int = 0
    missed: int = 0


class Arrivals:
    """Of tags that match the pattern; late is more than `deadline_ns` after sending."""

    def __init__(self, session: Session, pattern: str, deadline_ns: int) -> None:
        self._session = session
        self._pattern = pattern
        self._deadline_ns = deadline_ns
        self._own: dict[str, Subscriber[Any]] = {}
        self._counted: dict[str, dict[int, SubscriberStatus]] = {}
        self._sent: dict[str, list[int]] = {}

    def look(self, until: float) -> dict[str, Seen]:
        """What came until that monotonic time; tags without anything are left out."""
        for tag in [row.name for row in self._session.tags(self._pattern)]:
            self._follow(tag)
        found = self._receive(until)
        for tag in list(self._counted):
            found[tag] = self._count(tag)
        for tag in list(self._own) + list(self._counted):
            if found.get(tag, Seen()).messages:
                self._sent.pop(tag, None)
            elif unheard := self._unheard(tag):
                found[tag] = Seen(unheard, unheard)
        return {tag: seen for tag, seen in found.items() if seen.messages}

    def close(self) -> None:
        for subscriber in self._own.values():
            subscriber.close()
        self._own.clear()

    def _follow(self, tag: str) -> None:
        """By whom the tag is watched."""
        named = self._named(tag)
        if named:
            self._counted.setdefault(tag, named)
            if tag in self._own:
                self._own.pop(tag).close()
        elif tag not in self._own:
            self._counted.pop(tag, None)
            rows = [row for row in self._session.channels(why=False) if row.tag == tag and row.direction == "in"]
            usual = [row.transport for row in rows if not row.reliable]
            self._own[tag] = self._session.subscribe(tag, start="new", transport=usual[0] if usual else "")

    def _named(self, tag: str) -> dict[int, SubscriberStatus]:
        rows = self._session.tag(tag).subscribers(local=True)
        return {row.info.id: row for row in rows if row.info.pattern == tag and row.info.pid != os.getpid()}

    def _receive(self, until: float) -> dict[str, Seen]:
        seen: defaultdict[str, Seen] = defaultdict(Seen)
        tags = {subscriber.fileno(): tag for tag, subscriber in self._own.items()}
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select(list(tags), [], [], left)
            for tag in (tags[one] for one in ready):
                try:
                    messages = self._own[tag].recv_many(256, timeout=0)
                except TimeoutError:
                    continue
                for message in messages:
                    late = (message.arrived_ns or message.received_ns) - message.sent_ns > self._deadline_ns
                    before = seen[tag]
                    seen[tag] = Seen(before.messages + 1 + message.lost, before.missed + late + message.lost)
        return seen

    def _count(self, tag: str) -> Seen:
        """Of the application's subscriptions that were there at the look before."""
        before, now = self._counted[tag], self._named(tag)
        self._counted[tag] = now
        messages = missed = 0
        for number, row in now.items():
            if number in before:
                one = counted(before[number], row, self._deadline_ns)
                messages, missed = messages + one.messages, missed + one.missed
        return Seen(messages, missed)

    def _unheard(self, tag: str) -> int:
        """How many messages were sent during the look before this one; nothing has come of them until now."""
        sent = self._sent.setdefault(tag, [])
        try:
            sent.append(self._sent_so_far(tag))
        except (RingcastError, TimeoutError):  # the node does not answer, or nothing was ever sent
            return 0
        del sent[:-3]
        return max(0, sent[1] - sent[0]) if len(sent) == 3 else 0

    def _sent_so_far(self, tag: str) -> int:
        there = self._session.tag(tag)
        total = 0
        for row in there.publishers():
            if row.info.node != self._session.node:
                with there.history(publisher=row.info, at="publisher", encoded=True) as history:
                    total += history.bounds()[1] + 1
        return total


def counted(before: SubscriberStatus, now: SubscriberStatus, deadline_ns: int) -> Seen:
    """What happened to one subscription between two looks. Latencies are known by buckets; one that reaches past the
    deadline counts as late."""
    received, lost = (max(0, now.counters.get(name, 0) - before.counters.get(name, 0)) for name in ("received", "lost"))
    late = sum(
        max(0, count - earlier)
        for bucket, (count, earlier) in enumerate(zip_longest(now.latency, before.latency, fillvalue=0))
        if _core.latency_bucket_ns(bucket) > deadline_ns
    )
    return Seen(received + lost, min(received, late) + lost)

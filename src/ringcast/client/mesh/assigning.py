"""Priorities for all channels of the mesh, from what was declared: the shortest deadline first. Their order is that of
the whole mesh, also where only some are set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from ringcast.admission.priorities import assigned
from ringcast.client.attachment import Attachment
from ringcast.control.answers import PublisherListing, SubscriberListing, TagListing
from ringcast.control.requests import ListHistories, ListSubscribers, ListTags
from ringcast.control.status import PublisherStatus, SubscriberStatus
from ringcast.errors import QosMismatch
from ringcast.model.tag import check_pattern, matches


class Assigned(msgspec.Struct, frozen=True, kw_only=True):
    """What the channels of a tag to a node got, and for which deadline."""

    tag: str
    node: str
    deadline_s: float
    priority: str
    sched: str = ""
    refused: str = ""
    """Why the schedule is not set."""


class Sets(Protocol):
    _attachment: Attachment

    def set_channel(
        self, tag: str, *, node: str = "", priority: str | None = None, sched: str | None = None
    ) -> object: ...


def assign(session: Sets, pattern: str, *, dry_run: bool) -> list[Assigned]:
    """Raises as `Session.assign_priorities` does."""
    check_pattern(pattern)
    call = session._attachment.connection.call_pages
    deadlines: dict[tuple[str, str], float] = {}
    for tag in [row.name for page in call(ListTags(id=0), TagListing) for row in page.rows]:
        publishers = [row for page in call(ListHistories(id=0, tag=tag), PublisherListing) for row in page.rows]
        subscribers = [row for page in call(ListSubscribers(id=0, tag=tag), SubscriberListing) for row in page.rows]
        for node, deadline_s in wanted(publishers, subscribers).items():
            deadlines[tag, node] = deadline_s
    made = [
        Assigned(tag=tag, node=node, deadline_s=deadlines[tag, node], priority=level, sched=sched)
        for (tag, node), (level, sched) in assigned(deadlines).items()
        if matches(pattern, tag)
    ]
    made.sort(key=lambda one: (one.deadline_s, one.tag, one.node))
    return made if dry_run else [_set(session, one) for one in made]


def wanted(publishers: Iterable[PublisherStatus], subscribers: Sequence[SubscriberStatus]) -> dict[str, float]:
    """Pure. The deadline of a tag's channels to each node that receives it; nodes without one are left out."""
    periods = [row.declared.period_s for row in publishers if row.alive and row.declared is not None]
    found: dict[str, float] = {}
    for row in subscribers:
        deadline_s = row.deadline_s or min(periods, default=0.0)
        if deadline_s:
            found[row.info.node] = min(deadline_s, found.get(row.info.node, deadline_s))
    return found


def _set(session: Sets, one: Assigned) -> Assigned:
    try:
        session.set_channel(one.tag, node=one.node, priority=one.priority, sched=one.sched)
        return one
    except QosMismatch as exc:
        # An earlier schedule would not be what is said here, and its order not that of the deadlines.
        session.set_channel(one.tag, node=one.node, priority=one.priority, sched="")
        return msgspec.structs.replace(one, sched="", refused=str(exc))

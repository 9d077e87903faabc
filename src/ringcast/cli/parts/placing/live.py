"""`ringcast place --live`: the running mesh as a problem, and its plan put into force."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ringcast.errors import BrokenError
from ringcast.placement import explain
from ringcast.placement.mesh.live import Live, key_of, live
from ringcast.placement.model import PlacementError

if TYPE_CHECKING:
    from ringcast.control.placing import Observation, SubscriberPlace
    from ringcast.placement.model import Problem
    from ringcast.placement.plan import Plan
    from ringcast.session import Session

OPEN = ("daemon", "", "plan")
"""Whose words on a place may be replaced by a plan; not where one of them overrides what a subscriber asked for."""
PATIENCE_S = 10.0
_POLL_S = 0.05


def read(found: Observation, network: Problem | None, *, override: bool) -> Live:
    """Raises PlacementError."""

    def is_free(one: SubscriberPlace) -> bool:
        return override or (one.by in OPEN and not one.overrides)

    made = live(found, is_free, undecided=lambda _: False, network=network)
    if not made.who:
        raise PlacementError(
            "", "nothing to place: no tag that is being sent has a subscriber on another node (it takes two messages)"
        )
    return made


def notes(found: Observation, made: Live) -> list[str]:
    """What a reader of the plan should know."""
    said = [f"node {name} gave no report and is left out" for name in found.unanswered]
    kept = [one for one, free in zip(made.who, made.free, strict=True) if one.wanted.scales and not free]
    if kept:
        names = ", ".join(f"{one.tag} to {key_of(one)} at {one.at}" for one in kept[:5])
        said.append(f"{len(kept)} stay, because a subscriber or an administrator chose the place ({names}); --override")
    busy = [f"{report.node} {report.load:.0%}" for report in found.reports if report.load > 1]
    return said + ([f"more is runnable than there are cores: {', '.join(busy)}"] if busy else [])


def apply(session: Session, made: Live, plan: Plan) -> list[dict[str, Any]]:
    """Set the place of every proxy that the plan was free to choose, for its subscriber alone; return what was set once
    this node sees it. Streams move while messages flow, and nothing is lost.

    Raises BrokenError, QosMismatch, UnknownTag, DaemonUnavailable.
    """
    set_: list[dict[str, Any]] = []
    for index, one in enumerate(made.who):
        if made.free[index]:
            at = explain.word(made.case, made.case.streams[index], plan.places[index])
            session.set_channel(one.tag, node=one.node, subscriber=one.id, at=at, planned=True)
            set_.append({"tag": one.tag, "subscriber": key_of(one), "before": one.at, "at": at})
    _await(session, {(row["tag"], row["subscriber"]): row["at"] for row in set_})
    return set_


def _await(session: Session, wanted: dict[tuple[str, str], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = {_key(one): one.at for one in session.observe(measured=False).subscribers}
        late = [key for key, at in wanted.items() if key in seen and seen[key] != at]
        if not late:
            return
        if time.monotonic() > deadline:
            raise BrokenError(f"this node has not heard of the new place of {late[0]} within {PATIENCE_S:g} s")
        time.sleep(_POLL_S)


def _key(one: SubscriberPlace) -> tuple[str, str]:
    return one.tag, key_of(one)

"""The mesh as `ringcast nodes` and `ringcast doctor` show it."""

from __future__ import annotations

import msgspec

from ringcast.control.status import NodeStatus
from ringcast.daemon.mesh.core.membership import Membership
from ringcast.daemon.mesh.core.roster import Status
from ringcast.daemon.mesh.scouting import ScoutStatus

_STATES = {Status.ALIVE: "here", Status.SUSPECT: "suspect", Status.DEAD: "gone"}


class MeshStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `ringcast doctor` says of the mesh."""

    serving: bool
    links: int
    strangers_refused: int
    bad_messages: int
    slow_links: int
    refused: dict[str, int]
    """What was not believed of others or not done for them, by reason."""
    foreign: int
    """Links refused because the other end is of another mesh."""
    refusals: dict[str, str]
    """{address: why this daemon and the one there have no link}"""
    scouting: list[ScoutStatus]


def node_statuses(membership: Membership) -> list[NodeStatus]:
    """Everybody known, this node too."""
    rows = []
    for member in membership.roster.members.values():
        record = member.record
        holder = membership.roster.holder(record.name)
        gone = member.status is Status.DEAD
        conflict = not gone and holder is not None and holder.incarnation != record.incarnation
        rows.append(
            NodeStatus(
                name=record.name, state="conflict" if conflict else _STATES[member.status],
                me=record.incarnation == membership.me.incarnation,
                linked=membership.links.to(record.incarnation) is not None, incarnation=record.incarnation,
                control=record.control, data=record.data,
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (row.name, row.incarnation))

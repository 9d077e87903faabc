"""One node's whole part in the mesh: membership and gossip over one tag table. Pure: `(event, now_ns) -> actions`.

The shell (`ringcast.daemon.mesh`) and the simulation (`ringcast.lab.mesh_simulation`) drive this very code. Invariant:
what membership says of nodes, gossip has been told before the actions are returned; a daemon that yields its name
neither tells nor takes rows.
"""

from __future__ import annotations

from random import Random

from ringcast.control.peering import NodeRecord, Replication, TableDelta, TableDigest, TableSummary
from ringcast.daemon.events import (
    Action,
    Announce,
    Event,
    Linked,
    LocalChanges,
    NodeChanged,
    NodeDown,
    NodeRestarted,
    NodeUp,
    Offence,
    Received,
    Tick,
    Unlinked,
)
from ringcast.daemon.gossip import Gossip
from ringcast.daemon.membership import Membership
from ringcast.daemon.table import TagTable
from ringcast.daemon.timing import Timing
from ringcast.errors import BadMessage

_REPLICATION = (TableSummary, TableDigest, TableDelta)


class Cluster:
    """The node that `table` belongs to, in the life of the daemon numbered `incarnation`."""

    def __init__(
        self,
        table: TagTable,
        incarnation: int,
        *,
        rng: Random,
        now_ns: int,
        control: tuple[str, ...] = (),
        data: tuple[str, ...] = (),
        seeds: tuple[str, ...] = (),
        mesh: str = "",
        timing: Timing | None = None,
    ) -> None:
        timing = timing or Timing()
        me = NodeRecord(table.node, incarnation, 0, table.incarnation, control, data)
        self.table = table
        self.membership = Membership(me, rng=rng, now_ns=now_ns, seeds=seeds, mesh=mesh, timing=timing)
        self.offences = 0
        """Links closed because of what came by them."""
        self._gossip = Gossip(table, self.membership.links, timing, rng, now_ns)

    def due_ns(self) -> int | None:
        """When `Tick` is to come; None when nothing will happen without another event."""
        times = [time for time in (self.membership.due_ns(), self._gossip.due_ns()) if time is not None]
        return min(times, default=None)

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        if isinstance(event, LocalChanges):
            return self._gossip.local(event.changes, now_ns)
        if isinstance(event, Received) and isinstance(event.message, _REPLICATION):
            peer = self.membership.peer(event.link)
            if peer is not None:
                return self._replicate(event.link, peer, event.message, now_ns)
        if isinstance(event, Offence):
            self.offences += 1
        actions = self.membership.handle(event, now_ns)
        self._gossip.silent = not self.membership.serving
        for action in list(actions):
            actions += self._follow(action, now_ns)
        if isinstance(event, Tick):
            actions += self._gossip.tick(now_ns)
        return actions

    def _replicate(self, link: int, peer: NodeRecord, message: Replication, now_ns: int) -> list[Action]:
        if peer.yields or not self.membership.serving:
            return []
        try:
            actions = self._gossip.handle(link, peer, message, now_ns)
        except BadMessage as exc:
            return self.handle(Offence(link, exc.reason), now_ns)
        if self.table.incarnation != self.membership.me.life:
            self.membership.roster.describe(life=self.table.incarnation)
            actions += self.membership.handle(Announce(), now_ns)
        return actions

    def _follow(self, action: Action, now_ns: int) -> list[Action]:
        """What an action of membership means for the table."""
        if isinstance(action, NodeUp | NodeChanged):
            return self._gossip.node_up(action.record, now_ns)
        if isinstance(action, NodeRestarted):
            return self._gossip.node_down(action.old.name, now_ns) + self._gossip.node_up(action.new, now_ns)
        if isinstance(action, NodeDown):
            return self._gossip.node_down(action.record.name, now_ns)
        if isinstance(action, Unlinked):
            self._gossip.unlinked(action.record.incarnation)
        elif isinstance(action, Linked) and action.record.incarnation > self.membership.me.incarnation:
            return self._gossip.compare(action.link)
        return []

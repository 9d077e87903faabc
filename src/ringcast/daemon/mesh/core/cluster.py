"""One node's whole part in the mesh: membership and gossip over one tag table. Pure: `(event, now_ns) -> actions`.

The shell (`ringcast.daemon.mesh.shell`) and the simulation (`ringcast.lab.simulation.many_nodes`) drive this very code.
Invariant: what membership says of nodes, gossip has been told before the actions are returned; a daemon that yields
its name neither tells nor takes rows.
"""

from __future__ import annotations

from random import Random

from ringcast.control.peering import NodeRecord, Replication, TableDelta, TableDigest, TableSummary
from ringcast.daemon.mesh.core.events import (
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
from ringcast.daemon.mesh.core.gossip import Gossip
from ringcast.daemon.mesh.core.membership import Membership
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.table.table import TagTable
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
        self.membership = Membership(
            me, rng=rng, now_ns=now_ns, seeds=seeds, mesh=mesh, timing=timing, refused=table.refused
        )  # fmt: skip
        self.offences = 0
        """Links closed because of what came by them."""
        self._gossip = Gossip(table, self.membership.links, timing, rng, now_ns)

    def due_ns(self) -> int | None:
        """When `Tick` is to come; None when nothing will happen without another event."""
        times = [time for time in (self.membership.due_ns(), self._gossip.due_ns()) if time is not None]
        return min(times, default=None)

    def version_of(self, node: str) -> tuple[int, int]:
        """The life and version up to which that node's rows are known here."""
        return self._gossip.version_of(node)

    def sums(self) -> tuple[int, int]:
        """Equal on nodes that know of the same nodes and the same rows."""
        return self.membership.roster.keyed_sums.total, self._gossip.sum

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        actions: list[Action] = []
        if isinstance(event, LocalChanges):
            self._gossip.local(event.changes)
        elif isinstance(event, Received) and isinstance(event.message, _REPLICATION):
            actions = self._replicate(event.link, event.message, now_ns)
        else:
            self.offences += isinstance(event, Offence)
            actions = self.membership.handle(event, now_ns)
            if isinstance(event, Tick):
                self._gossip.tick(now_ns)
        for action in actions:
            self._follow(action)
        self._gossip.silent = not self.membership.serving
        return actions + self._gossip.finish(now_ns)

    def _replicate(self, link: int, message: Replication, now_ns: int) -> list[Action]:
        peer = self.membership.peer(link)
        if peer is None:
            return self.membership.handle(Offence(link, "rows before hello"), now_ns)
        if peer.yields or not self.membership.serving:
            return []
        try:
            self._gossip.hear(link, peer, message, now_ns)
        except BadMessage as exc:
            self.offences += 1
            return self.membership.handle(Offence(link, exc.reason), now_ns)
        if self.table.incarnation == self.membership.me.life:
            return []
        self.membership.roster.describe(life=self.table.incarnation)
        return self.membership.handle(Announce(), now_ns)

    def _follow(self, action: Action) -> None:
        """What an action of membership means for the table."""
        if isinstance(action, NodeUp | NodeChanged):
            self._gossip.node_up(action.record)
        elif isinstance(action, NodeRestarted):
            self._gossip.node_down(action.old.name)
            self._gossip.node_up(action.new)
        elif isinstance(action, NodeDown):
            self._gossip.node_down(action.record.name)
        elif isinstance(action, Unlinked):
            self._gossip.unlinked(action.record.incarnation)
        elif isinstance(action, Linked) and action.record.incarnation > self.membership.me.incarnation:
            self._gossip.compare(action.link)

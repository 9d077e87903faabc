"""Coming and going of nodes, publishers and subscribers, as values that an application can watch. Pure.

Invariant: of one thing, `came` and `went` alternate, starting with `came`; a ring that outlived its publisher, and a
row that changes in other ways, say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.daemon.mesh.core.events import Action, NodeDown, NodeRestarted, NodeUp
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, Row, SubscriberRow
from ringcast.model.identity import Presence, PublisherInfo, SubscriberInfo


class Liveliness:
    """Remembers who is there, so that each coming and going is told once. `me` is the node it is on, which stays."""

    def __init__(self, me: str = "") -> None:
        self._me = me
        self._nodes: dict[str, int] = {}
        self._rows: dict[tuple[str, str], PublisherInfo | SubscriberInfo] = {}

    def current(self) -> list[Presence]:
        """All that is there, as if it came now: for one who begins to watch."""
        nodes = [Presence(kind="node", came=True, node=name) for name in sorted({*self._nodes, self._me} - {""})]
        return nodes + [_presence(info, came=True) for info in self._rows.values()]

    def of_actions(self, actions: Iterable[Action]) -> list[Presence]:
        """What the mesh's actions mean for nodes."""
        found: list[Presence] = []
        for action in actions:
            if isinstance(action, NodeUp):
                found += self._node(action.record.name, action.record.incarnation)
            elif isinstance(action, NodeDown):
                found += self._node(action.record.name, None)
            elif isinstance(action, NodeRestarted):
                found += self._node(action.old.name, None) + self._node(action.new.name, action.new.incarnation)
        return found

    def of_changes(self, changes: Iterable[Change]) -> list[Presence]:
        """What changes of the table, this node's own too, mean for publishers and subscribers."""
        found: list[Presence] = []
        for kind, row in changes:
            where = (row.owner, row.key)
            new = _info(row) if kind is not ChangeKind.REMOVED else None
            old = self._rows.get(where)
            if old == new:
                continue
            if old is not None:
                del self._rows[where]
                found.append(_presence(old, came=False))
            if new is not None:
                self._rows[where] = new
                found.append(_presence(new, came=True))
        return found

    def _node(self, name: str, incarnation: int | None) -> list[Presence]:
        if self._nodes.get(name) == incarnation:
            return []
        was_here = self._nodes.pop(name, None) is not None
        if incarnation is not None:
            self._nodes[name] = incarnation
            return [Presence(kind="node", came=True, node=name)]
        return [Presence(kind="node", came=False, node=name)] if was_here else []


def _info(row: Row) -> PublisherInfo | SubscriberInfo | None:
    if (isinstance(row, SubscriberRow) and not row.pulls_s) or (isinstance(row, PublisherRow) and row.alive):
        return row.info
    return None


def _presence(info: PublisherInfo | SubscriberInfo, *, came: bool) -> Presence:
    if isinstance(info, PublisherInfo):
        return Presence(kind="publisher", came=came, node=info.node, publisher=info)
    return Presence(kind="subscriber", came=came, node=info.node, subscriber=info)

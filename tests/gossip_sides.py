"""Nodes' tables for tests, whose gossip is carried from one to the other by hand."""

from __future__ import annotations

from random import Random
from typing import Any

from ringcast.control.peering import NodeRecord
from ringcast.daemon.mesh.core.events import Action, Send
from ringcast.daemon.mesh.core.gossip import Gossip
from ringcast.daemon.mesh.core.links import Link, Links
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.table.rows import (
    PublisherRow,
    SubscriberRow,
    TagRow,
)
from ringcast.daemon.table.table import TagTable
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes

NUMBERS = {"a": 1, "b": 2, "c": 3}


def pub(node: str, number: int, tag: str = "t", alive: bool = True) -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=tag, incarnation=number, pid=1, user="u")
    return PublisherRow(info=info, depth=8, capacity_bytes=64, alive=alive)


def sub(node: str, number: int, pattern: str = "t") -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=number, node=node, pattern=pattern, pid=1, user="u"))


class Side:
    """A node's table and gossip, linked with everybody."""

    def __init__(self, name: str, life: int = 10) -> None:
        self.table = TagTable(name, life)
        self.record = NodeRecord(name, NUMBERS[name], 0, life)
        self.links = Links(self.record.incarnation, Timing(), Random(1))
        self.gossip = Gossip(self.table, self.links, Timing(), Random(1), 0)

    def meet(self, other: Side) -> None:
        link = Link(other.record.incarnation, None, 0, 0)
        self.links.add(link)
        self.links.identify(link, other.record.incarnation)
        self.gossip.node_up(other.record)
        self.gossip.finish(0)

    def put(self, *rows: Any) -> list[Action]:
        self.gossip.local([change for row in rows for change in self.table.put(row)])
        return self.gossip.finish(0)

    def hear(self, other: Side, message: Any) -> list[Action]:
        self.gossip.hear(other.record.incarnation, other.record, message, 0)
        return self.gossip.finish(0)

    def ids(self, tag: str = "t") -> list[int]:
        return sorted(row.info.id for row in self.table.publishers(tag))


def sent(actions: list[Action], kind: type) -> list[Any]:
    return [a.message for a in actions if isinstance(a, Send) and isinstance(a.message, kind)]


def pair() -> tuple[Side, Side]:
    a, b = Side("a"), Side("b")
    a.meet(b)
    b.meet(a)
    return a, b


def compare(a: Side, b: Side) -> None:
    """Carry messages between the two until they have nothing more to say."""
    a.gossip.compare(NUMBERS[b.record.name])
    waiting = [(b, a, action.message) for action in a.gossip.finish(0) if isinstance(action, Send)]
    for _ in range(100):
        if not waiting:
            return
        to, sender, message = waiting.pop(0)
        for action in to.hear(sender, message):
            if isinstance(action, Send):
                waiting.append((sender, to, action.message))
    raise AssertionError("they never stop")


def tag_row(primary: str, backup: str = "", **fields: Any) -> TagRow:
    attributes = TagAttributes(depth=fields.pop("depth", 8))
    return TagRow(name="t", attributes=attributes, primary=primary, backup=backup, **fields)

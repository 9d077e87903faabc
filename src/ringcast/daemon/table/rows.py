"""What the tag table holds: rows, each owned by one node, and the changes that a shell reacts to. Pure values.

A row is only ever written by the node that owns it; `key` names it among that node's rows. Histories have no row: they
do not count as subscribers.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeGuard

import msgspec

from ringcast.model.carrier import Chosen
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Placed, Setting, Wanted
from ringcast.model.profile import Profile
from ringcast.model.tag import TagAttributes


class TagRow(msgspec.Struct, frozen=True, kw_only=True, tag="tag"):
    """A tag as its primary node holds it; the backup takes over when the primary goes.

    `born` is a logical time: of two nodes that create one tag without knowing of each other, the earlier wins. `term`
    counts take-overs: of rows born together, the later term wins. One that is `destroyed` says that no row born with it
    counts any more; a row that is merely missing says nothing of the kind.
    """

    name: str
    attributes: TagAttributes
    primary: str
    backup: str = ""
    born: int = 0
    term: int = 0
    settings: dict[str, Setting] = {}
    """By the node that receives, or by one subscriber there (`subscriber_key`); '' is every node."""
    stamps: dict[str, tuple[int, str]] = {}
    """Of each setting, also of those taken back: its number, and the node that wrote it down (`settings.py`)."""
    destroyed: bool = False
    placed: dict[str, Placed] = {}
    """Where the primary put the proxies of those who left it to it, by subscriber."""
    chosen: dict[str, Chosen] = {}
    """Which transport the primary chose for those who left it to it, by `choice_key`."""

    @property
    def owner(self) -> str:
        return self.primary

    @property
    def key(self) -> str:
        return tag_key(self.name)


class PublisherRow(msgspec.Struct, frozen=True, kw_only=True, tag="pub"):
    """A publisher, or with `alive` False the ring it left behind on its node; what it sent ends before `end`."""

    info: PublisherInfo
    depth: int
    capacity_bytes: int
    alive: bool = True
    end: int = 0
    declared: Declared | None = None
    offered: Profile | None = None
    since: int = 0
    """Of a declared one, a logical time: later than all declarations that its node knew of when it let it in."""

    @property
    def owner(self) -> str:
        return self.info.node

    @property
    def key(self) -> str:
        return publisher_key(self.info.id)


class SubscriberRow(msgspec.Struct, frozen=True, kw_only=True, tag="sub"):
    info: SubscriberInfo
    wanted: Wanted = Wanted()
    deadline_s: float = 0.0
    """From sending to receiving; 0 is none. Of a pull client, how old what it gets may be."""
    pulls_s: float = 0.0
    """How often a declared pull client asks at most: nothing is sent to it, and it is nobody's subscriber. 0 is one
    that subscribes."""
    transport: str = ""
    """What it asked to get its streams by; '' leaves it to others, also where it is to be chosen (`wanted`)."""
    since: int = 0
    """Of one with a deadline, as a publisher's."""

    @property
    def owner(self) -> str:
        return self.info.node

    @property
    def key(self) -> str:
        return subscriber_key(self.info.id)


Row = TagRow | PublisherRow | SubscriberRow
Declaration = PublisherRow | SubscriberRow


def is_declaration(row: Row) -> TypeGuard[Declaration]:
    """Whether it is one of those that admission judges by."""
    if isinstance(row, PublisherRow):
        return row.declared is not None and row.alive
    return isinstance(row, SubscriberRow) and (row.deadline_s > 0 or row.pulls_s > 0)


def declaration_key(row: Declaration) -> tuple[int, str, int]:
    """All nodes have declarations in this order; one that knew of another comes after it."""
    return row.since, row.owner, row.info.id


def tag_key(name: str) -> str:
    return f"tag:{name}"


def publisher_key(number: int) -> str:
    return f"pub:{number}"


def subscriber_key(number: int) -> str:
    return f"sub:{number}"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A row at a version of its owner; without a row it is a tombstone."""

    key: str
    version: int
    row: Row | None


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened to one node's rows after version `since` and up to `through`.

    Complete: a key last written within that span and not among `entries` is gone, and its tombstone was forgotten
    (at a version of at most `floor`), or it was written again later.
    """

    node: str
    incarnation: int
    since: int
    through: int
    floor: int
    entries: list[Entry]


class ChangeKind(enum.Enum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Change(NamedTuple):
    """What a mutation did to the table as it is seen here."""

    kind: ChangeKind
    row: Row

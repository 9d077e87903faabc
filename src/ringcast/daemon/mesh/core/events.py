"""What the pure core of the mesh is told, and what it wants done. Values only.

Links are numbers that the shell gives, never twice the same; a link is between two daemons, of which each says first
who it is. An address is text, `host:port`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ringcast.control.peering import NodeRecord, PeerMessage
from ringcast.daemon.table.rows import Change, TagRow

# ------------------------------------------------------------------ events


class LinkUp(NamedTuple):
    """A link stands. `address` is what was dialled, None when the other side did."""

    link: int
    address: str | None


class LinkDown(NamedTuple):
    link: int


class DialFailed(NamedTuple):
    """`refused`: the host answers, and nobody listens there."""

    address: str
    refused: bool


class Received(NamedTuple):
    link: int
    message: PeerMessage


class Offence(NamedTuple):
    """What came by the link cannot be understood, or must not be."""

    link: int
    reason: str


class Scouted(NamedTuple):
    """A daemon called out that it listens there."""

    address: str
    incarnation: int


class Announce(NamedTuple):
    """This node can be reached at these addresses from now on; None leaves them as they are."""

    control: tuple[str, ...] | None = None
    data: tuple[str, ...] | None = None


class Wanted(NamedTuple):
    """Somebody here needs a link to that node."""

    node: str


class Doubted(NamedTuple):
    """Somebody here must know whether the daemon at the other end of the link is where it says."""

    link: int


class Seeds(NamedTuple):
    """Others may be found at these addresses, in place of those before."""

    addresses: tuple[str, ...]


class LocalChanges(NamedTuple):
    """This node's own rows changed."""

    changes: list[Change]


class Leave(NamedTuple):
    """This node is about to end."""


class Tick(NamedTuple):
    """It is `due_ns`, or later."""


Event = (
    LinkUp | LinkDown | DialFailed | Received | Offence | Scouted | Announce | Wanted | Doubted | Seeds | LocalChanges
    | Leave | Tick
)  # fmt: skip

# ------------------------------------------------------------------ actions


class Connect(NamedTuple):
    """Dial; LinkUp or DialFailed follows."""

    address: str


class Close(NamedTuple):
    """End a link once what was sent is out; LinkDown need not follow. With `gently`, let requests on it finish."""

    link: int
    reason: str
    gently: bool = False


class Send(NamedTuple):
    link: int
    message: PeerMessage


class Foreign(NamedTuple):
    """The link's other end is of another mesh, and is refused."""

    link: int
    mesh: str
    reason: str


class Linked(NamedTuple):
    """The link's other end said who it is; it is the only link with that node."""

    link: int
    record: NodeRecord


class Unlinked(NamedTuple):
    """The last link with that node is gone."""

    record: NodeRecord


class NodeUp(NamedTuple):
    record: NodeRecord


class NodeChanged(NamedTuple):
    """The same daemon, with another life of its rows or other addresses."""

    record: NodeRecord


class NodeDown(NamedTuple):
    record: NodeRecord


class NodeRestarted(NamedTuple):
    """The name went from one daemon to another: what the old one said is void."""

    old: NodeRecord
    new: NodeRecord


class NameConflict(NamedTuple):
    """Two living daemons met under one name. With `mine`, this one is the younger and must not serve."""

    holder: NodeRecord
    other: NodeRecord
    mine: bool

    def __str__(self) -> str:
        if not self.mine:
            where = ", ".join(self.other.control) or "an unknown address"
            return f"a second daemon calls itself {self.holder.name!r} (at {where}); it was told to stand back"
        where = ", ".join(self.holder.control) or "an unknown address"
        return (
            f"an older daemon at {where} is called {self.holder.name!r} too; this one serves nobody until that one is "
            "gone. Start it with another name: ringcast daemon --name NAME"
        )


class NameCleared(NamedTuple):
    """The other daemon of this node's name is gone: this one serves."""

    record: NodeRecord


class TagContest(NamedTuple):
    """A tag was created on two sides that did not know of each other; `lost` was this node's row and is withdrawn."""

    won: TagRow
    lost: TagRow

    def __str__(self) -> str:
        won, lost = msgspec.structs.asdict(self.won.attributes), msgspec.structs.asdict(self.lost.attributes)
        differ = [f"{name} is {won[name]!r} now, not {lost[name]!r}" for name in won if won[name] != lost[name]]
        outcome = "; ".join(differ) or "both had the same attributes"
        return (
            f"tag {self.won.name!r} was created on {self.won.primary!r} and on {self.lost.primary!r} while they did "
            f"not see each other; that of {self.won.primary!r} counts: {outcome}"
        )


class Changed(NamedTuple):
    """The table, as it is seen here, changed by what other nodes did or by their coming and going."""

    changes: list[Change]


Action = (
    Connect | Close | Send | Linked | Unlinked | NodeUp | NodeChanged | NodeDown | NodeRestarted | NameConflict
    | NameCleared | TagContest | Changed | Foreign
)  # fmt: skip

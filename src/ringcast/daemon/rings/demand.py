"""What is wanted of a stream: by a subscriber, from another node, and from a stage on this node. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ringcast.daemon.table.rows import PublisherRow
from ringcast.model.carrier import is_automatic
from ringcast.model.place import AUTO, Wanted
from ringcast.scaling.fidelity import Range


class SubscribeOptions(NamedTuple):
    """What a subscriber asked for; `at` may be "auto" and `transport` empty."""

    every: int = 1
    at: str = AUTO
    transport: str = ""
    reliable: bool = False
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    ordered: bool = True
    priority: str = ""
    range: Range | None = None
    """Within which `rate_hz` and `size` may be changed, by what fits."""
    only_best: bool = False
    """Of the tags that match, the one whose stream has the highest fidelity."""

    @property
    def wanted(self) -> Wanted:
        """What other nodes are told of it."""
        chosen = self.transport if is_automatic(self.transport) else ""
        return Wanted(
            every=self.every, at=self.at, size=self.size, rate_hz=self.rate_hz, transport=chosen, ordered=self.ordered,
            range_hz=self.range.hz if self.range is not None else None,
            range_size=self.range.size if self.range is not None else None,
        )  # fmt: skip


class Demand(NamedTuple):
    """How a stream of another node comes to this one. Equal demands on a node share channels and mirrors."""

    every: int = 1
    at: str = "publisher"
    transport: str = "udp"
    reliable: bool = False
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    depth: int = 0
    """Of a pull buffer, how many messages it holds; 0 is as many as the publisher's ring does."""
    priority: str = ""
    """How urgent it is, settled (`ringcast.model.priority`): subscribers of different classes have channels apart."""
    reader: tuple[int, int] | None = None
    """The client and subscription that receives it itself, being the only one here; None has the daemon receive."""

    @property
    def history(self) -> tuple[object, ...]:
        """Equal for mirrors that hold the same messages."""
        return self.every, self.size, self.rate_hz, self.depth


class StageSpec(NamedTuple):
    """A publisher's stream as a stage on this node makes it. Equal specs share one stage and one ring."""

    incarnation: int
    size: tuple[int, int]
    every: int = 1
    rate_hz: float = 0.0
    here: bool = False
    """In a process of its own on this node, and not in the publisher's."""
    reliable: bool = False
    """The source waits for the stage; one in the publisher's process never falls behind."""
    priority: str = ""
    """Of a process of its own: what its first hop and its thread have (`ringcast.model.priority`). In the publisher's
    process, stages run in the publisher's threads."""


def spec_of(row: PublisherRow, demand: Demand, node: str) -> StageSpec | None:
    """The stage that this node needs for subscribers here with that demand; None when it needs none."""
    own = row.owner == node
    if demand.size is None or not (own or demand.at == f"node:{node}"):
        return None
    here = demand.at.startswith("node:")
    return StageSpec(
        row.info.incarnation, demand.size, demand.every, demand.rate_hz, here, reliable=here and demand.reliable,
        priority=demand.priority if here else "",
    )  # fmt: skip

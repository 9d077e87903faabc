"""The mesh's declared streams, as the tag table has them, as a system that can be judged. Pure.

Only what was declared counts: a publisher with a period, and its subscribers. Of other nodes counts what they said of
themselves. Of one that said nothing as little is assumed as possible: one core, and what stages take here.
"""

from __future__ import annotations

from typing import Protocol

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import Costs, Link, Node, Pull, Stream, Subscriber, System
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.declared import Declared
from ringcast.model.place import AUTO, PUBLISHER, node_of
from ringcast.model.tag import TagAttributes
from ringcast.scaling.scaled_bytes import scaled_bytes
from ringcast.scaling.temporal import factor


class Said(Protocol):
    @property
    def cores(self) -> int: ...
    @property
    def costs(self) -> Costs: ...
    @property
    def blocking_s(self) -> float: ...
    @property
    def preemption_s(self) -> float: ...
    @property
    def waking_s(self) -> float: ...


class Others(Protocol):
    """What is known of other nodes: None and 0 are nothing."""

    def of(self, node: str) -> Said | None: ...

    def way(self, a: str, b: str) -> tuple[float, float]:
        """Bytes per second, and seconds."""


LINK_RATE = 12.5e6
"""Bytes per second between two nodes when nobody knows better: 100 Mbit/s."""
LINK_LATENCY_S = 1e-3


def declared_system(
    table: TagTable, found: Calibration, more_publishers: list[PublisherRow], more_subscribers: list[SubscriberRow],
    others: Others | None = None,
) -> System:  # fmt: skip
    """With publishers and subscribers that are not in the table yet."""
    rows = [row for row in [*table.all_publishers(), *more_publishers] if row.declared is not None and row.alive]
    streams = [_stream(table, row, more_subscribers) for row in rows]
    names = list(dict.fromkeys([
        table.node,
        *(name for one in streams for name in [one.node, *(client.node for client in _clients(one))]),
        *(node_of(client.at) for one in streams for client in _clients(one) if node_of(client.at)),
    ]))  # fmt: skip
    nodes = tuple(_node(name, found, own=name == table.node, others=others) for name in names)
    links = tuple(_link(a, b, others) for i, a in enumerate(names) for b in names[i + 1 :])
    return System(nodes=nodes, links=links, streams=tuple(streams), costs=found.costs)


def _clients(stream: Stream) -> list[Subscriber | Pull]:
    return [*stream.subscribers, *stream.pulls]


def _node(name: str, found: Calibration, *, own: bool, others: Others | None) -> Node:
    said = others.of(name) if others is not None and not own else None
    if said is not None:
        return Node(
            name=name, cores=said.cores, blocking_s=said.blocking_s, preemption_s=said.preemption_s,
            waking_s=said.waking_s, costs=said.costs,
        )  # fmt: skip
    return found.node(name, found.machine.cores if own else 1)


def _link(a: str, b: str, others: Others | None) -> Link:
    rate, latency_s = others.way(a, b) if others is not None else (0.0, 0.0)
    return Link(a=a, b=b, bandwidth=rate or LINK_RATE, latency_s=latency_s or LINK_LATENCY_S)


def _stream(table: TagTable, row: PublisherRow, more: list[SubscriberRow]) -> Stream:
    assert row.declared is not None
    said = row.declared
    tag = row.info.tag
    newcomers = [one for one in more if one.info.pattern == tag]
    wanting = [*table.subscribers(tag), *(one for one in newcomers if not one.pulls_s)]
    pulling = [*table.pulls(tag), *(one for one in newcomers if one.pulls_s)]
    return Stream(
        tag=stream_name(row), node=row.owner, period_s=said.period_s, bytes=float(said.max_bytes),
        compute_s=said.compute_s, jitter_s=said.jitter_s,
        transport="tcp" if any(one.info.reliable for one in wanting) else "nak",
        subscribers=tuple(_subscriber(one, said, _attributes(table, tag)) for one in wanting),
        pulls=tuple(_pull(one) for one in pulling),
    )  # fmt: skip


def stream_name(row: PublisherRow) -> str:
    return f"{row.info.tag} of {row.owner}#{row.info.id}"


def subscriber_name(row: SubscriberRow) -> str:
    return f"{row.owner}#{row.info.id}"


def _pull(row: SubscriberRow) -> Pull:
    return Pull(
        name=subscriber_name(row), node=row.owner, period_s=row.pulls_s, max_age_s=row.deadline_s or None,
        at=row.wanted.at,
    )  # fmt: skip


def _attributes(table: TagTable, tag: str) -> TagAttributes:
    known = table.tag(tag)
    return known.attributes if known is not None else TagAttributes()


def _subscriber(row: SubscriberRow, said: Declared, attributes: TagAttributes) -> Subscriber:
    wanted = row.wanted
    every = wanted.every if not wanted.rate_hz else factor(wanted.rate_hz, 1 / said.period_s)
    sizes, scaled = None, None
    if wanted.range_size is not None:
        least, most = (scaled_bytes(attributes, said.max_bytes, size) for size in wanted.range_size)
        sizes = least, most
    elif wanted.size is not None:
        scaled = scaled_bytes(attributes, said.max_bytes, wanted.size)
    return Subscriber(
        name=subscriber_name(row), node=row.owner, deadline_s=row.deadline_s or None,
        every=every if wanted.range_hz is None else 1, rate_hz=wanted.range_hz,
        scaled_bytes=scaled, sizes=sizes, at=PUBLISHER if wanted.at == AUTO else wanted.at,
    )  # fmt: skip

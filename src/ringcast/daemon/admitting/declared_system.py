"""The mesh's declared streams, as the tag table has them, as a system that can be judged. Pure.

Only what was declared counts: a publisher with a period, and its subscribers. Of other nodes counts what they said of
themselves. Of one that said nothing as little is assumed as possible: one core, and what stages take here.

Every node has one card, which all that it sends shares, and all that it receives. What is lost on the way is what
channels between the two nodes have lost of late; where none measured it, a message may be lost once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import CLASSES, Class, Costs, Link, Node, Pull, Stream, Subscriber, System
from ringcast.admission.priorities import by_default
from ringcast.daemon.rings.demand import SubscribeOptions
from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import Declaration, PublisherRow, SubscriberRow, TagRow, is_declaration
from ringcast.daemon.table.table import TagTable
from ringcast.errors import QosMismatch, RingcastError
from ringcast.model.declared import Declared
from ringcast.model.place import AUTO, PUBLISHER, node_of
from ringcast.model.priority import read as read_priority
from ringcast.model.priority import settled_parts
from ringcast.model.tag import TagAttributes
from ringcast.scaling.scaled_bytes import scaled_bytes
from ringcast.scaling.temporal import factor
from ringcast.transport import find
from ringcast.transport.recipe import read as recipe


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

    def card(self, node: str) -> float:
        """Bytes per second."""

    def latency_s(self, a: str, b: str) -> float: ...

    def loss(self, a: str, b: str) -> float | None:
        """The share of messages that channels between them lost, before any repair."""


LINK_RATE = 12.5e6
"""Bytes per second of a card when nobody knows better: 100 Mbit/s."""
LINK_LATENCY_S = 1e-3
UNMEASURED_LOSSES, UNMEASURED_SHARE = 1, 0.01
"""Of a way on which nobody measured what is lost: a message may be lost once, and one in a hundred is."""
LATE_SHARE = 1e-6
"""Of a way on which messages are lost: so many may be lost more often in a row than is computed with."""
MOST_LOSSES = 16


def losses_in_a_row(share: float | None) -> int:
    """How often in a row a message is taken to be lost."""
    if share is None:
        return UNMEASURED_LOSSES
    if share <= 0:
        return 0
    return MOST_LOSSES if share >= 1 else min(MOST_LOSSES, max(1, math.ceil(math.log(LATE_SHARE) / math.log(share))))


def declared_system(
    table: TagTable, found: Calibration, more_publishers: list[PublisherRow], more_subscribers: list[SubscriberRow],
    others: Others | None = None, counts: Callable[[Declaration], bool] = lambda _: True,
) -> System:  # fmt: skip
    """With publishers and subscribers that are not in the table yet, without declarations that do not count."""
    rows = [row for row in [*table.all_publishers(), *more_publishers] if is_declaration(row) and counts(row)]
    streams = [_stream(table, row, more_subscribers, counts) for row in rows]
    names = list(dict.fromkeys([
        table.node,
        *(name for one in streams for name in [one.node, *(client.node for client in _clients(one))]),
        *(node_of(client.at) for one in streams for client in _clients(one) if node_of(client.at)),
    ]))  # fmt: skip
    nodes = tuple(_node(name, found, own=name == table.node, others=others) for name in names)
    links = tuple(_link(a, b, others) for i, a in enumerate(names) for b in names[i + 1 :])
    return System(nodes=nodes, links=links, streams=tuple(streams), costs=found.costs, rungs=True)


def _clients(stream: Stream) -> list[Subscriber | Pull]:
    return [*stream.subscribers, *stream.pulls]


def _node(name: str, found: Calibration, *, own: bool, others: Others | None) -> Node:
    said = others.of(name) if others is not None and not own else None
    if said is not None:
        return Node(
            name=name, cores=said.cores, blocking_s=said.blocking_s, preemption_s=said.preemption_s,
            waking_s=said.waking_s, costs=said.costs, card=_card(name, others),
        )  # fmt: skip
    return msgspec.structs.replace(found.node(name, found.machine.cores if own else 1), card=_card(name, others))


def _card(node: str, others: Others | None) -> float:
    return (others.card(node) if others is not None else 0.0) or LINK_RATE


def _link(a: str, b: str, others: Others | None) -> Link:
    """What is between the two cards: it keeps nobody waiting longer than the slower of them."""
    latency_s, lost = (others.latency_s(a, b), others.loss(a, b)) if others is not None else (0.0, None)
    return Link(
        a=a, b=b, bandwidth=min(_card(a, others), _card(b, others)), latency_s=latency_s or LINK_LATENCY_S,
        losses=losses_in_a_row(lost), lost_share=UNMEASURED_SHARE if lost is None else min(lost, 1.0),
    )  # fmt: skip


def _stream(
    table: TagTable, row: PublisherRow, more: list[SubscriberRow], counts: Callable[[Declaration], bool]
) -> Stream:
    assert row.declared is not None
    said = row.declared
    tag = row.info.tag
    newcomers = [one for one in more if one.info.pattern == tag]
    known = [one for one in table.subscribers(tag) if not is_declaration(one) or counts(one)]
    wanting = [*known, *(one for one in newcomers if not one.pulls_s)]
    pulling = [*filter(counts, table.pulls(tag)), *(one for one in newcomers if one.pulls_s)]
    return Stream(
        tag=stream_name(row), node=row.owner, period_s=said.period_s, bytes=float(said.max_bytes),
        compute_s=said.compute_s, jitter_s=said.jitter_s,
        priority=_level(table.tag(tag), [*wanting, *pulling]),
        transport=_computable(routes.demand(SubscribeOptions(), table.tag(tag), row.owner).transport),
        subscribers=tuple(_subscriber(one, said, table.tag(tag)) for one in wanting),
        pulls=tuple(_pull(one) for one in pulling),
    )  # fmt: skip


def _level(tag: TagRow | None, rows: Sequence[SubscriberRow]) -> Class:
    """The class that the stream's channels have: the least, where an administrator or the tag says so; else by its
    deadlines, and normal without any."""
    deadline_s = min((row.deadline_s for row in rows if row.deadline_s), default=math.inf)
    words = "normal" if math.isinf(deadline_s) else by_default(deadline_s)[0]
    said = tag.attributes.priority if tag is not None else ""
    found = [
        read_priority(settled_parts((routes.setting_for(tag, row.owner, row.info.id).priority, said, words))).level
        for row in rows
    ]
    return next((level for level in CLASSES if level in found), "normal")


def stream_name(row: PublisherRow) -> str:
    return f"{row.info.tag} of {row.owner}#{row.info.id}"


def subscriber_name(row: SubscriberRow) -> str:
    return f"{row.owner}#{row.info.id}"


def _pull(row: SubscriberRow) -> Pull:
    return Pull(
        name=subscriber_name(row), node=row.owner, period_s=row.pulls_s, max_age_s=row.deadline_s or None,
        at=row.wanted.at,
    )  # fmt: skip


def transport_of(row: SubscriberRow, tag: TagRow | None) -> str:
    """What carries a tag's streams to a subscriber: by settings, its own word, the tag's attributes, or a default."""
    wanted = row.wanted
    options = SubscribeOptions(
        every=wanted.every, at=wanted.at, transport=row.transport or wanted.transport, reliable=row.info.reliable,
        size=wanted.size, rate_hz=wanted.rate_hz, ordered=wanted.ordered,
    )  # fmt: skip
    return _computable(routes.demand(options, tag, row.owner, row.info.id).transport)


def _computable(transport: str) -> str:
    """One that somebody else wrote is taken to repair as slowly as tcp, or not to if it promises nothing."""
    if transport in ("udp", "tcp"):
        return transport
    try:
        recipe(transport)
    except RingcastError:
        try:
            return "tcp" if find(transport).promises.reliable else "udp"
        except QosMismatch:  # not installed here
            return "tcp"
    return transport


def _subscriber(row: SubscriberRow, said: Declared, tag: TagRow | None) -> Subscriber:
    wanted, attributes = row.wanted, tag.attributes if tag is not None else TagAttributes()
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
        transport=transport_of(row, tag),
    )  # fmt: skip

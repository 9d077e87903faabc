"""The channels of this node as `ringcast channels`, metrics and telemetry show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringcast.control.status import ChannelStatus
from ringcast.daemon.streams.incoming import IncomingChannels
from ringcast.daemon.streams.outgoing import OutgoingChannels
from ringcast.daemon.table.table import TagTable
from ringcast.transport.interface import Urgent


def statuses(table: TagTable, outgoing: OutgoingChannels, incoming: IncomingChannels) -> Iterator[ChannelStatus]:
    """The channels that there are now, one by one; those that end before their turn are left out."""
    tags = {row.info.incarnation: row.info.tag for row in table.all_publishers()}
    for key, sent in list(outgoing.channels.items()):
        if outgoing.channels.get(key) is sent:
            yield _status(
                sent.sending.counters(), direction="out", node=sent.node, incarnation=sent.incarnation,
                tag=tags.get(sent.incarnation, ""), transport=sent.transport, every=sent.every,
                size=sent.size, rate_hz=sent.rate_hz, reliable=sent.reliable, priority=sent.priority,
                in_force=sent.sending.in_force() if isinstance(sent.sending, Urgent) else None,
            )  # fmt: skip
    for stream, channel in list(incoming.channels.items()):
        if incoming.channels.get(stream) is channel:
            yield _status(
                channel.mirror.counters(), direction="in", node=channel.via, incarnation=stream.incarnation,
                tag=channel.row.info.tag, transport=channel.transport, every=channel.ring.every,
                size=stream.demand.size, rate_hz=stream.demand.rate_hz, reliable=stream.demand.reliable,
                priority=stream.demand.priority,
                in_force=channel.receiving.in_force() if isinstance(channel.receiving, Urgent) else None,
            )  # fmt: skip


def _status(counters: dict[str, int], **fields: Any) -> ChannelStatus:
    messages, size, lost = (counters.pop(name, None) for name in ("messages", "bytes", "lost"))
    return ChannelStatus(**fields, messages=messages, bytes=size, lost=lost, counters=counters)

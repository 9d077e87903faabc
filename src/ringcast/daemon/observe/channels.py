"""The channels of this node as `ringcast channels`, metrics and telemetry show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringcast.control.status import ChannelStatus, InForce
from ringcast.daemon.rings.registrations import Subscription
from ringcast.daemon.rings.ring import Ring
from ringcast.daemon.streams.incoming import IncomingChannels
from ringcast.daemon.streams.outgoing import OutgoingChannels
from ringcast.daemon.streams.wanted import IncomingChannel
from ringcast.daemon.table.table import TagTable
from ringcast.model import priority
from ringcast.scaling.fidelity import Range
from ringcast.transport.interface import Urgent


def statuses(
    table: TagTable, outgoing: OutgoingChannels, incoming: IncomingChannels, ranged: Iterable[Subscription] = (),
    promised: Callable[[str], str] = lambda _: "", *, read_back: bool = False, of: str | None = None,
) -> Iterator[ChannelStatus]:  # fmt: skip
    """The channels that there are now, or those of one tag, one by one; those that end before their turn are left out.
    `ranged` are this node's subscriptions with a range, `promised` says what a tag's admitted deadlines ask for. With
    `read_back` the kernel is asked for the priorities in force, several calls a channel."""
    ranged = list(ranged)
    tags = {row.info.incarnation: row.info.tag for row in table.all_publishers()}
    for key, sent in list(outgoing.channels.items()):
        if outgoing.channels.get(key) is sent and of in (None, tags.get(sent.incarnation, "")):
            yield _status(
                sent.sending.counters(), direction="out", node=sent.node, incarnation=sent.incarnation,
                tag=tags.get(sent.incarnation, ""), transport=sent.transport, every=sent.every,
                size=sent.size, rate_hz=sent.rate_hz, reliable=sent.reliable, priority=sent.priority,
                **_forced(sent.sending, sent.priority, promised(tags.get(sent.incarnation, "")), read_back),
            )  # fmt: skip
    for stream, channel in list(incoming.channels.items()):
        if incoming.channels.get(stream) is channel and of in (None, channel.row.info.tag):
            yield _status(
                _heard(channel), direction="in", node=channel.via, incarnation=stream.incarnation,
                tag=channel.row.info.tag, transport=channel.transport, every=channel.ring.every,
                size=stream.demand.size, rate_hz=stream.demand.rate_hz, reliable=stream.demand.reliable,
                priority=stream.demand.priority, fidelity=_fidelity(channel.ring, ranged),
                receiver="daemon" if stream.demand.reader is None else "subscriber",
                **_forced(channel.receiving, stream.demand.priority, promised(channel.row.info.tag), read_back),
            )  # fmt: skip


def _heard(channel: IncomingChannel) -> dict[str, int]:
    unheard = channel.ring.unheard
    return channel.mirror.counters() | ({"unheard": unheard} if unheard else {})


def _fidelity(ring: Ring, ranged: list[Subscription]) -> str:
    """Of the subscriptions that read it: their ranges, and what does not allow more."""
    return "; ".join(sorted({_words(one) for one in ranged if one.key in ring.readers}))


def _words(one: Subscription) -> str:
    span = one.options.range or Range()
    hz = "" if span.hz is None else f"{span.hz[0]:g} to {span.hz[1]:g} Hz"
    size = "" if span.size is None else " to ".join(f"{width}x{height}" for width, height in span.size)
    return f"{', '.join(filter(None, (hz, size)))}: {one.fidelity.why or 'the best'}"


def _forced(end: object, asked: str, promised: str, read_back: bool) -> dict[str, Any]:
    found = _in_force(end) if read_back else None
    return {"in_force": found, "bound": bound_of(asked, promised, found) if read_back else ""}


def bound_of(asked: str, promised: str, found: InForce | None) -> str:
    """What the bound of a channel's tag rests on: `promised` is what its deadlines ask for, `asked` what the channel is
    to have, `found` what the kernel has. '' where nothing was promised. Pure."""
    if not promised:
        return ""
    if priority.read(asked).order < priority.read(promised).order:
        return f"not backed: it is set to {asked or priority.NORMAL}, and its deadline asks for {promised}"
    if found is None:
        return "not backed: its transport knows no priorities"
    return f"not backed: {found.refused}" if found.refused else "backed"


def _in_force(end: object) -> InForce | None:
    return end.in_force() if isinstance(end, Urgent) else None


def _status(counters: dict[str, int], **fields: Any) -> ChannelStatus:
    messages, size, lost = (counters.pop(name, None) for name in ("messages", "bytes", "lost"))
    return ChannelStatus(**fields, messages=messages, bytes=size, lost=lost, counters=counters)

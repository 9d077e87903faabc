"""The paper's distribution manager: streams that leave this node, a channel for each node that asked.

It serves `channel.open`, `channel.start`, `channel.retune` and `channel.close` for other daemons. A channel reads a
publisher's own ring or, on a proxy's node, the mirror of one. Receivers that share a stream are told of each other.
Invariant: a channel lives no longer than its ring here and its node there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ringcast.control.service import (
    ChannelOpened,
    CloseChannel,
    DirectChannel,
    OpenChannel,
    RegroupChannel,
    RetuneChannel,
    Seat,
    Start,
    StartChannel,
)
from ringcast.daemon.background import Background
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.rings.demand import StageSpec
from ringcast.daemon.rings.fanout import Answer
from ringcast.daemon.stages.quota import StageQuota
from ringcast.daemon.streams.interface import HeldSource, Sources, Wanted
from ringcast.daemon.streams.places import Places
from ringcast.daemon.streams.resolving import resolved
from ringcast.daemon.streams.seals import Seals
from ringcast.errors import BadMessage, BrokenError, CorruptRing, QosMismatch
from ringcast.model.priority import settled
from ringcast.scaling.temporal import first_due
from ringcast.transport import Channel, Sending, Source, find
from ringcast.transport.interface import GroupTransport, WatchedSending

logger = logging.getLogger("ringcast.daemon")

CLOSERS = 4
"""Threads that close sending ends; nothing else runs there."""

SETTLE_S = 0.01
HOLD_S = 5.0
"""Between opening and starting, a relayed stream is kept, and a seat in a group."""
DRAIN_S = 5.0
CHECK_S = 1.0
"""How often groups and sending ends are checked."""


class OutgoingChannel(msgspec.Struct):
    """A channel in use, as `ringcast channels` shows it."""

    node: str
    incarnation: int
    transport: str
    every: int
    reliable: bool
    sending: Sending
    source: HeldSource
    spec: StageSpec | None
    size: tuple[int, int] | None
    rate_hz: float
    priority: str

    link: int
    """The link number that the ring's writer uses when it gives the channel back."""
    wanted: Wanted
    """What its source was asked for with; the channel may have been retuned since."""


class OutgoingChannels:
    """`tell` notifies a node of who else shares the stream of its channel. `on_again` is told of channels that were
    closed and are to be opened again by the node they lead to; `refused` counts what is not done for others. `sealed`:
    nothing leaves this node that is not sealed."""

    def __init__(
        self, sources: Sources, background: Background,
        tell: Callable[[str, RegroupChannel], None] = lambda node, word: None,
        on_again: Callable[[str, int], None] = lambda node, key: None, refused: Counter[str] | None = None,
        sealed: bool = False,
    ) -> None:  # fmt: skip
        self._quota = StageQuota(refused if refused is not None else Counter())
        self._complaints = Complaints(logger)
        self._sources = sources
        self._background = background
        self._tell = tell
        self._on_again = on_again
        self.channels: dict[int, OutgoingChannel] = {}
        self._seats: dict[int, tuple[Seat, asyncio.TimerHandle]] = {}
        self._seals = Seals(sealed)
        self._closers = ThreadPoolExecutor(CLOSERS, "ringcast-close")
        self._checking: asyncio.TimerHandle | None = None
        self._complained: set[tuple[str, int]] = set()
        self._places = Places()

    async def open(self, node: str, host: str, request: OpenChannel) -> ChannelOpened:
        """Fix where the stream begins. Raises PublisherGone, QosMismatch (no such transport), ResourceLimit (too many
        stages), OSError."""
        transport = find(request.transport)
        spec = spec_for(request)
        wanted = Wanted(request.incarnation, request.transport, request.reliable, spec, _urgency(request))
        source = await self._source(node, wanted, request.start)
        asyncio.get_running_loop().call_later(HOLD_S, self._release, node, wanted)
        seal = self._seals.make(node, request.key, transport)
        every = source.factor(request.every, request.rate_hz)
        match request.start:
            case "new":
                first = source.fresh_seq
            case "latest":
                first = max(source.oldest_seq, source.next_seq - 1)
            case "earliest":
                first = source.oldest_seq
            case int(number):
                # What a stage passed over is not held anywhere, and shows as lost.
                first = number if spec is not None else max(source.oldest_seq, number)
                if source.ring == request.incarnation:  # the publisher's own: nobody has what it did not send
                    first = min(first, source.next_seq)
        first = first_due(first, every)
        seat = None
        if isinstance(transport, GroupTransport):
            channel = Channel(
                key=request.key, incarnation=request.incarnation, depth=source.depth,
                capacity_bytes=source.capacity_bytes, first_seq=first, every=every, reliable=request.reliable,
                transport=request.transport, seal=seal, priority=wanted.priority,
            )  # fmt: skip
            seat = self._seat(transport, channel, source, await resolved(host), _port(request.address))
        return ChannelOpened(
            first_seq=first, depth=source.depth, capacity_bytes=source.capacity_bytes, every=every, seat=seat,
            age_ns=source.age_ns, seal=seal if seat is None else None,
        )  # fmt: skip

    async def start(self, node: str, host: str, request: StartChannel) -> None:
        """Let it flow. Raises PublisherGone, BrokenError, QosMismatch, ResourceLimit, OSError."""
        transport = find(request.transport)
        if request.key in self.channels:  # the node asks again: it did not get our answer
            return
        spec = spec_for(request)
        wanted = Wanted(request.incarnation, request.transport, request.reliable, spec, _urgency(request))
        seal = self._seals.take(node, request.key, transport)
        source = await self._source(node, wanted, "new")
        channel = Channel(
            key=request.key, incarnation=request.incarnation, depth=source.depth, capacity_bytes=source.capacity_bytes,
            first_seq=request.first_seq, every=request.every, reliable=request.reliable, transport=request.transport,
            direct=request.direct, seal=seal, priority=wanted.priority, heads=request.heads,
        )  # fmt: skip
        if request.key in self._seats:
            seat, timer = self._seats.pop(request.key)
            timer.cancel()
            channel = msgspec.structs.replace(channel, seat=seat)
        sending: Sending | None = None
        try:
            sending = transport.send(channel, source, await resolved(host), _port(request.address))
            await sending.ready()
            if source.ended:  # meanwhile; no channel was there to be told
                raise BrokenError(f"the ring of publisher {request.incarnation:x} ended while a channel was started")
        except BaseException:
            if sending is not None:
                self._end(sending)
            self._release(node, wanted)
            raise
        self.channels[request.key] = OutgoingChannel(
            node=node, incarnation=request.incarnation, transport=request.transport, every=request.every,
            reliable=request.reliable, sending=sending, source=source, spec=spec, size=request.size,
            rate_hz=request.rate_hz, priority=channel.priority, link=getattr(sending, "link", request.key),
            wanted=wanted,
        )  # fmt: skip
        if request.reliable:
            self._places.give_up(node, request.incarnation)
            source.take_over()
        if isinstance(transport, GroupTransport):
            self._tell_changes(transport)
        if self._checking is None:
            self._check()
        if request.rate_hz:  # it may be another one since the channel was opened
            self.follow_rates()
        self._settle_soon(request.key, sending)

    def close_channel(self, request: CloseChannel) -> None:
        self._drop(request.key)

    def node_gone(self, node: str) -> None:
        for key in [key for key, channel in self.channels.items() if channel.node == node]:
            self._drop(key, keep_place=True)

    def drop_where(self, concerned: Callable[[str, int], bool]) -> None:
        """End the channels to a node, of a publisher by its incarnation, that are meant; their nodes may ask again."""
        for key in [key for key, held in self.channels.items() if concerned(held.node, held.incarnation)]:
            self._drop(key)

    def ring_gone(self, incarnation: int) -> None:
        for key in [key for key, channel in self.channels.items() if channel.incarnation == incarnation]:
            self._drop(key)

    def ring_left(self, incarnation: int) -> None:
        """Its publisher left. Receivers close their channels when they have everything; unreliable ones get DRAIN_S for
        that."""
        asyncio.get_running_loop().call_later(DRAIN_S, self._end_unreliable, incarnation)

    def _end_unreliable(self, incarnation: int) -> None:
        for key, channel in list(self.channels.items()):
            if channel.incarnation == incarnation and not channel.reliable:
                self._drop(key)

    def stage_gone(self, spec: StageSpec) -> None:
        """The ring that these channels read has ended; the stage makes another one."""
        self._again(lambda channel: channel.spec == spec)

    def follow_rates(self) -> None:
        """Publishers may send faster or slower than before. What a stage makes follows with the stage."""
        self._again(lambda one: one.spec is None and one.source.changed_factor(one.every, one.rate_hz))

    def change_secrets(self) -> None:
        """A node is not trusted any more: it may have been in any group, and know its secret. Groups end; their other
        receivers open their channels again, in new ones."""
        self._again(lambda channel: isinstance(find(channel.transport), GroupTransport))

    @property
    def has_rates(self) -> bool:
        return any(channel.rate_hz for channel in self.channels.values())

    def _again(self, concerned: Callable[[OutgoingChannel], bool], held_s: float = HOLD_S) -> None:
        """The nodes ask again in a moment. So long what they read is held, with what they have not got yet."""
        for key, channel in list(self.channels.items()):
            if concerned(channel):
                self._drop(key, keep_place=True, held_s=held_s)
                self._on_again(channel.node, key)

    def retune(self, request: RetuneChannel) -> None:
        """Raises BadMessage, QosMismatch (that needs another channel)."""
        channel = self.channels.get(request.key)
        if channel is None:
            raise BadMessage(f"channel {request.key:x} is not open")
        old, new = find(channel.transport), find(request.transport)
        if not (isinstance(old, GroupTransport) and isinstance(new, GroupTransport) and old.shape == new.shape):
            asked = f"{request.transport!r} on a channel of {channel.transport!r}"
            raise QosMismatch(asked, "that transport has other stages", "open another channel")
        new.retune(request.key)
        channel.transport = request.transport

    def direct(self, request: DirectChannel) -> None:
        channel = self.channels.get(request.key)
        transport = find(channel.transport) if channel is not None else None
        if channel is not None and isinstance(transport, GroupTransport):
            text = "multicast does not reach node %s; sending to it by unicast"
            self._complaints.warning(channel.node, text, channel.node)
            transport.direct(request.key)
            channel.link = getattr(channel.sending, "link", channel.link)
            self._settle_soon(request.key, channel.sending)

    def given_back(self, answer: Answer) -> None:
        """A publisher pushes to a link no more."""
        for key, channel in list(self.channels.items()):
            if channel.link == answer.link and answer.behind:
                channel.sending.behind(answer.seq)
                self._settle_soon(key, channel.sending)
            elif channel.link == answer.link:
                channel.sending.too_long(answer.seq)

    def close(self) -> None:
        self._complaints.close()
        if self._checking is not None:
            self._checking.cancel()
        self._seals.close()
        for _, timer in self._seats.values():
            timer.cancel()
        for key in list(self.channels):
            self._drop(key)
        self._places.close()
        self._closers.shutdown(wait=False)  # closings under way finish before the process ends

    def _drop(self, key: int, *, keep_place: bool = False, held_s: float = 0.0) -> None:
        channel = self.channels.pop(key, None)
        if channel is None:
            return
        if keep_place and channel.reliable:
            self._places.keep(channel.node, channel.incarnation, channel.source)
        self._end(channel.sending)
        self._release(channel.node, channel.wanted, held_s)
        transport = find(channel.transport)
        if isinstance(transport, GroupTransport):
            self._tell_changes(transport)

    def _end(self, sending: Sending) -> None:
        sending.release()
        # Joining a pump's thread may block, which the loop must not.
        self._closers.submit(sending.close)

    async def _source(self, node: str, wanted: Wanted, start: Start) -> HeldSource:
        self._quota.take(node, wanted.spec)
        try:
            return await self._sources.source(*wanted, start)
        except BaseException:
            self._quota.release(node, wanted.spec)
            raise

    def _release(self, node: str, wanted: Wanted, held_s: float = 0.0) -> None:
        if held_s:
            asyncio.get_running_loop().call_later(held_s, self._release, node, wanted)
            return
        self._quota.release(node, wanted.spec)
        self._sources.release(*wanted)

    def _settle_soon(self, key: int, sending: Sending) -> None:
        if sending.unsettled:
            self._background.start(f"settle channel {key:x}", self._settle(key, sending))

    async def _settle(self, key: int, sending: Sending) -> None:
        while sending.unsettled:
            await asyncio.sleep(SETTLE_S)
            if key not in self.channels:  # closed meanwhile
                return
            try:
                sending.settle()
            except CorruptRing as exc:  # its readers will say so too
                logger.warning("channel %x: %s", key, exc)
                return

    # ------------------------------------------------------------------ groups

    def _seat(self, transport: GroupTransport, channel: Channel, source: Source, host: str, port: int) -> Seat:
        if channel.key in self._seats:  # the node asks again: it did not get our answer
            return self._seats[channel.key][0]
        if channel.key in self.channels:
            raise BadMessage(f"channel {channel.key:x} is open already")
        seat = transport.admit(channel, source, host, port)
        timer = asyncio.get_running_loop().call_later(HOLD_S, self._unseat, transport, channel.key)
        self._seats[channel.key] = (seat, timer)
        return seat

    def _unseat(self, transport: GroupTransport, key: int) -> None:
        """The node that asked for the seat did not start its channel."""
        if self._seats.pop(key, None) is not None:
            transport.dismiss(key)

    def _tell_changes(self, transport: GroupTransport) -> None:
        for key, peers in transport.take_changes():
            channel = self.channels.get(key)
            if channel is not None:
                self._tell(channel.node, RegroupChannel(key=key, peers=peers))

    def _check(self) -> None:
        self._open_broken_again()
        kinds = [find(channel.transport) for channel in self.channels.values()]
        grouped = [kind for kind in kinds if isinstance(kind, GroupTransport)]
        for kind in {kind.end: kind for kind in grouped}.values():
            kind.check()
        for key, channel in self.channels.items():
            self._seals.renew(channel.sending)
            if isinstance(channel.sending, WatchedSending):
                channel.sending.look()
            if channel.link != (link := getattr(channel.sending, "link", channel.link)):  # it fell back
                channel.link = link
                self._settle_soon(key, channel.sending)
        self._checking = asyncio.get_running_loop().call_later(CHECK_S, self._check) if self.channels else None

    def _open_broken_again(self) -> None:
        """A sending end may fail while both nodes live: its ring is damaged, or the connection was cut."""
        for channel in self.channels.values():
            stream = (channel.node, channel.incarnation)
            if not channel.sending.broken:
                self._complained.discard(stream)
            elif stream not in self._complained:  # log it once, however often it breaks
                self._complained.add(stream)
                logger.warning(
                    "the channel of publisher %x to node %s by %s broke; it is opened again where it ended",
                    channel.incarnation, channel.node, channel.transport,
                )  # fmt: skip
        self._again(lambda channel: channel.sending.broken, held_s=0.0)  # what it read may be damaged


def spec_for(request: OpenChannel | StartChannel) -> StageSpec | None:
    """What a stage on this node has to make for the channel; None when it carries messages as they are."""
    if request.size is None:
        return None
    every, words = 1 if request.rate_hz else request.every, _urgency(request) if request.here else ""
    reliable = request.here and find(request.transport).promises.reliable
    return StageSpec(request.incarnation, request.size, every, request.rate_hz, request.here, reliable, words)


def _urgency(request: OpenChannel | StartChannel) -> str:
    """Raises BadMessage."""
    try:
        return settled((request.priority,))
    except ValueError as exc:
        raise BadMessage(f"a channel's priority: {exc}") from exc


def _port(address: str) -> int:
    """Raises BadMessage."""
    try:
        return int(address.rpartition(":")[2])
    except ValueError as exc:
        raise BadMessage(f"{address!r} has no port") from exc

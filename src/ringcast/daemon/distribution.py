"""The paper's distribution manager: streams that leave this node, a channel for each node that asked.

It serves `channel.open`, `channel.start` and `channel.close` for other daemons. A channel reads a publisher's own ring,
or, when this node stands in between, the mirror of one: the proxy's stage is nothing but a channel out of a mirror.
Invariant: a channel lives no longer than its ring here and its node there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import msgspec

from ringcast.control.service import ChannelOpened, CloseChannel, OpenChannel, Start, StartChannel
from ringcast.daemon.holdings import Wish
from ringcast.errors import BadMessage
from ringcast.transport import Channel, Sending, Source, find

logger = logging.getLogger("ringcast.daemon")

SETTLE_S = 0.01
HOLD_S = 5.0
"""Between opening and starting, a relayed stream is kept."""


class HeldSource(Source, Protocol):
    @property
    def oldest_seq(self) -> int: ...
    @property
    def fresh_seq(self) -> int: ...
    def factor(self, every: int, rate_hz: float) -> int:
        """The n of a channel out of it."""

    def changed_factor(self, every: int, rate_hz: float) -> bool:
        """Whether another one is right by now."""


class Sources(Protocol):
    """Where a stream can be had on this node."""

    async def source(
        self, incarnation: int, transport: str, wish: Wish | None = None, start: Start = "new"
    ) -> HeldSource:
        """The ring of a publisher, or what a stage makes of it, to be sent on by that transport.

        Raises PublisherGone, QosMismatch, BrokenError.
        """

    def release(self, incarnation: int, transport: str, wish: Wish | None = None) -> None:
        """One channel fewer reads it."""


class OpenedChannel(msgspec.Struct):
    """A channel in use, as `ringcast channels` shows it."""

    node: str
    incarnation: int
    transport: str
    every: int
    reliable: bool
    sending: Sending
    source: HeldSource
    wish: Wish | None
    size: tuple[int, int] | None
    rate_hz: float


class Distribution:
    """`on_again` is told of channels that were closed and are to be opened again by the node they lead to."""

    def __init__(self, sources: Sources, on_again: Callable[[str, int], None] = lambda node, key: None) -> None:
        self._sources = sources
        self._on_again = on_again
        self.channels: dict[int, OpenedChannel] = {}
        self._settling: set[asyncio.Task[None]] = set()

    async def open(self, request: OpenChannel) -> ChannelOpened:
        """Fix where the stream begins. Raises PublisherGone, QosMismatch (no such transport)."""
        find(request.transport)
        wish = wish_for(request)
        source = await self._sources.source(request.incarnation, request.transport, wish, request.start)
        asyncio.get_running_loop().call_later(
            HOLD_S, self._sources.release, request.incarnation, request.transport, wish
        )
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
                first = number if wish is not None else max(source.oldest_seq, number)
        return ChannelOpened(
            first_seq=-(-first // every) * every, depth=source.depth, capacity_bytes=source.capacity_bytes,
            every=every,
        )  # fmt: skip

    async def start(self, node: str, host: str, request: StartChannel) -> None:
        """Let it flow. Raises PublisherGone, QosMismatch, OSError."""
        transport = find(request.transport)
        if request.key in self.channels:
            raise BadMessage(f"channel {request.key:x} is open already")
        wish = wish_for(request)
        source = await self._sources.source(request.incarnation, request.transport, wish)
        channel = Channel(
            key=request.key, incarnation=request.incarnation, depth=source.depth, capacity_bytes=source.capacity_bytes,
            first_seq=request.first_seq, every=request.every, reliable=request.reliable,
        )  # fmt: skip
        try:
            sending = transport.send(channel, source, host, int(request.address.rpartition(":")[2]))
            await sending.ready()
        except BaseException:
            self._sources.release(request.incarnation, request.transport, wish)
            raise
        self.channels[request.key] = OpenedChannel(
            node=node, incarnation=request.incarnation, transport=request.transport, every=request.every,
            reliable=request.reliable, sending=sending, source=source, wish=wish, size=request.size,
            rate_hz=request.rate_hz,
        )  # fmt: skip
        if request.rate_hz:  # it may be another one since the channel was opened
            self.follow_rates()
        if sending.unsettled:
            task = asyncio.get_running_loop().create_task(self._settle(request.key, sending))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    def close_channel(self, request: CloseChannel) -> None:
        self._drop(request.key)

    def node_gone(self, node: str) -> None:
        for key in [key for key, channel in self.channels.items() if channel.node == node]:
            self._drop(key)

    def ring_gone(self, incarnation: int) -> None:
        for key in [key for key, channel in self.channels.items() if channel.incarnation == incarnation]:
            self._drop(key)

    def stage_gone(self, wish: Wish) -> None:
        """The ring that such channels read has ended; there is another one, or will be."""
        self._again(lambda channel: channel.wish == wish)

    def follow_rates(self) -> None:
        """Publishers may send faster or slower than before. What a stage makes follows with the stage."""
        self._again(
            lambda channel: channel.wish is None and channel.source.changed_factor(channel.every, channel.rate_hz)
        )

    @property
    def has_rates(self) -> bool:
        return any(channel.rate_hz for channel in self.channels.values())

    def _again(self, concerned: Callable[[OpenedChannel], bool]) -> None:
        for key, channel in list(self.channels.items()):
            if concerned(channel):
                self._drop(key)
                self._on_again(channel.node, key)

    def too_long(self, key: int, seq: int) -> None:
        """A publisher met a message that it cannot send in one burst."""
        channel = self.channels.get(key)
        if channel is not None:
            channel.sending.too_long(seq)

    def close(self) -> None:
        for key in list(self.channels):
            self._drop(key)
        for task in self._settling:
            task.cancel()

    def _drop(self, key: int) -> None:
        channel = self.channels.pop(key, None)
        if channel is None:
            return
        channel.sending.release()
        # Joining a pump may take a moment, and the loop has none to spare.
        asyncio.get_running_loop().run_in_executor(None, channel.sending.close)
        self._sources.release(channel.incarnation, channel.transport, channel.wish)

    async def _settle(self, key: int, sending: Sending) -> None:
        while sending.unsettled:
            await asyncio.sleep(SETTLE_S)
            if key not in self.channels:  # closed meanwhile
                return
            sending.settle()


def wish_for(request: OpenChannel | StartChannel) -> Wish | None:
    """What a stage on this node has to make for the channel; None when it carries messages as they are."""
    if request.size is None:
        return None
    every = 1 if request.rate_hz else request.every
    reliable = request.here and find(request.transport).promises.reliable
    return Wish(request.incarnation, request.size, every, request.rate_hz, request.here, reliable)

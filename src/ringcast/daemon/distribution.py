"""The paper's distribution manager: streams that leave this node, a channel for each node that asked.

It serves `channel.open`, `channel.start` and `channel.close` for other daemons. A channel reads a publisher's own ring,
or, when this node stands in between, the mirror of one: the proxy's stage is nothing but a channel out of a mirror.
Invariant: a channel lives no longer than its ring here and its node there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import msgspec

from ringcast.control.service import ChannelOpened, CloseChannel, OpenChannel, StartChannel
from ringcast.errors import BadMessage
from ringcast.transport import Channel, Sending, Source, find

logger = logging.getLogger("ringcast.daemon")

SETTLE_S = 0.01
HOLD_S = 5.0
"""Between opening and starting, a relayed stream is kept."""


class HeldSource(Source, Protocol):
    @property
    def oldest_seq(self) -> int: ...


class Sources(Protocol):
    """Where a stream can be had on this node."""

    async def source(self, incarnation: int, transport: str) -> HeldSource:
        """The ring of a publisher, to be sent on by that transport. Raises PublisherGone, QosMismatch."""

    def release(self, incarnation: int, transport: str) -> None:
        """One channel fewer reads it."""


class OpenedChannel(msgspec.Struct):
    """A channel in use, as `ringcast channels` shows it."""

    node: str
    incarnation: int
    transport: str
    every: int
    reliable: bool
    sending: Sending


class Distribution:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.channels: dict[int, OpenedChannel] = {}
        self._settling: set[asyncio.Task[None]] = set()

    async def open(self, request: OpenChannel) -> ChannelOpened:
        """Fix where the stream begins. Raises PublisherGone, QosMismatch (no such transport)."""
        find(request.transport)
        source = await self._sources.source(request.incarnation, request.transport)
        asyncio.get_running_loop().call_later(HOLD_S, self._sources.release, request.incarnation, request.transport)
        match request.start:
            case "new":
                first = source.next_seq
            case "latest":
                first = max(source.oldest_seq, source.next_seq - 1)
            case "earliest":
                first = source.oldest_seq
            case int(number):
                first = max(source.oldest_seq, number)
        return ChannelOpened(
            first_seq=-(-first // request.every) * request.every, depth=source.depth,
            capacity_bytes=source.capacity_bytes,
        )  # fmt: skip

    async def start(self, node: str, host: str, request: StartChannel) -> None:
        """Let it flow. Raises PublisherGone, QosMismatch, OSError."""
        transport = find(request.transport)
        if request.key in self.channels:
            raise BadMessage(f"channel {request.key:x} is open already")
        source = await self._sources.source(request.incarnation, request.transport)
        channel = Channel(
            key=request.key, incarnation=request.incarnation, depth=source.depth, capacity_bytes=source.capacity_bytes,
            first_seq=request.first_seq, every=request.every, reliable=request.reliable,
        )  # fmt: skip
        try:
            sending = transport.send(channel, source, host, int(request.address.rpartition(":")[2]))
            await sending.ready()
        except BaseException:
            self._sources.release(request.incarnation, request.transport)
            raise
        self.channels[request.key] = OpenedChannel(
            node=node, incarnation=request.incarnation, transport=request.transport, every=request.every,
            reliable=request.reliable, sending=sending,
        )  # fmt: skip
        if sending.unsettled:
            task = asyncio.get_running_loop().create_task(self._settle(sending))
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
        self._sources.release(channel.incarnation, channel.transport)

    async def _settle(self, sending: Sending) -> None:
        while sending.unsettled:
            await asyncio.sleep(SETTLE_S)
            sending.settle()

"""Where a stream is found on this node, for a channel to another node or for a stage here.

A publisher's own ring, a mirror that is held because a proxy or stage here reads it, or what a stage makes of one of
the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ringcast.control.service import Start
from ringcast.daemon.effects import Send
from ringcast.daemon.rings.demand import Demand, StageSpec
from ringcast.daemon.rings.fanout import FanOut
from ringcast.daemon.rings.ring import Ring
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.streams.ring_source import RingSource
from ringcast.daemon.streams.wanted import Stream
from ringcast.transport import find
from ringcast.transport.interface import GroupTransport


class Relays(Protocol):
    """Mirrors that are held for somebody on this node who is no subscriber."""

    async def hold_relay(self, stream: Stream, start: Start) -> Ring:
        """Raises PublisherGone."""

    def release_relay(self, stream: Stream) -> None: ...


class WholeStreams:
    """The whole stream of every publisher, here or elsewhere. Is the `Bases` of stages."""

    def __init__(self, relays: Relays) -> None:
        self._relays = relays

    async def base(self, spec: StageSpec, start: Start) -> Ring:
        return await self._relays.hold_relay(_base_of(spec), start)

    def release_base(self, spec: StageSpec) -> None:
        self._relays.release_relay(_base_of(spec))


class RingSources:
    """Is the `Sources` of outgoing channels. `on_linked` is given a fan-out that may give links back."""

    def __init__(
        self, relays: Relays, stages: Stages, sharing: Sharing, deliver: Callable[[list[Send]], None],
        on_linked: Callable[[FanOut], None],
    ) -> None:  # fmt: skip
        self._relays = relays
        self._stages = stages
        self._sharing = sharing
        self._deliver = deliver
        self._on_linked = on_linked

    async def source(
        self, incarnation: int, transport: str, reliable: bool, spec: StageSpec | None = None, priority: str = "",
        start: Start = "new",
    ) -> RingSource:  # fmt: skip
        if spec is not None:
            ring: Ring = await self._stages.hold(spec, start)
        else:
            ring = await self._relays.hold_relay(Stream(incarnation, relayed(transport, reliable, priority)), start)
        return RingSource(ring, self._flush, self._sharing.paces)

    def release(
        self, incarnation: int, transport: str, reliable: bool, spec: StageSpec | None = None, priority: str = ""
    ) -> None:
        if spec is not None:
            self._stages.release(spec)
        else:
            self._relays.release_relay(Stream(incarnation, relayed(transport, reliable, priority)))

    def _flush(self, ring: Ring) -> None:
        if not ring.fanout.closed:
            self._on_linked(ring.fanout)
            self._deliver(self._sharing.announce(ring))


def relayed(transport: str, reliable: bool, priority: str = "") -> Demand:
    """What a proxy on this node reads, to send on by that transport: everything, no less reliably, as urgently. A
    stream of tcp is always reliable: it would lose what its pump is too late for, and nobody would ask for it again."""
    kind = find(transport)
    if kind.promises.reliable:
        safe = reliable or not isinstance(kind, GroupTransport)
        return Demand(at="", transport=transport, reliable=safe, priority=priority)
    return Demand(at="", priority=priority)


def _base_of(spec: StageSpec) -> Stream:
    return Stream(spec.incarnation, relayed("tcp" if spec.reliable else "udp", spec.reliable, spec.priority))

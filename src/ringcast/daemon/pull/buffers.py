"""Pull buffers: mirrors that a history asks for, with a depth of its own, on this node or on another.

This module is both ends. The asking end remembers which buffers this node's clients want, and on which nodes, and asks
again when such a node comes back. The holding end keeps mirrors of a tag's publishers as long as somebody wants them,
whether or not anybody subscribes. Invariants: a buffer ends with the history, the client or the node that asked for
it; no node holds a buffer that nobody reads.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from ringcast.control import service
from ringcast.control.limits import MAX_BUFFERS_PER_PEER
from ringcast.control.requests import HoldBuffer
from ringcast.control.service import Buffer, Nothing, ReleaseBuffer
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.rings.demand import Demand
from ringcast.errors import BrokenError, ResourceLimit, RingcastError
from ringcast.model.place import node_of
from ringcast.model.tag import check_pattern

REQUEST_TIMEOUT_S = 3.0
REMIND_S = 2.0
"""The two nodes may disagree on whether the link was lost. Asking twice to hold a buffer does no harm."""


class Keeper(Protocol):
    """What holds mirrors: `IncomingChannels`."""

    async def keep(self, tag: str, demand: Demand) -> None: ...
    def let_go(self, tag: str, demand: Demand) -> None: ...


class _Wanted(NamedTuple):
    client: int
    number: int
    """The client's own, for one of its histories."""
    node: str
    buffer: Buffer


class Buffers:
    def __init__(self, node: str, keeper: Keeper, mesh: Mesh, background: Background) -> None:
        self._node = node
        self._keeper = keeper
        self._mesh = mesh
        self._background = background
        self._numbers = itertools.count(1)
        self._wanted: dict[int, _Wanted] = {}
        self._held: dict[tuple[str, int], tuple[str, Demand]] = {}
        self._reminding: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ asking

    async def want(self, client: int, request: HoldBuffer) -> None:
        """A client's history is to have a buffer. Raises BrokenError (the node is not there), TimeoutError."""
        number = next(self._numbers)
        buffer = Buffer(number=number, tag=request.tag, depth=request.depth, every=request.every)
        wanted = _Wanted(client, request.buffer, node_of(request.at) or self._node, buffer)
        self._wanted[number] = wanted
        try:
            await self._ask(wanted)
        except BaseException:
            self._wanted.pop(number, None)
            raise
        if self._reminding is None:
            self._reminding = asyncio.get_running_loop().call_later(REMIND_S, self._remind)

    def wanted_by(self, client: int) -> list[tuple[int, str]]:
        """A client's own numbers of its buffers, and their tags."""
        return [(one.number, one.buffer.tag) for one in self._wanted.values() if one.client == client]

    def unwant(self, client: int, buffer: int | None = None) -> None:
        """A history was closed, or its client left."""
        for number, wanted in list(self._wanted.items()):
            if wanted.client == client and buffer in (None, wanted.number):
                del self._wanted[number]
                self._tell(wanted.node, service.RELEASE, ReleaseBuffer(number=number))

    def node_came(self, node: str) -> None:
        for wanted in self._wanted.values():
            if wanted.node == node:
                self._tell(node, service.HOLD, wanted.buffer)

    def _remind(self) -> None:
        for node in {wanted.node for wanted in self._wanted.values() if wanted.node != self._node}:
            self.node_came(node)
        again = asyncio.get_running_loop().call_later(REMIND_S, self._remind) if self._wanted else None
        self._reminding = again

    async def _ask(self, wanted: _Wanted) -> None:
        await self._mesh.request(wanted.node, service.HOLD, service.encode(wanted.buffer), REQUEST_TIMEOUT_S)

    def _tell(self, node: str, name: str, message: msgspec.Struct) -> None:
        async def tell() -> None:
            try:
                await self._mesh.request(node, name, service.encode(message), REQUEST_TIMEOUT_S)
            except (RingcastError, TimeoutError):
                pass  # whoever is gone holds nothing for us; the others are told again

        self._background.start(f"{name} at {node}", tell())

    # ------------------------------------------------------------------ holding

    async def hold(self, node: str, payload: bytes) -> bytes:
        buffer = service.decode_untrusted(payload, Buffer)
        check_pattern(buffer.tag)
        if (node, buffer.number) not in self._held:
            held = sum(holder == node for holder, _ in self._held)
            if node != self._node and held >= MAX_BUFFERS_PER_PEER:
                self._mesh.refused["too many buffers"] += 1
                full = f"node {node!r} has {held} buffers held here, as many as one node may"
                raise ResourceLimit(full, "close histories that nobody reads")
            demand = Demand(every=buffer.every, at="" if buffer.every == 1 else "publisher", depth=buffer.depth)
            self._held[node, buffer.number] = (buffer.tag, demand)
            await self._keeper.keep(buffer.tag, demand)
        return service.encode(Nothing())

    async def release(self, node: str, payload: bytes) -> bytes:
        self._release(node, service.decode_untrusted(payload, ReleaseBuffer).number)
        return service.encode(Nothing())

    def drop_where(self, concerned: Callable[[str, str], bool]) -> None:
        """Hold no more for a node, of a tag, what is meant."""
        for holder, number in [key for key, (tag, _) in self._held.items() if concerned(key[0], tag)]:
            self._release(holder, number)

    def node_gone(self, node: str) -> None:
        for holder, number in [key for key in self._held if key[0] == node]:
            self._release(holder, number)

    def _release(self, node: str, number: int) -> None:
        held = self._held.pop((node, number), None)
        if held is not None:
            self._keeper.let_go(*held)

    def close(self) -> None:
        if self._reminding is not None:
            self._reminding.cancel()


def without_network(request: HoldBuffer) -> BrokenError:
    return BrokenError(f"a buffer at {request.at!r} is not possible: this node's daemon has no network")

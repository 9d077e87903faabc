"""What other nodes say of themselves to whoever admits streams: cores, what stages take there, how far and fast the way
is.

Asked once anybody there declares something, and again whenever somebody else does; then also for its ways to the other
nodes that are known. Invariant: of a node that does not answer, or was never calibrated, nothing is known; the analysis
assumes little of it then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import AdmissionError, Costs
from ringcast.control import service
from ringcast.control.peering import Name
from ringcast.control.placing import Way
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow
from ringcast.errors import BrokenError, RingcastError
from ringcast.transport.urgent.links import LINKS

logger = logging.getLogger("ringcast.daemon")

CAPACITY = "admission.capacity"
REQUEST_TIMEOUT_S = 2.0
MOST_WAYS = 64
"""Nodes whose distances one answer has."""


class AskCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """What can you do, and how far is it from you to these nodes?"""

    to: Annotated[list[Name], Meta(max_length=MOST_WAYS)] = []


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """As a node's calibration has it. `link_bps` is what its links carry, where its administrator said so."""

    cores: Annotated[int, Meta(ge=1, le=65536)]
    costs: Costs
    blocking_s: Annotated[float, Meta(ge=0.0, le=60.0)]
    preemption_s: Annotated[float, Meta(ge=0.0, le=60.0)] = 0.0
    waking_s: Annotated[float, Meta(ge=0.0, le=60.0)] = 0.0
    link_bps: Annotated[int, Meta(ge=0, le=10**15)] = 0
    ways: Annotated[list[Way], Meta(max_length=MOST_WAYS)] = []
    """To those that were asked for and answer it."""


class Capacities:
    """`ways` measures how far nodes are."""

    def __init__(
        self, node: str, mesh: ServingMesh, ways: Callable[[list[str]], Awaitable[list[Way]]],
        calibration: Callable[[], Calibration], background: Background,
    ) -> None:  # fmt: skip
        self._node = node
        self._mesh = mesh
        self._ways = ways
        self._calibration = calibration
        self._background = background
        self._said: dict[str, Capacity] = {}
        self._far: dict[str, Way] = {}
        self._asking: set[str] = set()
        mesh.serve(CAPACITY, self._serve)

    def of(self, node: str) -> Capacity | None:
        return self._said.get(node)

    def way(self, a: str, b: str) -> tuple[float, float]:
        """Bytes per second and seconds between two nodes; 0 is unknown. Of a way that both ends measured, or that ends
        here, the slower and the longer counts."""
        found = [way for way in (self._measured(a, b), self._measured(b, a)) if way is not None]
        rates = [bps / 8 for bps in (self._link_bps(a), self._link_bps(b)) if bps]
        rates += [way.bandwidth for way in found if way.bandwidth]
        known = found or self._node in (a, b)
        return min(rates, default=0.0) if known else 0.0, max((way.round_trip_s / 2 for way in found), default=0.0)

    def _measured(self, a: str, b: str) -> Way | None:
        """As `a` sees it."""
        if a == self._node:
            return self._far.get(b)
        said = self._said.get(a)
        return next((way for way in said.ways if way.node == b), None) if said is not None else None

    def _link_bps(self, node: str) -> int:
        said = self._said.get(node)
        return LINKS.rate_bps if node == self._node else said.link_bps if said is not None else 0

    def changed(self, changes: Iterable[Change]) -> None:
        """Rows of other nodes are other than before."""
        for kind, row in changes:
            says = (isinstance(row, PublisherRow) and row.declared is not None) or (
                isinstance(row, SubscriberRow) and row.deadline_s > 0
            )
            if says and kind is ChangeKind.ADDED and row.owner not in self._asking | {self._node}:
                self._asking.add(row.owner)
                self._background.start(f"what node {row.owner} can do", self._ask(row.owner))

    async def _ask(self, node: str) -> None:
        others = sorted({*self._said, *self._asking} - {node, self._node})[:MOST_WAYS]
        asked = service.encode(AskCapacity(to=others))
        try:
            answer = await self._mesh.request(node, CAPACITY, asked, REQUEST_TIMEOUT_S)
            self._said[node] = service.decode_untrusted(answer, Capacity)
        except (RingcastError, TimeoutError) as exc:
            self._said.pop(node, None)
            logger.debug("node %s does not say what it can do: %s", node, exc)
        finally:
            self._asking.discard(node)
        for way in await self._ways(sorted({*self._far, node})):
            self._far[way.node] = way

    async def _serve(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskCapacity)
        try:
            found = self._calibration()
        except AdmissionError as exc:
            raise BrokenError(str(exc)) from exc
        ways = await self._ways(sorted({*self._far, *asked.to} - {self._node})) if asked.to else []
        return service.encode(
            Capacity(
                cores=found.machine.cores, costs=found.costs, blocking_s=found.blocking_s,
                preemption_s=found.preemption_s, waking_s=found.waking_s, link_bps=LINKS.rate_bps,
                ways=[way for way in ways if way.node in asked.to],
            )
        )  # fmt: skip

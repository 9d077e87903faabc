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
from ringcast.control.status import ChannelStatus
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.rows import Change, ChangeKind, is_declaration
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
    losses: Annotated[dict[Name, Annotated[float, Meta(ge=0.0, le=1.0)]], Meta(max_length=MOST_WAYS)] = {}
    """By node whose streams come here: the share of messages that was lost of late, before any repair."""


class Capacities:
    """`ways` measures how far nodes are; `losses` is what streams to this node lost of late, by the node that they come
    from. `on_known` is called when all that were asked have answered, or did not."""

    def __init__(
        self, node: str, mesh: ServingMesh, ways: Callable[[list[str]], Awaitable[list[Way]]],
        calibration: Callable[[], Calibration], background: Background,
        losses: Callable[[], dict[str, float]] = dict, on_known: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._node = node
        self._mesh = mesh
        self._ways = ways
        self._calibration = calibration
        self._background = background
        self._losses = losses
        self._on_known = on_known
        self._said: dict[str, Capacity] = {}
        self._far: dict[str, Way] = {}
        self._asking: set[str] = set()
        mesh.serve(CAPACITY, self._serve)

    def of(self, node: str) -> Capacity | None:
        return self._said.get(node)

    @property
    def asking(self) -> bool:
        """Whether somebody has been asked and has not answered yet."""
        return bool(self._asking)

    def card(self, node: str) -> float:
        """Bytes per second that a node's card carries; 0 is unknown. What its administrator said and what its
        interfaces say: the least counts, as if it had one."""
        said = self._said.get(node)
        ways = self._far.values() if node == self._node else said.ways if said is not None else ()
        rates = [way.bandwidth for way in ways if way.bandwidth]
        return min([*rates, *([bps / 8] if (bps := self._link_bps(node)) else [])], default=0.0)

    def latency_s(self, a: str, b: str) -> float:
        """Between two nodes; 0 is unknown. Of a way that both ends measured the longer counts."""
        found = [way for way in (self._measured(a, b), self._measured(b, a)) if way is not None]
        return max((way.round_trip_s / 2 for way in found), default=0.0)

    def loss(self, a: str, b: str) -> float | None:
        """The share of messages between two nodes that was lost, the worse of both directions; None: no channel
        between them measured it."""
        found = [self._lost(a).get(b), self._lost(b).get(a)]
        return max((share for share in found if share is not None), default=None)

    def _lost(self, node: str) -> dict[str, float]:
        """On the way to a node, by where it came from."""
        said = self._said.get(node)
        return self._losses() if node == self._node else said.losses if said is not None else {}

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
            known = self._asking | {self._node}
            if is_declaration(row) and kind is ChangeKind.ADDED and row.owner not in known:
                self._asking.add(row.owner)
                self._background.start(f"what node {row.owner} can do", self._ask(row.owner))

    async def _ask(self, node: str) -> None:
        others = sorted({*self._said, *self._asking} - {node, self._node})[: MOST_WAYS - 1]
        try:
            await self._hear(node, AskCapacity(to=[self._node, *others]))
            for way in await self._ways(sorted({*self._far, node})):
                self._far[way.node] = way
        finally:
            self._asking.discard(node)
        if not self._asking:
            self._on_known()

    async def _hear(self, node: str, asked: AskCapacity) -> None:
        try:
            answer = await self._mesh.request(node, CAPACITY, service.encode(asked), REQUEST_TIMEOUT_S)
            self._said[node] = service.decode_untrusted(answer, Capacity)
        except (RingcastError, TimeoutError) as exc:
            self._said.pop(node, None)
            logger.debug("node %s does not say what it can do: %s", node, exc)

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
                losses=dict(sorted(self._losses().items())[:MOST_WAYS]),
            )
        )  # fmt: skip


def lost_by_node(rows: Iterable[ChannelStatus]) -> dict[str, float]:
    """Of streams that come here, by the node that sends them: the share of messages that was lost of late, before any
    repair. Pure."""
    found: dict[str, float] = {}
    for row in rows:
        if row.environment is not None and row.environment.loss_percent is not None:
            found[row.node] = max(found.get(row.node, 0.0), min(1.0, row.environment.loss_percent / 100))
    return found

"""What other nodes say of themselves to whoever admits streams: cores, what stages take there, how far and fast the way
is.

Asked once anybody there declares something, and again whenever somebody else does. Invariant: of a node that does not
answer, or was never calibrated, nothing is known; the analysis assumes little of it then.
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
from ringcast.control.placing import Way
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow
from ringcast.errors import BrokenError, RingcastError
from ringcast.transport.urgent.links import LINKS

logger = logging.getLogger("ringcast.daemon")

CAPACITY = "admission.capacity"
REQUEST_TIMEOUT_S = 2.0


class AskCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """What can you do?"""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """As a node's calibration has it. `link_bps` is what its links carry, where its administrator said so."""

    cores: Annotated[int, Meta(ge=1, le=65536)]
    costs: Costs
    blocking_s: Annotated[float, Meta(ge=0.0, le=60.0)]
    link_bps: Annotated[int, Meta(ge=0, le=10**15)] = 0


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
        """Bytes per second and seconds between two nodes; 0 is unknown. Ways of others among each other are not
        known here."""
        other = b if a == self._node else a if b == self._node else ""
        far, said = self._far.get(other), self._said.get(other)
        rates = [bps / 8 for bps in (LINKS.rate_bps, said.link_bps if said is not None else 0) if bps]
        rates += [far.bandwidth] if far is not None and far.bandwidth else []
        return min(rates, default=0.0) if other else 0.0, far.round_trip_s / 2 if far is not None else 0.0

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
        try:
            answer = await self._mesh.request(node, CAPACITY, service.encode(AskCapacity()), REQUEST_TIMEOUT_S)
            self._said[node] = service.decode_untrusted(answer, Capacity)
        except (RingcastError, TimeoutError) as exc:
            self._said.pop(node, None)
            logger.debug("node %s does not say what it can do: %s", node, exc)
        finally:
            self._asking.discard(node)
        for way in await self._ways(sorted({*self._far, node})):
            self._far[way.node] = way

    async def _serve(self, node: str, payload: bytes) -> bytes:
        service.decode_untrusted(payload, AskCapacity)
        try:
            found = self._calibration()
        except AdmissionError as exc:
            raise BrokenError(str(exc)) from exc
        return service.encode(
            Capacity(cores=found.machine.cores, costs=found.costs, blocking_s=found.blocking_s, link_bps=LINKS.rate_bps)
        )

"""Models reach every node of the mesh: those that are here when one is loaded, and those that come later.

A node that has models tells those that it meets which, and each takes what the other has later than it does. So a
daemon that was started again has them back as long as one other node lived. Invariant: nothing is said while nobody
comes and nothing is loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from ringcast.control import service
from ringcast.control.between.choosing import MODELS, Versions
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

TIMEOUT_S = 6.0
"""The other node fetches what it lacks before it answers."""
TRIES, PAUSE_S = 5, 1.0
"""How often a node that came is told, and the first pause between; each is twice the one before."""


class Spreading:
    def __init__(
        self, mesh: ServingMesh, models: Models, now_ns: Callable[[], int], background: Background,
        pause_s: float = PAUSE_S,
    ) -> None:  # fmt: skip
        self._mesh = mesh
        self._models = models
        self._now_ns = now_ns
        self._background = background
        self._pause_s = pause_s
        mesh.serve(MODELS, self._serve)

    def node_came(self, node: str) -> None:
        """What that node has, it tells itself."""
        if self._models.versions():
            self._background.start(f"models for node {node}", self._meet(node))

    async def give(self, nodes: Iterable[str]) -> list[str]:
        """Tell these what is here. Returns warnings: who has not taken all of it."""
        named = list(nodes)
        return [word for word in await asyncio.gather(*map(self._given, named)) if word]

    async def _given(self, node: str) -> str:
        try:
            missing = await self._exchange(node)
        except (TimeoutError, RingcastError) as exc:
            return f"node {node} did not say that it took the model: {exc or 'it did not answer in time'}"
        rights = "its rules do not let this node choose for all tags, or its clock is behind"
        return f"node {node} did not take the model for {', '.join(missing)}: {rights}" if missing else ""

    async def _meet(self, node: str) -> None:
        for number in range(TRIES):
            try:
                await self._exchange(node)
                return
            except (TimeoutError, RingcastError) as exc:
                logger.debug("node %s does not say which models it has: %s", node, exc)
            await asyncio.sleep(self._pause_s * 2**number)
            if self._mesh.node(node) is None:
                return

    async def _exchange(self, node: str) -> list[str]:
        """Metrics of which the other node has not what we have. Raises TimeoutError, RingcastError."""
        mine = self._models.versions()
        answer = await self._mesh.request(node, MODELS, service.encode(Versions(models=mine)), TIMEOUT_S)
        theirs = service.decode_untrusted(answer, Versions).models
        await self._models.follow(node, theirs, self._now_ns())
        return sorted(metric for metric, loaded_ns in mine.items() if theirs.get(metric, -1) < loaded_ns)

    async def _serve(self, node: str, payload: bytes) -> bytes:
        told = service.decode_untrusted(payload, Versions)
        await self._models.follow(node, told.models, self._now_ns())
        return service.encode(Versions(models=self._models.versions()))

"""What the rest of the daemon may ask of the mesh. Fakes in tests implement this and nothing more. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol


class Mesh(Protocol):
    @property
    def refused(self) -> Counter[str]:
        """What was not believed of others or not done for them, by reason."""

    def node(self, name: str) -> object | None:
        """A node that is here, or None."""

    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes:
        """What the service of that node answers. Raises BrokenError, TimeoutError, or what the other refused with."""


class ServingMesh(Mesh, Protocol):
    """One that also answers other nodes."""

    def serve(self, service: str, handler: Callable[[str, bytes], Awaitable[bytes]]) -> None: ...

"""How a node is reached: the link that requests to it take, and the host that data for it goes to.

Invariant: data goes only to a host that a node calls from, or where it answered; what a record says is not enough.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from ringcast.daemon.mesh.core.events import Doubted, Event, Wanted
from ringcast.daemon.mesh.core.membership import Membership
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.daemon.mesh.services import asking
from ringcast.errors import BrokenError
from ringcast.model import addresses

PROOF_S = 1.5
"""How long a node has to answer that is called back to see whether it is where it says."""


class Reaching:
    """`tell` gives the cluster an event."""

    def __init__(
        self, membership: Membership, links: Mapping[int, PeerLink], refused: Counter[str],
        tell: Callable[[Event], None], is_running: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._membership = membership
        self._links = links
        self._refused = refused
        self._tell = tell
        self._is_running = is_running
        self._awaited: dict[str, list[asyncio.Future[None]]] = {}
        self._doubts: list[asyncio.Future[None]] = []

    async def link_to(self, node: str) -> PeerLink:
        """Raises BrokenError."""
        while True:
            self._tell(Wanted(node))
            if self._membership.names.holders.get(node) is None or not self._is_running():
                raise BrokenError(f"node {node!r} is not in the mesh; 'ringcast nodes' shows who is")
            number = self._membership.link_to(node)
            link = self._links.get(number) if number is not None else None
            if link is not None and not link.closing:
                return link
            future = asyncio.get_running_loop().create_future()
            self._awaited.setdefault(node, []).append(future)
            await future

    async def host_of(self, node: str) -> str:
        """For the node that asks right now, or else the one of that name. Raises BrokenError."""
        link = asking.get()
        if link is None or link.peer is None or link.peer.name != node or self._is_superfluous(link):
            link = await self.link_to(node)
        host = self._proven(link)
        if host is None:
            self._tell(Doubted(link.number))
            with suppress(TimeoutError):
                async with asyncio.timeout(PROOF_S):
                    while (host := self._proven(link)) is None:
                        self._doubts.append(asyncio.get_running_loop().create_future())
                        await self._doubts[-1]
                        if self._is_superfluous(link):
                            link = await self.link_to(node)
        if host is None:
            self._refused["unproven address"] += 1
            record = self._membership.peer(link.number)
            claimed = ", ".join(record.control) if record is not None and record.control else "no address"
            raise BrokenError(
                f"node {node!r} calls from {link.remote} and says it is at {claimed}, where it does not answer; "
                "data is sent only to where a node is. Start its daemon with --listen and an address that others reach"
            )
        return host

    def changed(self, node: str) -> None:
        """Something is different about a node that requests may wait for."""
        _wake(self._awaited.pop(node, []))

    def links_changed(self) -> None:
        """Somebody said who it is, perhaps where it was called, or a link ended."""
        doubts, self._doubts = self._doubts, []
        _wake(doubts)

    def close(self) -> None:
        for node in list(self._awaited):
            self.changed(node)

    def _is_superfluous(self, link: PeerLink) -> bool:
        """Of two links with one node one is closed, once the requests on it are done: nothing is proven of it."""
        return link.closing or self._membership.peer(link.number) is None

    def _proven(self, link: PeerLink) -> str | None:
        return self._membership.proven_host(link.number, addresses.split(link.remote)[0])


def _wake(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)

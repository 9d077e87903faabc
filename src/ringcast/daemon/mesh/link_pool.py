"""The sockets of the mesh: listening, dialling, and the links that come of it.

Invariants: every link that was told of as up is told of as down, once, unless its end was asked for; links that have
not said who they are are few; a dial ends within its time. Learns by which addresses this machine can be reached from
the near ends of its links, for those who listen on all of them. Does not know what messages mean.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ringcast.control.peering import MAX_ADDRESSES, PeerMessage
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.core.events import Announce, DialFailed, Event, LinkDown, LinkUp
from ringcast.daemon.mesh.handshakes import Handshakes
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.model import addresses

if TYPE_CHECKING:
    from ringcast.security.identity import Identity

MAX_STRANGERS = 64
"""Links whose other side has not said who it is."""
DIAL_S = 3.0
END_S = 2.5
"""How long links have to end when all do."""


class LinkPool:
    def __init__(
        self,
        background: Background,
        *,
        on_event: Callable[[Event], None],
        on_message: Callable[[PeerLink, PeerMessage], None],
        on_offence: Callable[[PeerLink, str], None],
        on_end: Callable[[PeerLink], None],
        is_busy: Callable[[PeerLink], bool],
        on_refused: Callable[[str, str, bool], None],
        identity: Identity | None = None,
    ) -> None:
        self.links: dict[int, PeerLink] = {}
        self.control: list[str] = []
        """Addresses at which this daemon can be reached."""
        self.strangers_refused = 0
        self.slow_links = 0
        self._background = background
        self._on_event = on_event
        self._on_message = on_message
        self._on_offence = on_offence
        self._on_end = on_end
        self._is_busy = is_busy
        self._handshakes = Handshakes(identity, background, on_refused) if identity is not None else None
        self._loop = asyncio.get_running_loop()
        self._servers: list[asyncio.Server] = []
        self._wildcards: dict[bool, int] = {}  # whether IPv6: port
        self._numbers = itertools.count(1)
        self._retiring: set[int] = set()
        self._ended = asyncio.Event()
        self._closed = False

    async def listen(self, host: str, port: int) -> int:
        """Returns the port. Raises OSError."""
        server = await self._loop.create_server(self._accept, host, port)
        self._servers.append(server)
        port = int(server.sockets[0].getsockname()[1])
        if addresses.is_wildcard(host):
            self._wildcards[addresses.is_ipv6(host)] = port
        else:
            self.control.append(addresses.join(host, port))
        return port

    def dial(self, address: str) -> None:
        self._background.start(f"dial {address}", self._dial(address))

    def send(self, number: int, message: PeerMessage) -> None:
        link = self.links.get(number)
        if link is not None:
            link.send(message)

    def close_link(self, number: int, *, gently: bool) -> None:
        """With `gently`, not before the requests on it are done (`settled`)."""
        link = self.links.get(number)
        if link is not None and gently and self._is_busy(link):
            self._retiring.add(number)
        elif link is not None:
            link.close(gently=gently)

    def settled(self, link: PeerLink) -> None:
        """A request on the link is done."""
        if link.number in self._retiring and not self._is_busy(link):
            link.close(gently=True)

    async def close(self) -> None:
        """End all links, giving the other sides time to do the same."""
        self._shut()
        for link in list(self.links.values()):
            link.close()
        await self._all_ended(END_S)
        await self.abort()

    async def abort(self) -> None:
        """End at once, whatever is under way."""
        self._shut()
        for link in list(self.links.values()):
            link.abort()
        await self._all_ended(END_S)

    def _shut(self) -> None:
        self._closed = True
        for server in self._servers:
            server.close()

    async def _all_ended(self, seconds: float) -> None:
        if self.links:
            try:
                await asyncio.wait_for(self._ended.wait(), seconds)
            except TimeoutError:
                pass

    # ------------------------------------------------------------------ links come and go

    async def _dial(self, address: str) -> None:
        refused = False
        try:
            host, port = addresses.split(address)
            async with asyncio.timeout(DIAL_S):
                if self._handshakes is None:
                    await self._loop.create_connection(partial(self._link, address), host, port)
                else:
                    await self._handshakes.dial(partial(self._link, address), host, port)
            return
        except ConnectionRefusedError:
            refused = True
        except (OSError, ValueError, UnicodeError):  # no way there, no answer in time, or no address at all
            pass
        self._on_event(DialFailed(address, refused))

    def _accept(self) -> asyncio.Protocol:
        return self._link(None) if self._handshakes is None else self._handshakes.accept(partial(self._link, None))

    def _link(self, address: str | None) -> PeerLink:
        return PeerLink(
            next(self._numbers), address, on_up=self._up, on_message=self._on_message, on_offence=self._on_offence,
            on_down=self._down,
        )  # fmt: skip

    def _up(self, link: PeerLink) -> None:
        self.links[link.number] = link
        strangers = sum(other.peer is None and other.address is None for other in self.links.values())
        if self._closed or (link.address is None and strangers > MAX_STRANGERS):
            self.strangers_refused += 1
            link.abort()
            return
        self._learn(link.local_host)
        self._on_event(LinkUp(link.number, link.address))

    def _down(self, link: PeerLink) -> None:
        if self.links.pop(link.number, None) is None:
            return
        self._retiring.discard(link.number)
        self.slow_links += link.slow
        self._on_end(link)
        self._on_event(LinkDown(link.number))
        if self._closed and not self.links:
            self._ended.set()

    def _learn(self, host: str) -> None:
        """The near end of a link is an address at which this daemon can be reached, if it listens on all of them."""
        port = self._wildcards.get(addresses.is_ipv6(host))
        if not host or port is None or not addresses.is_shareable(host):
            return
        address = addresses.join(host, port)
        if address not in self.control and len(self.control) < MAX_ADDRESSES:
            # Those that only this machine knows come last: others would try them in vain.
            self.control.append(address)
            self.control.sort(key=lambda known: addresses.is_loopback(addresses.split(known)[0]))
            self._on_event(Announce(control=tuple(self.control)))

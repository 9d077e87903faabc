"""TLS before the first word: each side proves its name by a certificate, and only then there is a link.

Invariants: what was not proven never becomes a link; handshakes under way are few and end within their time; each that
fails is told of, in words.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ringcast.control.limits import HANDSHAKES_PER_S, MAX_HANDSHAKES, MAX_HANDSHAKES_PER_HOST
from ringcast.daemon.access.pace import Bucket
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.peer_link import PeerLink
from ringcast.model import addresses
from ringcast.security.errors import BadCertificate

if TYPE_CHECKING:
    from ringcast.security.identity import Identity

HANDSHAKE_S = 3.0
MAX_HOSTS = 4096
"""Whose calls are counted apart."""

_WORDS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS: it has no identity; give it one with 'ringcast secure join'",
    "HTTP_REQUEST": "it does not speak TLS: it has no identity; give it one with 'ringcast secure join'",
    "UNSUPPORTED_PROTOCOL": "it speaks an old TLS; version 1.3 is needed",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks an old TLS; version 1.3 is needed",
    "NO_SHARED_CIPHER": "it speaks an old TLS; version 1.3 is needed",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate; give it one with 'ringcast secure join'",
}


class Handshakes:
    """`on_refused(host, reason, dialled)` hears of each that failed."""

    def __init__(
        self, identity: Identity, background: Background, on_refused: Callable[[str, str, bool], None]
    ) -> None:  # fmt: skip
        self.identity = identity
        self._background = background
        self._on_refused = on_refused
        self._pending: Counter[str] = Counter()  # by host
        self._calls: OrderedDict[str, Bucket] = OrderedDict()  # by host, the latest last

    def accept(self, make_link: Callable[[], PeerLink]) -> asyncio.Protocol:
        """What a server's socket hands to its caller: a protocol that waits for TLS and makes the link afterwards."""
        return _Caller(lambda transport: self._called(transport, make_link))

    async def dial(self, make_link: Callable[[], PeerLink], host: str, port: int) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: _Caller(lambda _: None), host, port)
        await self._shake(transport, make_link, dialled=True)

    def _called(self, transport: asyncio.Transport, make_link: Callable[[], PeerLink]) -> None:
        remote = _host_of(transport)
        host = addresses.split(remote)[0]
        if self._pending.total() >= MAX_HANDSHAKES or self._pending[host] >= MAX_HANDSHAKES_PER_HOST:
            self._on_refused(remote, "too many handshakes are under way", False)
            transport.abort()
            return
        if self._too_often(host):
            self._on_refused(remote, "it calls too often", False)
            transport.abort()
            return
        self._background.start("TLS with a caller", self._answer(transport, make_link))

    async def _answer(self, transport: asyncio.Transport, make_link: Callable[[], PeerLink]) -> None:
        try:
            await self._shake(transport, make_link, dialled=False)
        except OSError:  # it was told of
            pass

    async def _shake(
        self, transport: asyncio.Transport, make_link: Callable[[], PeerLink], *, dialled: bool
    ) -> None:  # fmt: skip
        host = _host_of(transport)
        caller = addresses.split(host)[0]
        early = _Early()
        self._pending[caller] += not dialled
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, early, self.identity.client if dialled else self.identity.server, server_side=not dialled,
                ssl_handshake_timeout=HANDSHAKE_S,
            )  # fmt: skip
            if secured is None or early.ended:
                raise ConnectionAbortedError("it went away during the handshake")
            proof = self.identity.proof(secured.get_extra_info("ssl_object"))
        except (OSError, BadCertificate) as exc:
            self._on_refused(host, _words(exc), dialled)
            transport.abort()
            raise ConnectionAbortedError(str(exc)) from exc
        finally:
            self._pending -= Counter({caller: int(not dialled)})
        link = make_link()
        link.proof = proof
        secured.set_protocol(link)
        link.connection_made(secured)
        if early.received:
            link.data_received(bytes(early.received))

    def _too_often(self, host: str) -> bool:
        now_s = asyncio.get_running_loop().time()
        bucket = self._calls.pop(host, None) or Bucket(HANDSHAKES_PER_S, 5 * HANDSHAKES_PER_S, now_s)
        self._calls[host] = bucket
        if len(self._calls) > MAX_HOSTS:
            self._calls.popitem(last=False)
        return bucket.wait_s(now_s) > 0


class _Caller(asyncio.Protocol):
    """Reads nothing before TLS does."""

    def __init__(self, on_made: Callable[[asyncio.Transport], None]) -> None:
        self._on_made = on_made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)
        made.pause_reading()
        self._on_made(made)


class _Early(asyncio.Protocol):
    """Keeps what comes between the handshake and the link: not much, since the loop turns once."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended = False

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True


def _host_of(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return addresses.join(str(name[0]), int(name[1])) if name else "?:0"


def _words(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        return _WORDS.get(exc.reason or "", f"TLS failed: {(exc.reason or str(exc)).lower().replace('_', ' ')}")
    if isinstance(exc, ConnectionResetError):
        return "it ended the handshake; what it says of this node's certificate is in its log"
    return str(exc) or type(exc).__name__

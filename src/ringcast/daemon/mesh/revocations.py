"""The list of revoked certificates travels through the mesh: each node tells its neighbours what it has.

Invariants: only a list that the authority signed counts, and only one newer than the last; whoever is on it loses its
links at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ringcast.daemon.background import Background
from ringcast.daemon.mesh.link_pool import LinkPool
from ringcast.daemon.observe.complaints import Complaints
from ringcast.errors import BadMessage, RingcastError
from ringcast.security.errors import SecurityError

if TYPE_CHECKING:
    from ringcast.security.identity import Identity

REVOKED = "revoked"
MOST_BYTES = 1024 * 1024
PATIENCE_S = 5.0
WARN_BEFORE = timedelta(days=21)
DAY_S = 86_400.0


class Revocations:
    """`request(node, service, payload, timeout)` asks a neighbour; `on_news` hears that more was revoked."""

    def __init__(
        self, identity: Identity, link_pool: LinkPool, request: Callable[[str, str, bytes, float], Awaitable[bytes]],
        background: Background, complaints: Complaints, on_news: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._identity = identity
        self._link_pool = link_pool
        self._request = request
        self._background = background
        self._complaints = complaints
        self._again: asyncio.Handle = asyncio.get_running_loop().call_soon(self.warn)
        self._expiry: asyncio.TimerHandle | None = None
        self._on_news = on_news

    def linked(self, node: str) -> None:
        self._end_expired()
        self._tell_later(node)

    def _end_expired(self) -> None:
        """A link ends with the certificate that proved it."""
        self._plan_no_end()
        now = datetime.now(UTC)
        proven = [(link, link.proof) for link in self._link_pool.links.values() if link.proof is not None]
        for link, proof in proven:
            if proof.until <= now:
                self._complaints.warning(
                    proof.name, "the certificate of %s has ended, and so does its link", proof.name
                )
                link.abort()
        following = [proof.until for _, proof in proven if proof.until > now]
        if following:
            left_s = (min(following) - now).total_seconds()
            self._expiry = asyncio.get_running_loop().call_later(min(left_s + 0.01, DAY_S), self._end_expired)

    def _tell_later(self, node: str) -> None:
        if self._identity.revocations:
            self._background.start(f"tell {node} what was revoked", self._tell(node))

    def reload(self) -> None:
        try:
            if self._identity.renew():
                until = f"{self._identity.until:%Y-%m-%d}"
                self._complaints.warning("", "new links use the certificate that is valid until %s", until)
            if self._identity.read_again():
                self._enforce("")
        except SecurityError as exc:
            self._complaints.error("", "the identity was not read again: %s", exc)

    def warn(self) -> None:
        """Once a day, while the certificate is about to end."""
        left = self._identity.until - datetime.now(UTC)
        if left < WARN_BEFORE:
            self._complaints.error(
                "", "this node's certificate ends on %s, and no link with it: get another with 'ringcast secure join'",
                f"{self._identity.until:%Y-%m-%d %H:%M} UTC",
            )  # fmt: skip
        self._again = asyncio.get_running_loop().call_later(DAY_S, self.warn)

    def close(self) -> None:
        self._again.cancel()
        self._plan_no_end()

    def _plan_no_end(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    async def told(self, node: str, payload: bytes) -> bytes:
        """A neighbour's list. Raises BadMessage."""
        if len(payload) > MOST_BYTES:
            raise BadMessage(f"a list of revoked certificates of {len(payload)} bytes")
        try:
            newer = self._identity.learn(payload)
        except SecurityError as exc:
            raise BadMessage(str(exc)) from exc
        if newer:
            self._enforce(node)
        return b""

    def _enforce(self, informant: str) -> None:
        neighbours = set()
        for link in list(self._link_pool.links.values()):
            if link.proof is not None and self._identity.is_revoked(link.proof.serial):
                self._complaints.warning(link.proof.name, "the certificate of %s was revoked", link.proof.name)
                link.abort()
            elif link.proof is not None and link.proof.name != informant:
                neighbours.add(link.proof.name)
        for node in neighbours:
            self._tell_later(node)
        self._on_news()

    async def _tell(self, node: str) -> None:
        try:
            await self._request(node, REVOKED, self._identity.revocations, PATIENCE_S)
        except (RingcastError, TimeoutError):  # it is gone, and is told when it returns
            pass

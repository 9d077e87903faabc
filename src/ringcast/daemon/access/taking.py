"""Rights are taken away from those who have them: the rules changed.

Whoever was given a ring's descriptors can read it as long as it is written; so publishers go on in a new ring, and
mirrors and what stages make are made anew. Invariant: when all of that is done, nothing new is written where somebody
without the right can read it, and nothing is read of a publisher without the right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from ringcast.control.notices import RightTaken, RingAnew
from ringcast.control.refusal import refuse
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.watchers import Watchers
from ringcast.daemon.rings.registrations import Client
from ringcast.daemon.rings.ring import MESH, Ring
from ringcast.errors import NotAllowed

logger = logging.getLogger("ringcast.daemon")

PATIENCE_S = 5.0
"""How long a publisher may take to go on in a new ring before it is complained of."""


class Remade(Protocol):
    """What makes rings of its own, and can make them anew."""

    def make_anew(self, concerned: Callable[[Ring], bool]) -> None: ...


class Held(Protocol):
    """Pull buffers of clients."""

    def wanted_by(self, client: int) -> list[tuple[int, str]]: ...
    def unwant(self, client: int, buffer: int | None = None) -> None: ...


class Taking:
    """`remade` are those who make mirrors and derived rings, `buffers` is None for a daemon without a network."""

    def __init__(
        self, local: Local, remade: list[Remade], buffers: Held | None, watchers: Watchers, audit: Audit,
        deliver: Callable[[list[Send]], None],
    ) -> None:  # fmt: skip
        self._local = local
        self._remade = remade
        self._buffers = buffers
        self._watchers = watchers
        self._audit = audit
        self._deliver = deliver

    def enforce(self) -> None:
        """Make everything as the rules are now."""
        for client in list(self._local.clients.values()):
            if client.who is not None and not self._local.rights.rules.is_owner(client.who):
                self._take(client)
        for ring in [ring for ring in self._local.rings if ring.alive and ring.owner != MESH and self._leaks(ring)]:
            assert ring.owner is not None
            self._deliver([Send(ring.owner, RingAnew(publisher=ring.number))])
            asyncio.get_running_loop().call_later(PATIENCE_S, self._complain, ring)
        for maker in self._remade:
            maker.make_anew(self._leaks)

    def _leaks(self, ring: Ring) -> bool:
        """Whether somebody can read it who may not."""
        return any(not self._local.rights.may_read(who, ring.tag) for who in ring.shown_to)

    def _take(self, client: Client) -> None:
        who, local = client.who, self._local
        assert who is not None
        out: list[Send] = []
        for subscription in list(client.subscriptions.values()):
            action = "subscribe" if subscription.counts else "pull"
            if not local.rights.rules.allows(who, action, subscription.pattern):
                why = self._refusal(client, action, subscription.pattern)
                local.subscribers.drop(subscription)
                out.append(Send(client.number, RightTaken(why=refuse(0, why), subscription=subscription.number)))
        for ring in list(client.rings.values()):
            if not local.rights.rules.allows(who, "publish", ring.tag):
                why = self._refusal(client, "publish", ring.tag)
                local.publishers.retire(ring, linger=False, end=ring.next_seq)
                out.append(Send(client.number, RightTaken(why=refuse(0, why), publisher=ring.number)))
        for buffer, tag in self._buffers.wanted_by(client.number) if self._buffers is not None else ():
            if self._buffers is not None and not local.rights.rules.allows(who, "pull", tag):
                self._refusal(client, "pull", tag)
                self._buffers.unwant(client.number, buffer)
        self._watchers.keep(client.number, lambda pattern: local.rights.sees(who, pattern))
        self._deliver([*local.changed([]), *out])

    def _refusal(self, client: Client, action: str, pattern: str) -> NotAllowed:
        assert client.who is not None
        refused = self._local.rights.refusal(client.who, action, pattern)
        self._audit.client(client.who, client.pid, refused)
        return refused

    def _complain(self, ring: Ring) -> None:
        if ring.alive and not ring.closed:
            logger.warning(
                "process %d has not begun a new ring on %s, and programs without the right may still read the old one; "
                "start it again", ring.info.pid, ring.tag,
            )  # fmt: skip

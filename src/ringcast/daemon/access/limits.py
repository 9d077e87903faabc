"""How much the programs of one user may take of a daemon: connections, requests, tags, rings, memory.

Invariants: everybody is limited, the daemon's own user too, at numbers that no honest program meets; whoever meets one
is told, or slowed down, and it is counted; others do not notice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ringcast.control.requests import OpenTag, Publish, Request
from ringcast.daemon.access.audit import Audit
from ringcast.daemon.access.pace import Bucket
from ringcast.daemon.clients.local import Local
from ringcast.daemon.machine import Peer
from ringcast.daemon.rings.registrations import Client
from ringcast.daemon.rings.ring import Core
from ringcast.errors import ResourceLimit
from ringcast.security.rules import ROOT

MOST_REFUSED = 64
"""Connections beyond a limit that are kept until they can be told."""
REST_S = 0.02
"""A program that asks too fast is not read for so long."""


class Limits:
    """`values` are the settings in force; `own` is the daemon's user."""

    def __init__(self, local: Local, core: Core, audit: Audit, values: Mapping[str, Any], own: int) -> None:
        self.values = values
        self.throttled = 0
        """How often a program was not read for a moment, because it asked too fast."""
        self.too_many: dict[int, ResourceLimit] = {}
        """Connections that are told, and end."""
        self._local = local
        self._core = core
        self._audit = audit
        self._own = own
        self._loop = asyncio.get_running_loop()
        self._connections: Counter[int] = Counter()  # by user
        self._buckets: dict[int, Bucket] = {}  # by connection
        self._created: dict[int, set[str]] = {}  # tags, by user

    def enter(self, number: int, peer: Peer) -> bool:
        """Somebody connected. One too many is told so when it says hello (`too_many`); False: it is to go at once,
        because enough others wait to be told."""
        most = self.values["limits.user_connections"]
        if self._connections[peer.uid] >= most:
            try:
                self._refuse(
                    peer.user, peer.pid, "connect", "", f"{most} connections of one user", "end other programs"
                )
            except ResourceLimit as exc:
                if len(self.too_many) >= MOST_REFUSED:
                    return False
                self.too_many[number] = exc
                return True
        self._connections[peer.uid] += 1
        per_s = self.values["limits.requests_per_s"]
        self._buckets[number] = Bucket(per_s, 2 * per_s, self._loop.time())
        return True

    def leave(self, number: int, peer: Peer) -> None:
        self.too_many.pop(number, None)
        if self._buckets.pop(number, None) is not None:
            self._connections -= Counter([peer.uid])

    def rest_s(self, number: int) -> float:
        """Before a request is read: how long to leave its sender alone."""
        bucket = self._buckets.get(number)
        if bucket is None or not bucket.wait_s(self._loop.time()):
            return 0.0
        self.throttled += 1
        return REST_S

    def check(self, client: Client, request: Request) -> None:
        """Raises ResourceLimit."""
        if client.who is None:
            return
        if isinstance(request, OpenTag):
            self._check_tag(client, client.who.uid, request)
        elif isinstance(request, Publish) and not request.instead:
            self._check_ring(client, client.who.uid, request)

    def _check_tag(self, client: Client, uid: int, request: OpenTag) -> None:
        if not request.create or self._local.table.tag(request.name) is not None:
            return
        most, created = self.values["limits.user_tags"], self._created.setdefault(uid, set())
        if len(created) >= most:
            created &= {name for name in created if self._local.table.tag(name) is not None}
        if len(created) >= most:
            self._refuse(
                client.user, client.pid, "create", request.name, f"{most} tags of one user", "destroy some of them"
            )
        created.add(request.name)

    def _check_ring(self, client: Client, uid: int, request: Publish) -> None:
        publishers = self.values["limits.user_rings"]
        if self._local.publishers.rings_of[uid] >= publishers:
            most = f"{publishers} publishers of one user"
            self._refuse(client.user, client.pid, "publish", request.tag, most, "close some of them")
        memory = self.values["limits.user_memory"]
        if memory is None and uid in (self._own, ROOT):
            return  # all rings together have a budget
        if memory is None:
            memory = self._local.budget.total_bytes // 2
        try:
            asked = self._core.ring_memory_bytes(request.depth, request.capacity_bytes)
        except (ValueError, TypeError, OverflowError):
            return  # not a ring that there could be: it is refused for that
        if self._local.publishers.bytes_of[uid] + asked > memory:
            most, remedy = f"{memory} bytes of rings of one user", "close publishers, or use a smaller ring"
            self._refuse(client.user, client.pid, "publish", request.tag, most, remedy)

    def _refuse(self, user: str, pid: int, action: str, what: str, most: str, remedy: str) -> None:
        self._audit.note("client", f"user {user}", action, what, f"more than {most}", pid)
        raise ResourceLimit(f"user {user} has reached {most}, the most that this daemon allows", remedy)

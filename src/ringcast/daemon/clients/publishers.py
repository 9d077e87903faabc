"""Publishers of this node: what they ask for, and what becomes of a ring when its publisher leaves.

Invariant: a publisher that left stays listed until every node that wants its stream has a channel, or was waited for
long enough; histories keep its ring while the budget allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ringcast.control.answers import Done, Published
from ringcast.control.descriptor import Descriptor, expect
from ringcast.control.requests import ListPublishers, Publish, Unpublish
from ringcast.daemon.effects import Send
from ringcast.daemon.observe import listing
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.registrations import OWN_CLIENT, Client
from ringcast.daemon.rings.ring import Core, DerivedRing, Ring
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.table.attributes import check_geometry
from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.system_tags import check_published
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, RingcastError, UnknownTag
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import check_name, check_pattern


class Publishers:
    """`on_leaving` is told of publishers that left before other nodes had channels from them; `wait_no_longer` is to
    follow."""

    def __init__(
        self, table: TagTable, budget: Budget, core: Core, sharing: Sharing, clients: dict[int, Client],
        numbers: Iterator[int], on_leaving: Callable[[int], object],
    ) -> None:  # fmt: skip
        self._table = table
        self._budget = budget
        self._core = core
        self._sharing = sharing
        self._rings = sharing.rings
        self._effects = sharing.effects
        self._clients = clients
        self._numbers = numbers
        self._on_leaving = on_leaving
        self._leaving: set[int] = set()
        self.unbacked: Callable[[str], list[str]] = lambda _: []
        """Why the bound of what was admitted on a tag is not backed by this node, in words."""
        self.rings_of: Counter[int] = Counter()
        """Publishers that there are now, by user."""
        self.bytes_of: Counter[int] = Counter()
        """And the memory of their rings."""
        self.handlers: dict[type[Any], Callable[[Client, Any, list[Descriptor]], None]] = {
            Publish: self._publish, Unpublish: self._unpublish, ListPublishers: self._list_publishers
        }  # fmt: skip

    def _publish(self, client: Client, request: Publish, fds: list[Descriptor]) -> None:
        expect(fds, 3, request)
        tag = self._table.tag(check_name(request.tag))
        check_published(request.tag, client.number == OWN_CLIENT)
        if tag is None:
            raise UnknownTag(request.tag)
        check_geometry(request.depth, request.capacity_bytes)
        _check_instead(client, request)
        known = self._rings.of_incarnation(request.incarnation)
        if not 0 < request.incarnation < 2**64 or (known is not None and (known.alive or known.info.pid != client.pid)):
            raise BadMessage(f"incarnation {request.incarnation} is not a new one")
        monitor = self._core.RingMonitor(
            fds[0].fileno(), fds[1].fileno(), depth=request.depth, capacity_bytes=request.capacity_bytes,
            incarnation=request.incarnation,
        )  # fmt: skip
        info = PublisherInfo(
            id=next(self._numbers), node=self._table.node, tag=tag.name, incarnation=request.incarnation,
            pid=client.pid, user=client.user, program=client.program,
        )  # fmt: skip
        row = PublisherRow(
            info=info,
            depth=request.depth,
            capacity_bytes=request.capacity_bytes,
            declared=request.declared,
            offered=request.offered,
            since=self._since(client, request),
        )
        ring = Ring(row, client.number, tag.attributes, fds, monitor)
        if known is not None:  # its publisher comes back after it lost its connection
            self._sharing.forget(known)
        try:
            size = self._core.ring_memory_bytes(request.depth, request.capacity_bytes)
            self._sharing.await_readers(ring)
            evicted = self._budget.admit(ring.number, size)
        except RingcastError:
            ring.close()
            raise
        for number in evicted:
            self._sharing.forget(self._rings[number], released=True)
        self._add_ring(client, ring)
        ring.announced = len(self._table.subscribers(ring.tag))
        self._effects.send(client.number, Published(
            id=request.id, info=info, subscribers=ring.announced,
            warnings=self.unbacked(info.tag) if request.declared is not None else [],
        ))  # fmt: skip

    def _since(self, client: Client, request: Publish) -> int:
        """Of a declared one; what takes another's place was declared with that one."""
        if request.declared is None:
            return 0
        return client.rings[request.instead].row.since if request.instead else self._table.next_since()

    def _unpublish(self, client: Client, request: Unpublish, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        ring = client.rings.get(request.publisher)
        if ring is not None:  # or it went with its tag a moment ago
            self.retire(ring)
        self._effects.send(client.number, Done(id=request.id))

    def _add_ring(self, client: Client, ring: Ring) -> None:
        client.rings[ring.number] = ring
        ring.uid = None if client.who is None else client.who.uid
        self._count(ring, 1)
        self._rings.add(ring)
        self._effects.note(self._table.put(ring.row))
        self._sharing.show(ring)

    def _count(self, ring: Ring, by: int) -> None:
        if ring.uid is not None:
            self.rings_of[ring.uid] += by
            self.bytes_of[ring.uid] += by * ring.memory_bytes(self._core)

    def retire(self, ring: Ring, *, linger: bool = True, end: int | None = None) -> None:
        """Its publisher left. Subscribers are told; histories keep it as long as this node does. With `end`, nothing
        from that number on is read, whatever is written."""
        owner = self._clients.get(ring.owner) if ring.owner is not None else None
        if owner is not None:
            del owner.rings[ring.number]
        self._count(ring, -1)
        ring.owner = ring.uid = None
        self._effects.forget(ring.fanout)
        ring.fanout.close()
        for subscription in self._sharing.subscriptions.matching(ring.tag):
            if subscription.counts:
                self._sharing.ring_down(subscription, ring, end)
        if not linger or not ring.monitor.counters().get("sent", 0):
            self._sharing.forget(ring)
        elif ring.untaken:  # other nodes may have no channel yet: stay listed for a moment
            self._leaving.add(ring.info.incarnation)
            self._on_leaving(ring.info.incarnation)
        else:
            self._left(ring)

    def _left(self, ring: Ring) -> None:
        ring.row = msgspec.structs.replace(ring.row, alive=False, end=ring.next_seq)
        self._effects.note(self._table.put(ring.row))
        for number in self._budget.linger(ring.number, ring.tag):
            self._sharing.forget(self._rings[number], released=True)

    def see_off(self) -> None:
        """Take down publishers that left and that every interested node has channels from by now."""
        for incarnation in list(self._leaving):
            ring = self._rings.of_incarnation(incarnation)
            if ring is None or not ring.untaken:
                self._leaving.discard(incarnation)
            if ring is not None and not ring.untaken:
                self._left(ring)

    def taken(self, node: str, incarnation: int) -> list[Send]:
        """Another node has channels from a publisher here for all its subscribers."""
        self._sharing.taken(node, incarnation)
        self.see_off()
        return self._effects.finish()

    def wait_no_longer(self, incarnation: int) -> list[Send]:
        """Stop waiting for nodes that have no channel from it yet."""
        ring = self._rings.of_incarnation(incarnation)
        if ring is not None:
            ring.untaken.clear()
        self.see_off()
        return self._effects.finish()

    def _list_publishers(self, client: Client, request: ListPublishers, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        rows = [ring.status() for ring in streams(self._rings.matching(check_pattern(request.tag)))]
        for page in listing.publisher_pages(request.id, rows):
            self._effects.send(client.number, page)


def _check_instead(client: Client, request: Publish) -> None:
    """What takes another's place was admitted with it, and may be nothing else. Raises BadMessage."""
    if request.instead:
        before = client.rings.get(request.instead)
        if before is None or (before.tag, before.row.declared) != (request.tag, request.declared):
            raise BadMessage(f"publisher {request.instead} is not one that this ring could take the place of")


def streams(rings: Iterable[Ring]) -> list[Ring]:
    """Without the rings that stages write."""
    return [ring for ring in rings if not isinstance(ring, DerivedRing)]

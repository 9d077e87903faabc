"""The paper's local manager: what a client of this node asks for becomes table changes, grants and notices.

`(client, request, descriptors) -> messages to send, with descriptors`: no clock, no asyncio, and no socket but the
publishers' fan-out sockets, which never block. Invariants: whatever a client holds is in the table while the client is
here and gone when it is not; a publisher's fan-out names exactly the mailboxes of the subscriptions that match it;
a refused request has changed nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ringcast.control.messages import (
    DestroyTag,
    Done,
    Hello,
    ListPublishers,
    ListSubscribers,
    ListTags,
    OpenTag,
    Publish,
    Published,
    Request,
    RingDown,
    Subscribe,
    TagGone,
    TagOpened,
    Unpublish,
    Unsubscribe,
    UseMailbox,
)
from ringcast.daemon import listing
from ringcast.daemon.attributes import check_geometry
from ringcast.daemon.budget import Budget
from ringcast.daemon.descriptor import Descriptor
from ringcast.daemon.effects import Effects, Send
from ringcast.daemon.fanout import FanOut, Flushed
from ringcast.daemon.holdings import Client, Core, Demand, MirrorRing, Ring, Subscription
from ringcast.daemon.matching import PatternIndex
from ringcast.daemon.refusal import refuse
from ringcast.daemon.rings import Rings
from ringcast.daemon.rows import Change, PublisherRow, SubscriberRow, publisher_key, subscriber_key, tag_key
from ringcast.daemon.system_tags import check_opened, check_published
from ringcast.daemon.table import TagTable
from ringcast.errors import BadMessage, ClosedError, QosMismatch, RingcastError, TagInUse, UnknownTag
from ringcast.identity import PublisherInfo, SubscriberInfo
from ringcast.tag import check_name, check_pattern, tag_id

MAX_PROGRAM_CHARS = 255
OWN_CLIENT = 0
"""The daemon as a client of its own; connections are numbered from 1."""


class Local:
    """The clients of one node and what they hold."""

    def __init__(self, table: TagTable, budget: Budget, core: Core) -> None:
        self.table = table
        self.budget = budget
        self.clients: dict[int, Client] = {}
        self.rings = Rings()
        self._core = core
        self._subscriptions: PatternIndex[int, Subscription] = PatternIndex()
        self._numbers = itertools.count(1)
        self._effects = Effects(table, self.rings)
        self._handlers: dict[type[Any], Callable[[Client, Any, list[Descriptor]], None]] = {
            OpenTag: self._open, DestroyTag: self._destroy, Publish: self._publish, Unpublish: self._unpublish,
            Subscribe: self._subscribe, UseMailbox: self._use_mailbox, Unsubscribe: self._unsubscribe,
            ListTags: self._list_tags, ListPublishers: self._list_publishers, ListSubscribers: self._list_subscribers,
        }  # fmt: skip

    # ------------------------------------------------------------------ what the shell calls

    def join(self, client: int, pid: int, user: str, hello: Hello, fds: list[Descriptor]) -> None:
        """A client introduced itself. Raises BadMessage, CorruptRing, ResourceLimit."""
        if len(fds) > 1:
            raise BadMessage(f"{len(fds)} descriptors beside hello, expected at most 1")
        counters = self._core.CounterView(fds[0].fileno()) if fds else None
        self.clients[client] = Client(client, pid, user, hello.program[:MAX_PROGRAM_CHARS], counters)

    def handle(self, client: int, request: Request, fds: list[Descriptor]) -> list[Send]:
        """Do what a client asks. Raises BadMessage when it does not keep to the protocol."""
        handler = self._handlers.get(type(request))
        if handler is None:
            raise BadMessage(f"{type(request).__name__} out of turn")
        try:
            handler(self.clients[client], request, fds)
        except BadMessage:
            raise
        except RingcastError as exc:
            self._effects.send(client, refuse(request.id, exc))
        return self._effects.finish()

    def leave(self, client: int) -> list[Send]:
        """A client is gone: withdraw what it held. Its rings linger."""
        gone = self.clients.pop(client, None)
        if gone is not None:
            for subscription in list(gone.subscriptions.values()):
                self._drop_subscription(subscription)
            for ring in list(gone.rings.values()):
                self._retire(ring)
        return self._effects.finish()

    def process_died(self, pid: int) -> None:
        """Free the reliable slots of a dead process, wherever it had some, so that no publisher waits for it."""
        for ring in self.rings:
            ring.monitor.free_slots(pid)

    def changed(self, changes: Iterable[Change]) -> list[Send]:
        """React to changes of the table that other nodes made."""
        self._effects.recount(changes)
        return self._effects.finish()

    def take_changes(self) -> list[Change]:
        """What this node wrote into the table since the last call."""
        changes, self._effects.changes = self._effects.changes, []
        return changes

    def take_stalled(self) -> list[tuple[FanOut, Flushed]]:
        """Fan-outs whose sockets are full: call `retry` when they may have room."""
        stalled = list(self._effects.stalled.items())
        self._effects.stalled.clear()
        return stalled

    def retry(self, fanout: FanOut) -> None:
        """Send announcements that had no room before."""
        self._effects.flush(fanout)

    def close(self) -> None:
        for ring in self.rings:
            ring.close()
            self.rings.remove(ring)

    # ------------------------------------------------------------------ tags

    def _open(self, client: Client, request: OpenTag, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        required = check_opened(check_name(request.name))
        requested = request.requested if required is None else {**required, **request.requested}
        row, changes = self.table.open_tag(request.name, requested, request.create)
        self._effects.note(changes)
        self._effects.send(
            client.number,
            TagOpened(id=request.id, name=row.name, tag_id=tag_id(row.name), attributes=row.attributes),
        )

    def _destroy(self, client: Client, request: DestroyTag, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        name = check_name(request.name)
        check_published(name, client.number == OWN_CLIENT)
        if self.table.tag(name) is None:
            raise UnknownTag(name)
        # A wildcard holds no right on a tag, it takes what comes; a history is nobody's subscriber.
        held = self._subscriptions.exact(name)
        own_rings = {ring.number for ring in client.rings.values()}
        own_subscriptions = {s.info.id for s in client.subscriptions.values()}
        publishers = sum(
            row.alive and not (row.info.node == self.table.node and row.info.id in own_rings)
            for row in self.table.publishers(name)
        )
        subscribers = sum(
            row.info.pattern == name and not (row.info.node == self.table.node and row.info.id in own_subscriptions)
            for row in self.table.subscribers(name)
        )
        if (publishers or subscribers) and not request.force:
            raise TagInUse(name, publishers, subscribers)
        told = {s.client.number for s in held}
        for subscription in held:
            self._drop_subscription(subscription)
        for ring in self.rings.matching(name):
            if ring.owner is not None:
                told.add(ring.owner)
                self._retire(ring, linger=False)
            else:
                self._forget(ring)
        self._effects.note(self.table.remove(tag_key(name)))
        for number in sorted(told):
            self._effects.send(number, TagGone(name=name))
        self._effects.send(client.number, Done(id=request.id))

    # ------------------------------------------------------------------ publishers

    def _publish(self, client: Client, request: Publish, fds: list[Descriptor]) -> None:
        _expect(fds, 3, request)
        tag = self.table.tag(check_name(request.tag))
        check_published(request.tag, client.number == OWN_CLIENT)
        if tag is None:
            raise UnknownTag(request.tag)
        check_geometry(request.depth, request.capacity_bytes)
        known = self.rings.of_incarnation(request.incarnation)
        if not 0 < request.incarnation < 2**64 or (known is not None and (known.alive or known.info.pid != client.pid)):
            raise BadMessage(f"incarnation {request.incarnation} is not a new one")
        monitor = self._core.RingMonitor(
            fds[0].fileno(), fds[1].fileno(), depth=request.depth, capacity_bytes=request.capacity_bytes,
            incarnation=request.incarnation,
        )  # fmt: skip
        info = PublisherInfo(
            id=next(self._numbers), node=self.table.node, tag=tag.name, incarnation=request.incarnation,
            pid=client.pid, user=client.user, program=client.program,
        )  # fmt: skip
        row = PublisherRow(info=info, depth=request.depth, capacity_bytes=request.capacity_bytes)
        ring = Ring(row, client.number, tag.attributes, fds, monitor)
        if known is not None:  # its publisher comes back after it lost its connection
            self._forget(known)
        try:
            size = self._core.ring_memory_bytes(request.depth, request.capacity_bytes)
            evicted = self.budget.admit(ring.number, size)
        except RingcastError:
            ring.close()
            raise
        for number in evicted:
            self._forget(self.rings[number], released=True)
        self._add_ring(client, ring)
        ring.announced = len(self.table.subscribers(ring.tag))
        self._effects.send(client.number, Published(id=request.id, info=info, subscribers=ring.announced))

    def _unpublish(self, client: Client, request: Unpublish, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        ring = client.rings.get(request.publisher)
        if ring is not None:  # or it went with its tag a moment ago
            self._retire(ring)
        self._effects.send(client.number, Done(id=request.id))

    def _add_ring(self, client: Client, ring: Ring) -> None:
        client.rings[ring.number] = ring
        self.rings.add(ring)
        self._effects.note(self.table.put(ring.row))
        self._show(ring)

    def _show(self, ring: Ring) -> None:
        """Give a new ring to everybody whom it concerns."""
        for subscription in self._subscriptions.matching(ring.tag):
            if not subscription.accepts(ring):
                continue
            if subscription.mailbox is not None:
                ring.fanout.add(subscription.mailbox)
                self._effects.announce(ring.fanout)
            self._effects.send(subscription.client.number, ring.up(subscription.number, born_after=True), ring.fds)

    def _retire(self, ring: Ring, *, linger: bool = True) -> None:
        """Its publisher left. Subscribers are told; histories keep it as long as this node does."""
        owner = self.clients.get(ring.owner) if ring.owner is not None else None
        if owner is not None:
            del owner.rings[ring.number]
        ring.owner = None
        self._effects.forget(ring.fanout)
        ring.fanout.close()
        for subscription in self._subscriptions.matching(ring.tag):
            if subscription.counts:
                self._ring_down(subscription, ring)
        if not linger or not ring.monitor.counters().get("sent", 0):
            self._forget(ring)
            return
        ring.row = PublisherRow(
            info=ring.info, depth=ring.row.depth, capacity_bytes=ring.row.capacity_bytes, alive=False
        )  # fmt: skip
        self._effects.note(self.table.put(ring.row))
        for number in self.budget.linger(ring.number, ring.tag):
            self._forget(self.rings[number], released=True)

    def _forget(self, ring: Ring, *, released: bool = False) -> None:
        if not released:
            self.budget.release(ring.number)
        self.rings.remove(ring)
        self._effects.note(self.table.remove(publisher_key(ring.number)))
        for subscription in self._subscriptions.matching(ring.tag):
            if not subscription.counts:
                self._ring_down(subscription, ring)
        ring.close()

    def _ring_down(self, subscription: Subscription, ring: Ring) -> None:
        notice = RingDown(subscription=subscription.number, incarnation=ring.ring)
        self._effects.send(subscription.client.number, notice)

    # ------------------------------------------------------------------ mirrors of other nodes' publishers

    def number(self) -> int:
        """A number that no ring or subscription of this node has."""
        return next(self._numbers)

    def add_mirror(self, ring: MirrorRing) -> list[Send]:
        """Show a mirror to those who asked for such a one. Raises NoSpace."""
        size = self._core.ring_memory_bytes(ring.row.depth, ring.row.capacity_bytes)
        for number in self.budget.admit(ring.number, size):
            self._forget(self.rings[number], released=True)
        self.rings.add(ring)
        self._show(ring)
        return self._effects.finish()

    def drop_mirror(self, ring: MirrorRing) -> list[Send]:
        """Its publisher left, or nobody wants it any more. What it holds may be read to the end."""
        self._effects.forget(ring.fanout)
        for subscription in self._subscriptions.matching(ring.tag):
            if subscription.accepts(ring):
                self._ring_down(subscription, ring)
        self.budget.release(ring.number)
        self.rings.remove(ring)
        ring.close()
        return self._effects.finish()

    def announce(self, ring: Ring) -> list[Send]:
        """Links were added to the ring's fan-out, or removed."""
        self._effects.announce(ring.fanout)
        return self._effects.finish()

    def demands(self, tag: str) -> set[Demand]:
        """How this node's subscribers of a tag want it, each way once."""
        return {subscription.demand for subscription in self._subscriptions.matching(tag) if subscription.counts}

    # ------------------------------------------------------------------ subscribers

    def _subscribe(self, client: Client, request: Subscribe, fds: list[Descriptor]) -> None:
        _expect(fds, 1 if request.mailbox else 0, request)
        pattern = check_pattern(request.pattern)
        if request.subscription in client.subscriptions:
            raise BadMessage(f"subscription {request.subscription} exists")
        tag = self.table.tag(pattern)
        if request.reliable and tag is not None and tag.attributes.max_wait_s == 0:
            remedy = "create the tag with a larger max_wait_s, or subscribe with reliable=False"
            raise QosMismatch("reliable delivery", f"tag {pattern!r} has max_wait_s=0", remedy)
        info = SubscriberInfo(
            id=next(self._numbers), node=self.table.node, pattern=pattern, pid=client.pid, user=client.user,
            reliable=request.reliable, program=client.program,
        )  # fmt: skip
        subscription = Subscription(
            client, request.subscription, info, request.role, request.counter_index, demand_of(request)
        )  # fmt: skip
        client.subscriptions[subscription.number] = subscription
        self._subscriptions.add(pattern, info.id, subscription)
        if fds:
            self._set_mailbox(subscription, fds[0])
        if subscription.counts:
            self._effects.note(self.table.put(SubscriberRow(info=info)))
        for ring in self.rings.matching(pattern):
            if (ring.alive or not subscription.counts) and subscription.accepts(ring):
                self._effects.send(client.number, ring.up(subscription.number, born_after=False), ring.fds)
        self._effects.send(client.number, Done(id=request.id))

    def _use_mailbox(self, client: Client, request: UseMailbox, fds: list[Descriptor]) -> None:
        _expect(fds, 1, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is None:
            raise ClosedError("subscription")
        self._set_mailbox(subscription, fds[0])
        self._effects.send(client.number, Done(id=request.id))

    def _unsubscribe(self, client: Client, request: Unsubscribe, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is not None:  # or it went with its tag a moment ago
            self._drop_subscription(subscription)
        self._effects.send(client.number, Done(id=request.id))

    def _set_mailbox(self, subscription: Subscription, descriptor: Descriptor | None) -> None:
        old = subscription.mailbox
        new = subscription.client.mailbox(descriptor, next(self._numbers)) if descriptor else None
        subscription.mailbox = new
        for ring in self.rings.matching(subscription.pattern):
            if ring.alive and subscription.accepts(ring):
                if new is not None:
                    ring.fanout.add(new)
                if old is not None:
                    ring.fanout.remove(old)
                self._effects.announce(ring.fanout)

    def _drop_subscription(self, subscription: Subscription) -> None:
        self._set_mailbox(subscription, None)
        subscription.client.subscriptions.pop(subscription.number, None)
        self._subscriptions.discard(subscription.pattern, subscription.info.id)
        if subscription.counts:
            self._effects.note(self.table.remove(subscriber_key(subscription.info.id)))

    # ------------------------------------------------------------------ listings

    def _list_tags(self, client: Client, request: ListTags, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        rows = []
        for row in self.table.tags(check_pattern(request.pattern)):
            publishers, subscribers = self.table.publishers(row.name), self.table.subscribers(row.name)
            nodes = {row.primary, *(p.owner for p in publishers), *(s.owner for s in subscribers)}
            if not request.local or self.table.node in nodes:
                rings = self.rings.matching(row.name)
                rows.append(listing.tag_status(row, rings, publishers, subscribers))
        for page in listing.tag_pages(request.id, rows):
            self._effects.send(client.number, page)

    def _list_publishers(self, client: Client, request: ListPublishers, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        rows = [ring.status() for ring in self.rings.matching(check_pattern(request.tag))]
        for page in listing.publisher_pages(request.id, rows):
            self._effects.send(client.number, page)

    def _list_subscribers(self, client: Client, request: ListSubscribers, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        rows = [s.status() for s in self._subscriptions.matching(check_name(request.tag)) if s.counts]
        for page in listing.subscriber_pages(request.id, rows):
            self._effects.send(client.number, page)


def demand_of(request: Subscribe) -> Demand:
    """Scaling at the subscriber is the cursor's business, so such subscriptions share the full stream."""
    transport = request.transport or ("tcp" if request.reliable else "udp")
    return Demand(
        every=1 if request.at == "subscriber" else request.every, at="" if request.every == 1 else request.at,
        transport=transport, reliable=request.reliable,
    )  # fmt: skip


def _expect(fds: list[Descriptor], count: int, request: Request) -> None:
    if len(fds) != count:
        raise BadMessage(f"{len(fds)} descriptors beside {type(request).__name__}, expected {count}")

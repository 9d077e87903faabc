"""The paper's local manager: what a client of this node asks for becomes table changes, grants and notices.

`(client, request, descriptors) -> messages to send, with descriptors`: no clock, no asyncio, and no socket but the
publishers' fan-out sockets, which never block. Invariants: whatever a client holds is in the table while the client is
here and gone when it is not; a publisher's fan-out names exactly the mailboxes of the subscriptions that match it;
a refused request has changed nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from ringcast.control.descriptor import Descriptor
from ringcast.control.messages import (
    Attached,
    DestroyTag,
    Done,
    Hello,
    ListPublishers,
    ListSubscribers,
    ListTags,
    Move,
    OpenTag,
    Publish,
    Published,
    Request,
    SetChannel,
    Subscribe,
    TagGone,
    TagOpened,
    Unpublish,
    Unsubscribe,
    UseMailbox,
)
from ringcast.control.refusal import refuse
from ringcast.control.status import SubscriberStatus
from ringcast.daemon.effects import Send
from ringcast.daemon.observe import listing
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.fanout import FanOut, Flushed
from ringcast.daemon.rings.registrations import Asked, Client, Core, DerivedRing, Ring, Subscription
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.streams import routes
from ringcast.daemon.table import settings
from ringcast.daemon.table.attributes import check_geometry, resolve
from ringcast.daemon.table.rows import (
    Change,
    ChangeKind,
    PublisherRow,
    SubscriberRow,
    TagRow,
    subscriber_key,
)
from ringcast.daemon.table.system_tags import check_opened, check_published
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, ClosedError, QosMismatch, RingcastError, TagConflict, TagInUse, UnknownTag
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Placed, Setting
from ringcast.model.tag import check_name, check_pattern, tag_id

MAX_PROGRAM_CHARS = 255
OWN_CLIENT = 0
"""The daemon as a client of its own; connections are numbered from 1."""


class Local:
    """The clients of one node and what they hold."""

    def __init__(self, table: TagTable, budget: Budget, core: Core) -> None:
        self.table = table
        self.budget = budget
        self.clients: dict[int, Client] = {}
        self.sharing = Sharing(table, budget, core)
        self.rings = self.sharing.rings
        self.on_leaving: Callable[[int], object] = lambda _: None
        """Told of publishers that left before other nodes had channels from them; `wait_no_longer` is to follow."""
        self.settings_of: Callable[[str], dict[str, Setting]] = lambda _: {}
        """What the configuration says of a tag that is created here."""
        self._leaving: set[int] = set()
        self._core = core
        self._effects = self.sharing.effects
        self._numbers = itertools.count(1)
        self._handlers: dict[type[Any], Callable[[Client, Any, list[Descriptor]], None]] = {
            OpenTag: self._open, DestroyTag: self._destroy, Publish: self._publish, Unpublish: self._unpublish,
            Subscribe: self._subscribe, UseMailbox: self._use_mailbox, Unsubscribe: self._unsubscribe,
            Attached: self._attached, Move: self._move, SetChannel: self._set_channel,
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

    def changed(self, changes: Collection[Change]) -> list[Send]:
        """React to changes of the table that other nodes made."""
        for kind, row in changes:
            # One that nobody keeps any more is only out of sight, and its users' rights are what they were.
            if kind is ChangeKind.REMOVED and isinstance(row, TagRow) and self.table.is_destroyed(row):
                self._end(row.name)
            if kind is ChangeKind.REMOVED and isinstance(row, SubscriberRow):
                self.sharing.await_no_longer(row)
        self._see_off()
        self._effects.recount(changes)
        for change in changes:
            if isinstance(change.row, TagRow):
                self.sharing.rematch(change.row.name)
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

    def number(self) -> int:
        """A number that no ring or subscription of this node has."""
        return next(self._numbers)

    def is_published(self, incarnation: int) -> bool:
        """Whether it is the ring of a publisher here that has not left."""
        ring = self.rings.of_incarnation(incarnation)
        return ring is not None and ring.alive

    def close(self) -> None:
        for ring in self.rings:
            ring.close()
            self.rings.remove(ring)

    # ------------------------------------------------------------------ tags

    def _open(self, client: Client, request: OpenTag, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        required = check_opened(check_name(request.name))
        requested = request.requested if required is None else {**required, **request.requested}
        row, changes = self.table.open_tag(request.name, requested, request.create, self.settings_of(request.name))
        self._effects.note(changes)
        self._effects.send(
            client.number,
            TagOpened(id=request.id, name=row.name, tag_id=tag_id(row.name), attributes=row.attributes),
        )

    def declare(self, name: str, attributes: dict[str, Any]) -> list[Send]:
        """A tag that the configuration wants to be there; one that nobody uses yet is made anew where it is different.

        Raises TagConflict when it is there, different, and used or kept elsewhere.
        """
        known = self.table.tag(name)
        used = self.table.publishers(name) or any(row.info.pattern == name for row in self.table.subscribers(name))
        if known is not None and known.primary == self.table.node and not used:
            try:
                resolve(name, attributes, known.attributes)
            except TagConflict:
                self._end(name)
        _, changes = self.table.open_tag(name, attributes, settings=self.settings_of(name))
        self._effects.note(changes)
        return self._effects.finish()

    def limit(self, memory_bytes: int, lingering: int, lingering_per_tag: int) -> list[Send]:
        """Change how much rings may take; of those left behind the oldest go where it is less now."""
        evicted = self.budget.limit(memory_bytes, max_lingering=lingering, max_lingering_per_tag=lingering_per_tag)
        for number in evicted:
            self.sharing.forget(self.rings[number], released=True)
        return self._effects.finish()

    def put_settings(self, row: TagRow, settings: dict[str, Setting]) -> list[Send]:
        """Exchange the settings of a tag that this node keeps."""
        self._effects.note(self.table.put(msgspec.structs.replace(row, settings=settings)))
        self.sharing.rematch(row.name)
        return self._effects.finish()

    def put_placed(self, row: TagRow, placed: dict[str, Placed]) -> list[Send]:
        """Put proxies of a tag that this node keeps elsewhere."""
        self._effects.note(self.table.put(msgspec.structs.replace(row, placed=placed)))
        self.sharing.rematch(row.name)
        return self._effects.finish()

    def _destroy(self, client: Client, request: DestroyTag, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        name = check_name(request.name)
        check_published(name, client.number == OWN_CLIENT)
        self.destroy(name, self.table.node, self.rights(client.number), force=request.force)
        self._effects.send(client.number, Done(id=request.id))

    def rights(self, client: int) -> set[int]:
        """The numbers of the publishers and subscribers that a client has."""
        holder = self.clients[client]
        return {ring.number for ring in holder.rings.values()} | {s.info.id for s in holder.subscriptions.values()}

    def destroy(self, name: str, node: str, rights: Collection[int], *, force: bool) -> None:
        """Remove a tag that this node keeps, for one on `node` whose own `rights` do not stand in the way.

        Raises UnknownTag, TagInUse.
        """
        if self.table.tag(name) is None:
            raise UnknownTag(name)
        # A wildcard holds no right on a tag, it takes what comes; a history is nobody's subscriber.
        others = [row for row in self.table.publishers(name) if row.alive and not _among(row.info, node, rights)]
        readers = [row for row in self.table.subscribers(name) if not _among(row.info, node, rights)]
        subscribers = sum(row.info.pattern == name for row in readers)
        if (others or subscribers) and not force:
            raise TagInUse(name, len(others), subscribers)
        self._end(name)

    def _end(self, name: str) -> None:
        """The tag is no more: withdraw what this node has of it, and tell whoever held a right."""
        held = self.sharing.subscriptions.exact(name)
        told = {s.client.number for s in held}
        for subscription in held:
            self._drop_subscription(subscription)
        for ring in self.rings.matching(name):
            if ring.owner is not None:
                told.add(ring.owner)  # of a mirror it is the mesh, which has no connection and is told nothing
                self._retire(ring, linger=False)
            else:
                self.sharing.forget(ring)
        self._effects.note(self.table.destroy(name))
        for number in sorted(told):
            self._effects.send(number, TagGone(name=name))

    def unused(self) -> list[str]:
        """Tags that this node keeps and nobody uses: no publisher, no ring of one that left, no subscriber by name."""
        table = self.table
        own = [row.name for row in table.tags("**") + table.tags("@ringcast/**") if row.primary == table.node]
        return [
            name for name in own
            if not table.publishers(name) and not any(row.info.pattern == name for row in table.subscribers(name))
        ]  # fmt: skip

    def expire(self, names: Iterable[str]) -> list[Send]:
        """End tags that nobody has used for long; nobody holds a right on them, so nobody is told."""
        for name in names:
            self._end(name)
        return self._effects.finish()

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
            self.sharing.forget(known)
        try:
            size = self._core.ring_memory_bytes(request.depth, request.capacity_bytes)
            self.sharing.await_readers(ring)
            evicted = self.budget.admit(ring.number, size)
        except RingcastError:
            ring.close()
            raise
        for number in evicted:
            self.sharing.forget(self.rings[number], released=True)
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
        self.sharing.show(ring)

    def _retire(self, ring: Ring, *, linger: bool = True) -> None:
        """Its publisher left. Subscribers are told; histories keep it as long as this node does."""
        owner = self.clients.get(ring.owner) if ring.owner is not None else None
        if owner is not None:
            del owner.rings[ring.number]
        ring.owner = None
        self._effects.forget(ring.fanout)
        ring.fanout.close()
        for subscription in self.sharing.subscriptions.matching(ring.tag):
            if subscription.counts:
                self.sharing.ring_down(subscription, ring)
        if not linger or not ring.monitor.counters().get("sent", 0):
            self.sharing.forget(ring)
        elif ring.untaken:  # what it sent may be on nobody's way yet: for the others it stays a moment
            self._leaving.add(ring.info.incarnation)
            self.on_leaving(ring.info.incarnation)
        else:
            self._left(ring)

    def _left(self, ring: Ring) -> None:
        ring.row = msgspec.structs.replace(ring.row, alive=False, end=ring.next_seq)
        self._effects.note(self.table.put(ring.row))
        for number in self.budget.linger(ring.number, ring.tag):
            self.sharing.forget(self.rings[number], released=True)

    def _see_off(self) -> None:
        """Publishers that left, and whose rings all have now who wanted them."""
        for incarnation in list(self._leaving):
            ring = self.rings.of_incarnation(incarnation)
            if ring is None or not ring.untaken:
                self._leaving.discard(incarnation)
            if ring is not None and not ring.untaken:
                self._left(ring)

    def taken(self, node: str, incarnation: int) -> list[Send]:
        """Another node has channels from a publisher here for all its subscribers."""
        self.sharing.taken(node, incarnation)
        self._see_off()
        return self._effects.finish()

    def wait_no_longer(self, incarnation: int) -> list[Send]:
        """Those who have not taken it by now are not waited for."""
        ring = self.rings.of_incarnation(incarnation)
        if ring is not None:
            ring.untaken.clear()
        self._see_off()
        return self._effects.finish()

    def subscription(self, client: int, number: int) -> Subscription | None:
        """A client's subscription, by the client's own number."""
        holder = self.clients.get(client)
        return holder.subscriptions.get(number) if holder else None

    def set_channel(self, request: SetChannel) -> list[Send]:
        """An administrator's word on a tag that this node keeps. Raises UnknownTag."""
        self._put_setting(request)
        return self._effects.finish()

    def _put_setting(self, request: SetChannel) -> None:
        row = self.table.tag(request.tag)
        if row is None or row.primary != self.table.node:
            raise UnknownTag(request.tag)
        self._effects.note(self.table.put(settings.changed(row, request.node, request.at, request.transport)))
        self.sharing.rematch(row.name)

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
            client, request.subscription, info, request.role, request.counter_index, asked_of(request)
        )  # fmt: skip
        client.subscriptions[subscription.number] = subscription
        if fds:
            subscription.mailbox = client.mailbox(fds[0], next(self._numbers))
        if subscription.counts:
            self._effects.note(self.table.put(SubscriberRow(info=info, wanted=subscription.asked.wanted)))
        self.sharing.add(subscription)
        self._effects.send(client.number, Done(id=request.id))

    def _use_mailbox(self, client: Client, request: UseMailbox, fds: list[Descriptor]) -> None:
        _expect(fds, 1, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is None:
            raise ClosedError("subscription")
        self.sharing.set_mailbox(subscription, client.mailbox(fds[0], next(self._numbers)))
        self._effects.send(client.number, Done(id=request.id))

    def _unsubscribe(self, client: Client, request: Unsubscribe, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is not None:  # or it went with its tag a moment ago
            self._drop_subscription(subscription)
        self._effects.send(client.number, Done(id=request.id))

    def _attached(self, client: Client, request: Attached, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        ring = self.rings.of_incarnation(request.ring)
        if ring is not None:
            ring.attached((client.number, request.subscription))
        self._effects.send(client.number, Done(id=request.id))

    def _move(self, client: Client, request: Move, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is None:
            raise ClosedError("subscription")
        asked = routes.moved(subscription.asked, request.at, request.transport)
        routes.check_asked(asked, self.table.tag(subscription.pattern), self.table.node)
        subscription.asked = asked
        if subscription.counts:
            self._effects.note(self.table.put(SubscriberRow(info=subscription.info, wanted=asked.wanted)))
        for tag in {ring.tag for ring in self.rings.matching(subscription.pattern)}:
            self.sharing.rematch(tag)
        self._effects.send(client.number, Done(id=request.id))

    def _set_channel(self, client: Client, request: SetChannel, fds: list[Descriptor]) -> None:
        """Of a daemon without a network."""
        _expect(fds, 0, request)
        routes.check_setting(request.at, request.transport, {self.table.node}, 0)
        self._put_setting(request)
        self._effects.send(client.number, Done(id=request.id))

    def _drop_subscription(self, subscription: Subscription) -> None:
        self.sharing.discard(subscription)
        subscription.client.subscriptions.pop(subscription.number, None)
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
                rings = _streams(self.rings.matching(row.name))
                rows.append(listing.tag_status(row, rings, publishers, subscribers))
        for page in listing.tag_pages(request.id, rows):
            self._effects.send(client.number, page)

    def _list_publishers(self, client: Client, request: ListPublishers, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        rows = [ring.status() for ring in _streams(self.rings.matching(check_pattern(request.tag)))]
        for page in listing.publisher_pages(request.id, rows):
            self._effects.send(client.number, page)

    def _list_subscribers(self, client: Client, request: ListSubscribers, fds: list[Descriptor]) -> None:
        _expect(fds, 0, request)
        rows = [s.status() for s in self.sharing.subscriptions.matching(check_name(request.tag)) if s.counts]
        if not request.local:
            others = [row for row in self.table.subscribers(request.tag) if row.owner != self.table.node]
            rows += [SubscriberStatus(info=row.info, counters={}, latency=[], wanted=row.wanted) for row in others]
        for page in listing.subscriber_pages(request.id, rows):
            self._effects.send(client.number, page)


def asked_of(request: Subscribe) -> Asked:
    return Asked(
        every=request.every, at=request.at, transport=request.transport, reliable=request.reliable, size=request.size,
        rate_hz=request.rate_hz, ordered=request.ordered,
    )  # fmt: skip


def _among(info: PublisherInfo | SubscriberInfo, node: str, rights: Collection[int]) -> bool:
    return info.node == node and info.id in rights


def _streams(rings: Iterable[Ring]) -> list[Ring]:
    """Without what stages make of them."""
    return [ring for ring in rings if not isinstance(ring, DerivedRing)]


def _expect(fds: list[Descriptor], count: int, request: Request) -> None:
    if len(fds) != count:
        raise BadMessage(f"{len(fds)} descriptors beside {type(request).__name__}, expected {count}")

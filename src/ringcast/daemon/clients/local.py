"""The paper's local manager: what a client of this node asks for becomes table changes, answers and notices.

`(client, request, descriptors) -> messages to send, with descriptors`: no clock, no asyncio, and no socket but the
publishers' fan-out sockets, which never block. Invariants: whatever a client holds is in the table while the client is
here and gone when it is not; a publisher's fan-out names exactly the mailboxes of the subscriptions that match it;
a refused request has changed nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection

import msgspec

from ringcast.control.descriptor import Descriptor
from ringcast.control.refusal import refuse
from ringcast.control.requests import Hello, HoldBuffer, Publish, Request, Subscribe
from ringcast.daemon.access.rights import Rights
from ringcast.daemon.admitting.admitting import Admitting
from ringcast.daemon.clients.publishers import Publishers
from ringcast.daemon.clients.subscribers import Subscribers, options_of
from ringcast.daemon.clients.tags import Tags
from ringcast.daemon.effects import Send
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.fanout import FanOut, Flushed
from ringcast.daemon.rings.pacing import Paces
from ringcast.daemon.rings.registrations import Client, Subscription
from ringcast.daemon.rings.ring import Core
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.table.rows import Change, ChangeKind, PublisherRow, SubscriberRow, TagRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, RingcastError
from ringcast.model.identity import SubscriberInfo
from ringcast.model.place import Setting, Wanted
from ringcast.model.tag import check_name
from ringcast.scaling.fidelity import Range
from ringcast.security.rules import Rules, Who

MAX_PROGRAM_CHARS = 255


class Local:
    """The clients of one node and what they hold.

    `settings_of` says what the configuration sets for a tag that is created here. `on_leaving` is told of publishers
    that left before other nodes had channels from them (`publishers.wait_no_longer` is to follow), `on_taken` of
    another node's publisher when all subscribers here have its stream, `on_rate` when a first subscriber wants a rate.
    """

    def __init__(
        self, table: TagTable, budget: Budget, core: Core, *,
        settings_of: Callable[[str], dict[str, Setting]] = lambda _: {},
        on_leaving: Callable[[int], object] = lambda _: None,
        on_taken: Callable[[PublisherRow], None] = lambda _: None, on_rate: Callable[[], None] = lambda: None,
        rights: Rights | None = None,
    ) -> None:  # fmt: skip
        self.table = table
        self.rights = rights or Rights(table.node, Rules(own=os.geteuid()))
        self.budget = budget
        self.clients: dict[int, Client] = {}
        self.sharing = Sharing(table, budget, core, Paces(on_rate), on_taken)
        self.rings = self.sharing.rings
        self._core = core
        self._effects = self.sharing.effects
        self._numbers = itertools.count(1)
        self.publishers = Publishers(
            table, budget, core, self.sharing, self.clients, self._numbers, on_leaving
        )  # fmt: skip
        self.subscribers = Subscribers(table, self.sharing, self._numbers)
        self.tags = Tags(
            table, self.sharing, self.publishers, self.subscribers, self.clients, settings_of, self.rights
        )  # fmt: skip
        self.admitting = Admitting(table)
        self.publishers.unbacked = self.subscribers.unbacked = self.admitting.unbacked
        self._handlers = self.tags.handlers | self.publishers.handlers | self.subscribers.handlers

    def join(
        self, client: int, pid: int, user: str, hello: Hello, fds: list[Descriptor], who: Who | None = None
    ) -> None:  # fmt: skip
        """A client introduced itself. Raises BadMessage, CorruptRing, ResourceLimit."""
        if len(fds) > 1:
            raise BadMessage(f"{len(fds)} descriptors beside hello, expected at most 1")
        counters = self._core.CounterView(fds[0].fileno()) if fds else None
        made = Client(client, pid, user, hello.program[:MAX_PROGRAM_CHARS], counters, who)
        made.trusted = who is not None and self.rights.rules.is_owner(who)
        self.clients[client] = made

    def handle(self, client: int, request: Request, fds: list[Descriptor]) -> list[Send]:
        """Do what a client asks. Raises BadMessage when it does not keep to the protocol."""
        handler = self._handlers.get(type(request))
        if handler is None:
            raise BadMessage(f"{type(request).__name__} out of turn")
        try:
            request = self.admit(request)
            handler(self.clients[client], request, fds)
            self._follow_promises(self._effects.changes)
        except BadMessage:
            raise
        except RingcastError as exc:
            self._effects.send(client, refuse(request.id, exc))
        return self._effects.finish()

    def admit(self, request: Request) -> Request:
        """The request, or with a range one for the best that fits. Raises AdmissionRefused for what is
        declared and does not fit, QosMismatch for more than is offered."""
        if isinstance(request, Publish) and not request.instead:
            self.admitting.publish(request.tag, request.declared)
        elif isinstance(request, Subscribe):
            wanted = options_of(request).wanted
            self.admitting.subscribe(request.pattern, request.deadline_s, request.reliable, wanted, request.transport)
            self.admitting.request(request.pattern, request.requested, request.profiles, request.every, request.rate_hz)
            if request.range_hz is not None or request.range_size is not None:
                fits = self.admitting.allowed_for(
                    request.pattern, request.deadline_s, request.reliable, wanted, request.transport
                )
                step, _ = Range(request.range_hz, request.range_size).limited(0, *fits)
                return msgspec.structs.replace(
                    request, rate_hz=step.rate_hz or request.rate_hz, size=step.size or request.size
                )
        return request

    def declare_pull(self, client: int, request: HoldBuffer) -> None:
        """Raises AdmissionRefused, BadTagName."""
        if not request.period_s or client not in self.clients:
            return
        held = self.clients[client]
        info = SubscriberInfo(
            id=next(self._numbers), node=self.table.node, pattern=check_name(request.tag), pid=held.pid, user=held.user,
            reliable=False, program=held.program,
        )  # fmt: skip
        row = SubscriberRow(
            info=info, wanted=Wanted(at=request.at), deadline_s=request.max_age_s, pulls_s=request.period_s,
            since=self.table.next_since(),
        )  # fmt: skip
        self.admitting.pull(row)
        held.pulls[request.buffer] = row.key
        self._effects.note(self.table.put(row))

    def end_pull(self, client: int, buffer: int | None = None) -> None:
        """A declared history was closed; without a number, all of the client's."""
        held = self.clients[client].pulls if client in self.clients else {}
        for number in [number for number in held if buffer in (None, number)]:
            self._effects.note(self.table.remove(held.pop(number)))

    def leave(self, client: int) -> list[Send]:
        """A client is gone: withdraw what it held. Its rings linger."""
        self.end_pull(client)
        gone = self.clients.pop(client, None)
        if gone is not None:
            for subscription in list(gone.subscriptions.values()):
                self.subscribers.drop(subscription)
            for ring in list(gone.rings.values()):
                self.publishers.retire(ring)
        self._follow_promises(self._effects.changes)
        return self._effects.finish()

    def process_died(self, pid: int) -> None:
        """Free the reliable slots of a dead process, wherever it had some, so that no publisher waits for it."""
        for ring in self.rings:
            ring.monitor.free_slots(pid)

    def changed(self, changes: Collection[Change]) -> list[Send]:
        """React to changes of the table that other nodes made."""
        for kind, row in changes:
            # A tag without a keeper is only hidden for now; its users stay registered.
            if kind is ChangeKind.REMOVED and isinstance(row, TagRow) and self.table.is_destroyed(row):
                self.tags.end(row.name)
            if kind is ChangeKind.REMOVED and isinstance(row, SubscriberRow):
                self.sharing.await_no_longer(row)
        self.publishers.see_off()
        self._follow_promises(changes)
        self._effects.recount(changes)
        for change in changes:
            if isinstance(change.row, TagRow):
                self.sharing.rematch(change.row.name)
        return self._effects.finish()

    def _follow_promises(self, changes: Collection[Change]) -> None:
        """Declarations may have come or gone: their tags' streams are wanted with the priorities that they ask for."""
        for tag in self.sharing.promises.changed(changes):
            self.sharing.rematch(tag)

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

    def limit(self, memory_bytes: int, lingering: int, lingering_per_tag: int) -> list[Send]:
        """Change how much memory rings may take; with less, the oldest lingering rings go."""
        evicted = self.budget.limit(memory_bytes, max_lingering=lingering, max_lingering_per_tag=lingering_per_tag)
        for number in evicted:
            self.sharing.forget(self.rings[number], released=True)
        return self._effects.finish()

    def close(self) -> None:
        for ring in self.rings:
            ring.close()
            self.rings.remove(ring)

    def subscription(self, client: int, number: int) -> Subscription | None:
        """A client's subscription, by the client's own number."""
        holder = self.clients.get(client)
        return holder.subscriptions.get(number) if holder else None

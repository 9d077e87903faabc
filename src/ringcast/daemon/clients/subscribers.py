"""Subscribers of this node: what they ask for, and the options of each.

Invariant: a subscription that counts has a row in the table while its client is here; a history never has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ringcast.control.answers import Done
from ringcast.control.descriptor import Descriptor, expect
from ringcast.control.notices import FidelityNow
from ringcast.control.requests import Attached, ListSubscribers, Move, Subscribe, Unsubscribe, UseMailbox
from ringcast.control.status import SubscriberStatus
from ringcast.daemon.effects import Send
from ringcast.daemon.observe import listing
from ringcast.daemon.rings.demand import SubscribeOptions
from ringcast.daemon.rings.registrations import Client, Subscription
from ringcast.daemon.rings.sharing import Sharing
from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import SubscriberRow, subscriber_key
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage, ClosedError, QosMismatch
from ringcast.model.carrier import is_automatic
from ringcast.model.identity import SubscriberInfo
from ringcast.model.tag import check_name, check_pattern
from ringcast.scaling.fidelity import Fidelity, Range
from ringcast.scaling.interface import Size
from ringcast.transport.registry import check_transport

ADMISSION = "with more, somebody's deadline would be missed"
"""Why admission leaves less than the best of a range."""


class Subscribers:
    def __init__(self, table: TagTable, sharing: Sharing, numbers: Iterator[int]) -> None:
        self._table = table
        self._sharing = sharing
        self._rings = sharing.rings
        self._effects = sharing.effects
        self._numbers = numbers
        self.unbacked: Callable[[str], list[str]] = lambda _: []
        """Why bounds of what was admitted on these tags are not backed by this node, in words."""
        self.handlers: dict[type[Any], Callable[[Client, Any, list[Descriptor]], None]] = {
            Subscribe: self._subscribe, UseMailbox: self._use_mailbox, Unsubscribe: self._unsubscribe,
            Attached: self._attached, Move: self._move, ListSubscribers: self._list_subscribers,
        }  # fmt: skip

    def _subscribe(self, client: Client, request: Subscribe, fds: list[Descriptor]) -> None:
        expect(fds, 1 if request.mailbox else 0, request)
        pattern = check_pattern(request.pattern)
        if request.subscription in client.subscriptions:
            raise BadMessage(f"subscription {request.subscription} exists")
        if request.transport:
            check_transport(request.transport)
        tag = self._table.tag(pattern)
        if request.reliable and tag is not None and tag.attributes.max_wait_s == 0:
            remedy = "create the tag with a larger max_wait_s, or subscribe with reliable=False"
            raise QosMismatch("reliable delivery", f"tag {pattern!r} has max_wait_s=0", remedy)
        info = SubscriberInfo(
            id=next(self._numbers), node=self._table.node, pattern=pattern, pid=client.pid, user=client.user,
            reliable=request.reliable, program=client.program, incarnation=request.incarnation,
        )  # fmt: skip
        subscription = Subscription(
            client, request.subscription, info, request.role, request.counter_index, options_of(request)
        )  # fmt: skip
        subscription.deadline_s = request.deadline_s
        subscription.since = self._table.next_since() if request.deadline_s else 0
        span = subscription.options.range
        if span is not None and (request.rate_hz, request.size) != _best(request, span):
            subscription.fidelity = subscription.fidelity._replace(why=ADMISSION)
        if subscription.options.range is not None:  # the best too: another daemon may have said otherwise
            self._tell(subscription)
        client.subscriptions[subscription.number] = subscription
        if fds:
            subscription.mailbox = client.mailbox(fds[0], next(self._numbers))
        if subscription.counts:
            self._effects.note(self._table.put(_row(subscription)))
        self._sharing.add(subscription)
        warnings = self.unbacked(pattern) if request.deadline_s else []
        self._effects.send(client.number, Done(id=request.id, warnings=warnings))

    def _use_mailbox(self, client: Client, request: UseMailbox, fds: list[Descriptor]) -> None:
        expect(fds, 1, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is None:
            raise ClosedError("subscription")
        self._sharing.set_mailbox(subscription, client.mailbox(fds[0], next(self._numbers)))
        self._effects.send(client.number, Done(id=request.id))

    def _unsubscribe(self, client: Client, request: Unsubscribe, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is not None:  # or it went with its tag a moment ago
            self.drop(subscription)
        self._effects.send(client.number, Done(id=request.id))

    def _attached(self, client: Client, request: Attached, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        ring = self._rings.of_incarnation(request.ring)
        if ring is not None:
            ring.attached((client.number, request.subscription))
        self._effects.send(client.number, Done(id=request.id))

    def _move(self, client: Client, request: Move, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        subscription = client.subscriptions.get(request.subscription)
        if subscription is None:
            raise ClosedError("subscription")
        routes.check_urgency(request.urgency)
        options = routes.moved(subscription.options, request.at, request.transport, request.urgency)
        routes.check_options(options, self._table.tag(subscription.pattern), self._table.node)
        self._choose(subscription, options)
        self._effects.send(client.number, Done(id=request.id))

    def _choose(self, subscription: Subscription, options: SubscribeOptions) -> None:
        subscription.options = options
        if subscription.counts:
            self._effects.note(self._table.put(_row(subscription)))
        for tag in {ring.tag for ring in self._rings.matching(subscription.pattern)}:
            self._sharing.rematch(tag)

    def refine(self, subscription: Subscription, now: Fidelity) -> list[Send]:
        """Have a subscription with a range get more or less of it, and tell its client."""
        subscription.fidelity = now
        options = subscription.options._replace(rate_hz=now.rate_hz or 0.0, size=now.size)
        if options != subscription.options:
            self._choose(subscription, options)
        self._tell(subscription)
        return self._effects.finish()

    def _tell(self, subscription: Subscription) -> None:
        now = subscription.fidelity
        notice = FidelityNow(
            subscription=subscription.number, rate_hz=now.rate_hz or 0.0, size=now.size, why=now.why
        )  # fmt: skip
        self._effects.send(subscription.client.number, notice)

    def drop(self, subscription: Subscription) -> None:
        self._sharing.discard(subscription)
        subscription.client.subscriptions.pop(subscription.number, None)
        if subscription.counts:
            self._effects.note(self._table.remove(subscriber_key(subscription.info.id)))

    def _list_subscribers(self, client: Client, request: ListSubscribers, fds: list[Descriptor]) -> None:
        expect(fds, 0, request)
        rows = [s.status() for s in self._sharing.subscriptions.matching(check_name(request.tag)) if s.counts]
        if not request.local:
            others = [row for row in self._table.subscribers(request.tag) if row.owner != self._table.node]
            rows += [
                SubscriberStatus(
                    info=row.info, counters={}, latency=[], wanted=row.wanted, deadline_s=row.deadline_s
                )
                for row in others
            ]  # fmt: skip
        for page in listing.subscriber_pages(request.id, rows):
            self._effects.send(client.number, page)


def _best(request: Subscribe, span: Range) -> tuple[float, Size | None]:
    """Rate and size that it would have with the most of its range."""
    return span.hz[1] if span.hz else request.rate_hz, span.size[1] if span.size else request.size


def _row(subscription: Subscription) -> SubscriberRow:
    """As other nodes are to know it."""
    options = subscription.options
    return SubscriberRow(
        info=subscription.info, wanted=options.wanted, deadline_s=subscription.deadline_s, since=subscription.since,
        transport="" if is_automatic(options.transport) else options.transport,
    )  # fmt: skip


def options_of(request: Subscribe) -> SubscribeOptions:
    return SubscribeOptions(
        every=request.every, at=request.at, transport=request.transport, reliable=request.reliable, size=request.size,
        rate_hz=request.rate_hz, ordered=request.ordered, priority=request.priority,
        range=Range(request.range_hz, request.range_size) if request.range_hz or request.range_size else None,
        only_best=request.only_best,
    )  # fmt: skip

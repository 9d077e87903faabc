"""Which rings of this node are shown to which subscriptions, and what streams those need.

Invariants: of one stream a subscription is shown one ring at a time, each the continuation of the one before; a ring
that somebody wants all of overwrites nothing until that one has a place in it; a publisher's fan-out names exactly the
mailboxes of the subscriptions that read its ring. Must not know requests, nor who may ask for what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from ringcast.control.notices import RingDown, RingPaced, RingUp, StreamEnded
from ringcast.daemon.effects import Effects, Send
from ringcast.daemon.fidelity.worth import best_tag
from ringcast.daemon.intakes.sole_reader import MOST_BYTES, may_receive
from ringcast.daemon.rings.budget import Budget
from ringcast.daemon.rings.demand import Demand, StageSpec, SubscribeOptions, spec_of
from ringcast.daemon.rings.fanout import Mailbox
from ringcast.daemon.rings.inventory import Rings
from ringcast.daemon.rings.pacing import Paces
from ringcast.daemon.rings.registrations import Client, Expected, Subscription
from ringcast.daemon.rings.ring import Core, Ring
from ringcast.daemon.streams import routes
from ringcast.daemon.table.matching import PatternIndex
from ringcast.daemon.table.promised import Promises
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow, publisher_key
from ringcast.daemon.table.table import TagTable
from ringcast.model.tag import matches

_ASKED = ("@ask/", "@reply/")
"""Questions and answers: nobody pulls them."""
_VARIABLES = "variables"
"""The codec of tags whose history is made up for by the next full packet."""


class Sharing:
    """The rings here and who reads them; `on_taken` is told of another node's publisher when all here who subscribed
    have its stream."""

    def __init__(
        self, table: TagTable, budget: Budget, core: Core, paces: Paces, on_taken: Callable[[PublisherRow], None]
    ) -> None:
        self.rings = Rings()
        self.effects = Effects(table, self.rings)
        self.paces = paces
        self.promises = Promises(table)
        self._on_taken = on_taken
        self._table = table
        self._budget = budget
        self._core = core
        self.subscriptions: PatternIndex[int, Subscription] = PatternIndex(lambda one: one.info.id)
        self.sized = 0
        """Of those, expected ones included, how many want a size."""
        self.read_otherwise: Callable[[str], bool] | None = None
        """Whether anything here but subscriptions reads a tag of another node. None: nobody receives streams itself."""
        self.left = False
        """Set when a subscription or history goes: whoever is alone now may receive itself. To be cleared."""
        self._expected: Counter[Expected] = Counter()
        self._paced: dict[int, Subscription] = {}
        self.ranged: dict[int, Subscription] = {}
        """Those that take what fits of a range, by number."""
        self.choosing: dict[int, Subscription] = {}
        """Those that want the best of several streams."""

    @contextmanager
    def expecting(self, expected: Expected) -> Iterator[None]:
        """Within, streams are wanted for such a subscription though it is not here yet."""
        self._expected[expected] += 1
        self.sized += expected.options.size is not None
        try:
            yield
        finally:
            self._expected -= Counter([expected])
            self.sized -= expected.options.size is not None

    def add(self, subscription: Subscription) -> None:
        """Show it what is there."""
        self.subscriptions.add(subscription.pattern, subscription)
        self.sized += subscription.options.size is not None
        if subscription.rate_hz:
            self._paced[subscription.info.id] = subscription
        if subscription.counts and subscription.options.range is not None:
            self.ranged[subscription.info.id] = subscription
        if subscription.options.only_best:
            self.choosing[subscription.info.id] = subscription
            subscription.tag_now = best_tag(self._table, subscription.pattern)
        for ring in self.rings.matching(subscription.pattern):
            if (ring.alive or not subscription.counts) and self.accepts(subscription, ring):
                self.hand_over(subscription, ring, born_after=False)
        for row in self._table.publishers_matching(subscription.pattern):
            if not row.alive:
                self._tell_end(subscription, row)

    def discard(self, subscription: Subscription) -> None:
        self.set_mailbox(subscription, None)
        for ring in self.rings.matching(subscription.pattern):
            ring.forget_reader(subscription.key)
        self.subscriptions.discard(subscription.pattern, subscription.info.id)
        self.left = True
        self.sized -= subscription.options.size is not None
        self._paced.pop(subscription.info.id, None)
        self.ranged.pop(subscription.info.id, None)
        self.choosing.pop(subscription.info.id, None)

    def set_mailbox(self, subscription: Subscription, new: Mailbox | None) -> None:
        old, subscription.mailbox = subscription.mailbox, new
        for ring in self.rings.matching(subscription.pattern):
            if ring.alive and subscription.reads(ring):
                if new is not None:
                    ring.fanout.add(new)
                if old is not None:
                    ring.fanout.remove(old)
                self.effects.announce(ring.fanout)

    # ------------------------------------------------------------------ who reads which ring

    def show(self, ring: Ring, to: Iterable[Subscription] | None = None) -> None:
        """Show a new ring to every subscription that accepts it."""
        concerned = self.subscriptions.matching(ring.tag) if to is None else to
        concerned = [subscription for subscription in concerned if self.accepts(subscription, ring)]
        if ring.foreign and any(subscription.reliable for subscription in concerned):
            ring.keep(self._core)
        for subscription in concerned:
            self.hand_over(subscription, ring, born_after=True)
        if ring.row.owner != self._table.node and self._is_taken(ring):
            self._on_taken(ring.row)

    def accepts(self, subscription: Subscription, ring: Ring) -> bool:
        return subscription.takes(ring.tag) and subscription.accepts(ring, self._demand(subscription, ring.tag))

    def selects(self, pattern: str, options: SubscribeOptions, tag: str) -> bool:
        """Whether a subscription that is about to be wants streams of a tag."""
        return matches(pattern, tag) and (not options.only_best or tag == best_tag(self._table, pattern))

    def next_rings(self, subscription: Subscription) -> list[Ring]:
        """The rings here that it is going to read once it changes over."""
        tag = subscription.tag_next
        demand = self._demand(subscription, tag)
        return [ring for ring in self.rings.matching(tag) if ring.alive and subscription.accepts(ring, demand)]

    def change_over(self, subscription: Subscription, tag: str) -> list[Send]:
        """Have it receive another tag: what is sent from now on of that, and of the one before what was sent so far."""
        now = subscription.tag_now
        alive = {row.info.incarnation for row in self._table.publishers(now) if row.alive} if now else set()
        for ring in self.rings.matching(now) if alive else ():  # of one that left, the rest may still come
            if subscription.reads(ring) and ring.info.incarnation in alive:
                self._take_back(subscription, ring)
                notice = RingDown(
                    subscription=subscription.number, incarnation=ring.ring, end=ring.next_seq, instead=True
                )  # fmt: skip
                self.effects.send(subscription.client.number, notice)
        subscription.tag_now, subscription.tag_next = tag, ""
        subscription.begun.clear()
        self.rematch(tag)
        return self.effects.finish()

    def hand_over(self, subscription: Subscription, ring: Ring, *, born_after: bool) -> None:
        if subscription.mailbox is not None and ring.alive:
            ring.fanout.add(subscription.mailbox)
            self.effects.announce(ring.fanout)
        for other in self._rings_of(ring.tag, ring.info.incarnation):  # which this one continues
            if other is not ring and subscription.reads(other):
                self._take_back(subscription, other)
            elif other is not ring:
                other.attached(subscription.key)
        begin = None
        if subscription.options.only_best:
            if born_after and ring.info.incarnation not in subscription.begun:
                begin = ring.next_seq
            subscription.begun.add(ring.info.incarnation)
        ring.readers.add(subscription.key)
        if subscription.client.who is not None:
            ring.shown_to.add(subscription.client.who)
        if ring.held and subscription.reliable:
            ring.awaited.add(subscription.key)
        up = self._up(ring, subscription, born_after=born_after, begin=begin)
        self.effects.send(subscription.client.number, up, ring.files)

    def _take_back(self, subscription: Subscription, ring: Ring) -> None:
        ring.forget_reader(subscription.key)
        if subscription.mailbox is not None and ring.alive:
            ring.fanout.remove(subscription.mailbox)
            self.effects.announce(ring.fanout)

    def _rings_of(self, tag: str, incarnation: int) -> list[Ring]:
        return [ring for ring in self.rings.matching(tag) if ring.info.incarnation == incarnation]

    def rematch(self, tag: str) -> None:
        """What is wanted of a tag may be wanted in another way now: show rings that are here already."""
        for ring in self.rings.matching(tag):
            for subscription in self.subscriptions.matching(tag) if ring.alive else ():
                if self.accepts(subscription, ring) and not any(
                    subscription.reads(other) and self.accepts(subscription, other)
                    for other in self._rings_of(tag, ring.info.incarnation)
                ):
                    self.hand_over(subscription, ring, born_after=True)

    def _up(self, ring: Ring, subscription: Subscription, *, born_after: bool, begin: int | None) -> RingUp:
        pace = self.paces.every(ring, subscription.rate_hz) if subscription.paces(ring) else 0
        subscription.pace_told[ring.ring] = pace
        return ring.up(subscription.number, born_after=born_after, pace=pace, begin=begin)

    def ring_down(self, subscription: Subscription, ring: Ring, end: int | None = None) -> None:
        notice = RingDown(subscription=subscription.number, incarnation=ring.ring, end=end)
        self.effects.send(subscription.client.number, notice)

    def ended(self, row: PublisherRow) -> list[Send]:
        """Another node's publisher left, and nothing carries what it sent any more: tell those who read it once, so
        that they know what they did not get."""
        for subscription in self.subscriptions.matching(row.info.tag):
            self._tell_end(subscription, row)
        return self.effects.finish()

    def _tell_end(self, subscription: Subscription, row: PublisherRow) -> None:
        if row.owner == self._table.node or not subscription.counts:
            return
        if not any(subscription.reads(ring) for ring in self._rings_of(row.info.tag, row.info.incarnation)):
            notice = StreamEnded(subscription=subscription.number, incarnation=row.info.incarnation, end=row.end)
            self.effects.send(subscription.client.number, notice)

    def continuing(self, incarnation: int) -> int | None:
        """How far the slowest of a publisher's rings is that somebody here reads: what takes its place begins there, or
        before. None when nobody reads any."""
        read = [ring.next_seq for ring in self.rings if ring.info.incarnation == incarnation and ring.readers]
        return min(read, default=None)

    # ------------------------------------------------------------------ those who want everything

    def await_readers(self, ring: Ring) -> None:
        """Hold a new publisher's ring until every reliable subscriber that was there before it has a place in it, or in
        a ring derived from it. Raises CorruptRing, QosMismatch."""
        elsewhere = [row for row in self._table.subscribers(ring.tag) if row.owner != self._table.node]
        ring.untaken = {row.owner for row in elsewhere}
        if ring.attributes.max_wait_s == 0 or ring.next_seq > 0:  # one that comes back has its readers
            # Those on other nodes have the places that the daemon before this one kept, until channels take them over.
            ring.monitor.free_lapsed_orphans()
            return
        ring.awaited |= {s.key for s in self.subscriptions.matching(ring.tag) if s.reliable}
        ring.awaited |= {row.owner for row in elsewhere if row.info.reliable}
        if ring.awaited:
            ring.keep(self._core)

    def taken(self, node: str, incarnation: int) -> None:
        """Another node has channels for all its subscribers."""
        ring = self.rings.of_incarnation(incarnation)
        if ring is not None:
            ring.untaken.discard(node)
            ring.attached(node)

    def await_no_longer(self, left: SubscriberRow) -> None:
        """A subscriber of another node is gone."""
        for ring in self.rings.matching(left.info.pattern):
            if left.owner not in ring.untaken | ring.awaited:
                continue
            others = [row.info for row in self._table.subscribers(ring.tag) if row.owner == left.owner]
            if not others:
                ring.untaken.discard(left.owner)
            if not any(info.reliable for info in others):
                ring.attached(left.owner)

    def _is_taken(self, ring: Ring) -> bool:
        wanting = [s for s in self.subscriptions.matching(ring.tag) if s.counts and s.takes(ring.tag)]
        known = self._rings_of(ring.tag, ring.info.incarnation)
        return bool(wanting) and all(any(s.reads(ring) for ring in known) for s in wanting)

    # ------------------------------------------------------------------ rings that are no publisher's here

    def add_mirror(self, ring: Ring, before: Ring | None = None) -> list[Send]:
        """Show a mirror, or what a stage makes, to those who asked for such a one. It takes the place of `before` in
        the budget too: that goes as soon as its readers have this one, and must not stand in its way.

        Raises NoSpace, CorruptRing, QosMismatch.
        """
        instead_of = None if before is None else before.number
        for number in self._budget.admit(ring.number, ring.memory_bytes(self._core), instead_of):
            self.forget(self.rings[number], released=True)
        self.rings.add(ring)
        try:
            self.show(ring)
        except BaseException:  # all places in it are taken, say; nobody has been shown it
            self._budget.release(ring.number)
            self.rings.remove(ring)
            raise
        return self.effects.finish()

    def drop_mirror(self, ring: Ring) -> list[Send]:
        """Its publisher left, or nobody wants it any more. What it holds may be read to the end."""
        self.effects.forget(ring.fanout)
        rows = self._table.publishers(ring.tag)
        end = next((row.end for row in rows if row.info.incarnation == ring.info.incarnation and not row.alive), None)
        for client, number in sorted(ring.readers):
            self.effects.send(client, RingDown(subscription=number, incarnation=ring.ring, end=end))
        self._budget.release(ring.number)
        self.rings.remove(ring)
        ring.close()
        return self.effects.finish()

    def show_plain(self, ring: Ring, spec: StageSpec) -> list[Send]:
        """No stage can scale it: hand out the unscaled ring."""
        ring.plain_for.add(spec)
        concerned = [
            subscription
            for subscription in self.subscriptions.matching(ring.tag)
            if spec_of(ring.row, self._demand(subscription, ring.tag), self._table.node) == spec
        ]
        self.show(ring, concerned)
        if not ring.alive:
            for subscription in concerned:
                self.ring_down(subscription, ring)
        return self.effects.finish()

    def forget(self, ring: Ring, *, released: bool = False) -> None:
        if not released:
            self._budget.release(ring.number)
        self.rings.remove(ring)
        self.effects.note(self._table.remove(publisher_key(ring.number)))
        for subscription in self.subscriptions.matching(ring.tag):
            if not subscription.counts:
                self.ring_down(subscription, ring)
        ring.close()

    def announce(self, ring: Ring) -> list[Send]:
        """Links were added to the ring's fan-out, or removed."""
        self.effects.announce(ring.fanout)
        return self.effects.finish()

    # ------------------------------------------------------------------ how streams are wanted

    def demands(self, tag: str) -> set[Demand]:
        """Each different demand of this node's subscribers of a tag."""
        apart = routes.apart(self._table.tag(tag), self._table.node)
        wanting = [one for one in self.subscriptions.matching(tag) if one.counts and one.opens(tag)]
        here = {(one.options, one.info.id if apart else 0) for one in wanting}
        expected = {(one.options, 0) for one in self._expected if self.selects(one.pattern, one.options, tag)}
        return {self.demand(options, tag, subscriber) for options, subscriber in here | expected}

    def begins(self, tag: str) -> Literal["earliest", "new"]:
        """Where a stream of a publisher begins that nothing here continues: one that is only to take another's place
        has no past."""
        wanting = [one for one in self.subscriptions.matching(tag) if one.counts and one.opens(tag)]
        return "new" if wanting and all(one.options.only_best for one in wanting) else "earliest"

    def demand(self, options: SubscribeOptions, tag: str, subscriber: int = 0) -> Demand:
        """How streams of a tag come here for a subscriber with these options."""
        words = self.promises.words(tag)
        demand = routes.demand(options, self._table.tag(tag), self._table.node, subscriber, words)
        return demand if self.read_otherwise is None else demand._replace(reader=self._sole_reader(tag, demand))

    def _sole_reader(self, tag: str, demand: Demand) -> tuple[int, int] | None:
        """Who receives a stream with that demand itself: the only one here that reads the only publisher elsewhere."""
        found: dict[tuple[int, int], tuple[str, Client]] = {}
        for one in self.subscriptions.matching(tag):
            if found or not one.counts:
                return None
            found[one.key] = (one.pattern, one.client)
        for expected in self._expected:
            if matches(expected.pattern, tag) and expected.client is not None:
                found[expected.client.number, expected.number] = (expected.pattern, expected.client)
        if len(found) != 1:
            return None
        ((key, (pattern, client)),) = found.items()
        if not client.receives or not may_receive(pattern, demand, len(client.subscriptions)):
            return None
        # Whatever else reads a tag's mirror, as a history, reads what this client wrote.
        if not client.trusted and not self._is_no_history(tag):
            return None
        alive = [row for row in self._table.publishers(tag) if row.alive]
        sole = len(alive) == 1 and alive[0].owner != self._table.node and alive[0].capacity_bytes <= MOST_BYTES
        return key if sole and self.read_otherwise is not None and not self.read_otherwise(tag) else None

    def _is_no_history(self, tag: str) -> bool:
        if tag.startswith(_ASKED):
            return True
        row = self._table.tag(tag)
        return row is not None and row.attributes.codec == _VARIABLES

    def _demand(self, subscription: Subscription, tag: str) -> Demand:
        return self.demand(subscription.options, tag, subscription.info.id)

    def follow_rates(self) -> list[Send]:
        """Publishers may send faster or slower than before: tell those who leave messages out for a rate."""
        for subscription in self._paced.values():
            for ring in self.rings.matching(subscription.pattern):
                if ring.alive and subscription.reads(ring) and subscription.paces(ring):
                    pace = self.paces.follow(ring, subscription.rate_hz)
                    if subscription.pace_told.get(ring.ring) != pace:
                        subscription.pace_told[ring.ring] = pace
                        notice = RingPaced(subscription=subscription.number, ring=ring.ring, pace=pace)
                        self.effects.send(subscription.client.number, notice)
        return self.effects.finish()

    @property
    def has_rates(self) -> bool:
        return bool(self._paced)

"""The paper's proxy manager: stages that scale streams in space for subscribers of this node and channels to others.

Which there should be follows from what subscribers here want and what channels hold. `follow` makes it so, whatever
changed. Invariants: equal wishes share one stage and one ring; the next ring of a wish begins where the one before it
ended, so a stage that crashed, or whose factor changed, costs nothing that its source still holds; whatever becomes of
a scaler, the daemon goes on and says so.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ringcast.control.descriptor import Descriptor
from ringcast.control.messages import StageDown, StageUp, StageWanted
from ringcast.control.service import Start
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.rings.registrations import Asked, Demand, DerivedRing, Ring, Wish, wish_of
from ringcast.daemon.stages.derivation import derived, first, oldest_seq
from ringcast.daemon.stages.runners import Declined, Hand, PublisherHand, WorkerHand
from ringcast.errors import BrokenError, PublisherGone, RingcastError
from ringcast.model.tag import matches
from ringcast.scaling.temporal import first_due

logger = logging.getLogger("ringcast.daemon")

PREPARE_S = 6.0
"""A process may have to start and to import."""
FIRST_RETRY_S = 0.2
LOOK_S = 0.1
LAST_RETRY_S = 30.0


class Bases(Protocol):
    """Where the whole stream of another node's publisher can be had."""

    async def base(self, wish: Wish, start: Start) -> Ring: ...
    def release_base(self, wish: Wish) -> None: ...


class _Running:
    def __init__(self, hand: Hand, ring: DerivedRing, number: int, first_seq: int) -> None:
        self.hand = hand
        self.ring = ring
        self.number = number
        self.first_seq = first_seq

    def has_all_before(self, end: int) -> bool:
        """Whether it has made everything that was due of what a publisher sent."""
        return first_due(self.ring.next_seq, self.ring.every) >= end


class Stages:
    """`deliver` hands what clients are to be told to the shell; `on_gone` is told of wishes whose ring ended while
    channels read it."""

    def __init__(self, local: Local, deliver: Callable[[list[Send]], None]) -> None:
        self._local = local
        self._deliver = deliver
        self._complaints = Complaints(logger)
        self.bases: Bases | None = None
        self.on_gone: Callable[[Wish], None] = lambda wish: None
        self.running: dict[Wish, _Running] = {}
        self._held: Counter[Wish] = Counter()
        self._hands: dict[int, PublisherHand] = {}
        self._numbers = itertools.count(1)
        self._tasks: dict[Wish, asyncio.Task[None]] = {}
        self._starts: dict[Wish, Start] = {}
        self._resume: dict[Wish, int] = {}
        self._passed: Counter[Wish] = Counter()
        self._failures: Counter[Wish] = Counter()
        self._errors: dict[Wish, RingcastError] = {}
        self._later: dict[Wish, asyncio.TimerHandle] = {}
        self._relays: dict[Wish, Ring] = {}
        self._dismissals: set[asyncio.Task[None]] = set()
        self._looking: asyncio.TimerHandle | None = None
        self._closed = False

    # ------------------------------------------------------------------ what there should be

    def wanted(self) -> set[Wish]:
        """Every wish of channels, and of this node's subscribers. Of a publisher that left, what is not made yet."""
        rows = {row.info.incarnation: row for row in self._local.table.all_publishers()}
        wishes = {wish for wish in self._held if wish.incarnation in rows}
        if self._local.sharing.sized:
            for row in rows.values():
                for demand in self._demands(row.info.tag) if row.alive else ():
                    wish = wish_of(row, demand, self._local.table.node)
                    if wish is not None:
                        wishes.add(wish)
        for wish, running in self.running.items():
            left = rows.get(wish.incarnation)
            if left is not None and not left.alive and running.ring.readers and not running.has_all_before(left.end):
                wishes.add(wish)
                self._look_again()
        return wishes

    def _look_again(self) -> None:
        """A stage comes to its end by itself, and nobody tells."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        self.follow()

    def follow(self) -> None:
        """Begin what is missing and end what nobody wants."""
        if self._closed or not (self._local.sharing.sized or self._held or self.running or self._resume):
            return
        wishes = self.wanted()
        for hand in list(self._hands.values()):
            if not self._local.is_published(hand.ring):
                hand.gone("it left")
        for wish, running in list(self.running.items()):
            if wish in self._tasks:
                continue
            if wish not in wishes:
                self._task(wish, self._end(wish))
            elif not self._is_held(running.ring.base):
                self._task(wish, self._replace(wish))  # its source broke, and is another ring now or soon
        known = self._resume.keys() | self._errors.keys() | self._later.keys() | self._relays.keys()
        for wish in known - wishes - self._tasks.keys() - self.running.keys():
            self._forget(wish)
        for wish in wishes:
            if not (wish in self.running or wish in self._tasks or wish in self._later or self._is_plain(wish)):
                self._task(wish, self._begin(wish))

    async def prepare(self, pattern: str, asked: Asked, start: Start) -> None:
        """Begin what a subscription is going to need, so that nothing sent after it is missed."""
        wishes = {
            wish_of(row, self._local.sharing.demand(asked, row.info.tag), self._local.table.node)
            for row in self._local.table.all_publishers()
            if row.alive and matches(pattern, row.info.tag)
        }
        try:
            async with asyncio.timeout(PREPARE_S):
                await asyncio.gather(*(self._ensure(wish, start) for wish in wishes if wish is not None))
        except TimeoutError:
            pass  # shown when they are there

    def _demands(self, tag: str) -> set[Demand]:
        return {demand for demand in self._local.sharing.demands(tag) if demand.size is not None}

    # ------------------------------------------------------------------ for channels

    async def hold(self, wish: Wish, start: Start) -> DerivedRing:
        """The ring of a wish, to be let go of by `release`. Raises PublisherGone, BrokenError, QosMismatch."""
        self._held[wish] += 1
        try:
            await self._ensure(wish, start)
            if wish not in self.running:
                raise self._errors.get(wish) or PublisherGone(wish.incarnation, self._local.table.node)
        except BaseException:
            self.release(wish)
            raise
        return self.running[wish].ring

    async def _ensure(self, wish: Wish, start: Start) -> None:
        # One that is being ended, or given another factor, is begun again after that.
        for _ in range(3):
            if (wish in self.running and wish not in self._tasks) or self._is_plain(wish):
                return
            self._starts.setdefault(wish, start)
            task = self._tasks.get(wish) or self._task(wish, self._begin(wish))
            await asyncio.wait([task])
            if wish in self._later:
                return

    def release(self, wish: Wish) -> None:
        self._held[wish] -= 1
        if not self._held[wish]:
            del self._held[wish]
            self.follow()

    # ------------------------------------------------------------------ what stages and the clock say

    def answered(self, client: int, answer: StageUp | StageDown, fds: list[Descriptor]) -> None:
        """A publisher's process begins or ended a stage. Raises BadMessage."""
        hand = self._hands.get(answer.stage)
        if hand is not None and hand.client == client:  # or it was given up meanwhile
            hand.answered(answer, fds)

    def follow_rates(self) -> None:
        """Publishers may send faster or slower than before."""
        for wish, running in list(self.running.items()):
            if wish.rate_hz and wish not in self._tasks and running.ring.base.alive:
                every = self._local.sharing.paces.follow(running.ring.base, wish.rate_hz)
                if every != running.ring.every:
                    self._task(wish, self._replace(wish))

    @property
    def has_rates(self) -> bool:
        return any(wish.rate_hz for wish in (*self.running, *self._tasks, *self._later))

    def client_gone(self, client: int) -> None:
        for hand in [hand for hand in self._hands.values() if hand.client == client]:
            hand.gone("its process is gone")

    async def close(self) -> None:
        self._closed = True
        self._complaints.close()
        for timer in (*self._later.values(), *([self._looking] if self._looking else [])):
            timer.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
        # Publishers end theirs when they find the daemon gone.
        workers = [running.hand for running in self.running.values() if isinstance(running.hand, WorkerHand)]
        await asyncio.gather(*(hand.end() for hand in workers), return_exceptions=True)

    # ------------------------------------------------------------------ one stage

    def _task(self, wish: Wish, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[wish] = task
        task.add_done_callback(lambda _: self._done(wish))
        return task

    def _done(self, wish: Wish) -> None:
        del self._tasks[wish]
        if not self._closed:
            # What is wanted may have changed while it was made.
            asyncio.get_running_loop().call_soon(self.follow)

    async def _begin(self, wish: Wish) -> None:
        number = next(self._numbers)
        hand: Hand | None = None
        try:
            base = await self._base(wish)
        except (TimeoutError, RingcastError, OSError) as exc:
            self._failed(wish, exc)
            self._leave_to_readers(wish)
            return
        try:
            every = self._local.sharing.paces.every(base, wish.rate_hz) if wish.rate_hz else wish.every
            first_seq = self._resume[wish] if wish in self._resume else self._first(wish, base)
            hand = self._hand(wish, base, number)
            wanted = StageWanted(
                publisher=base.number, stage=number, attributes=base.attributes, size=wish.size, every=every,
                first_seq=first_seq, passed=self._passed[wish], reliable=wish.reliable, ring=base.ring,
                depth=base.row.depth, capacity_bytes=base.row.capacity_bytes,
            )  # fmt: skip
            made = await hand.begin(wanted, base.fds, lambda reason: self._crashed(wish, number, reason))
            ring = derived(self._local, base, wish, every, first_seq, made)
            shown = self._local.sharing.add_mirror(ring)
        except BaseException as exc:
            self._hands.pop(number, None)
            if hand is not None:
                self._dismiss(hand)
            if not isinstance(exc, TimeoutError | RingcastError | OSError):
                raise
            if isinstance(hand, PublisherHand) and base.owner is None and self._is_held(base):
                await self._begin(wish)  # it left meanwhile; its ring is here, and so are we
                return
            self._failed(wish, exc)
            if isinstance(exc, Declined) or not base.alive:
                self._leave_to_readers(wish)
            return
        self._errors.pop(wish, None)
        self._starts.pop(wish, None)
        self._resume.pop(wish, None)
        self.running[wish] = _Running(hand, ring, number, first_seq)
        self._deliver(shown)

    def _first(self, wish: Wish, base: Ring) -> int:
        """Where the stage begins: as was asked for, and not after what those have who come over from another ring."""
        start = first(base, self._starts.get(wish, "earliest"))
        behind = self._local.sharing.continuing(wish.incarnation)
        return start if behind is None else max(oldest_seq(base), min(start, behind))

    def _dismiss(self, hand: Hand) -> None:
        task = asyncio.get_running_loop().create_task(hand.end())
        self._dismissals.add(task)
        task.add_done_callback(self._dismissals.discard)

    async def _base(self, wish: Wish) -> Ring:
        """The publisher's own ring, or a mirror with its whole stream. That is kept from one stage of a wish to the
        next, for it holds what the next one has to go on with."""
        own = self._local.rings.of_incarnation(wish.incarnation)
        if own is not None:  # its publisher may have left already
            return own
        if self.bases is None or not wish.here:
            raise PublisherGone(wish.incarnation, self._local.table.node)
        kept = self._relays.get(wish)
        if kept is not None and self._is_held(kept):
            return kept
        self._relays[wish] = await self.bases.base(wish, self._starts.get(wish, "earliest"))
        if kept is not None:
            self.bases.release_base(wish)
        return self._relays[wish]

    def _leave_to_readers(self, wish: Wish) -> None:
        """Nobody can make it of a publisher's ring here, or its publisher left before anybody could."""
        own = self._local.rings.of_incarnation(wish.incarnation)
        if own is None or wish in self._resume or wish in own.plain_for:
            return
        if own.alive:
            text = "subscribers here that want %s at %s scale for themselves"
            self._complaints.warning(own.tag, text, own.tag, wish.size)
        self._deliver(self._local.sharing.show_plain(own, wish))

    def _is_plain(self, wish: Wish) -> bool:
        """It was found that nobody can make it."""
        own = self._local.rings.of_incarnation(wish.incarnation)
        return own is not None and wish in own.plain_for

    def _is_held(self, ring: Ring) -> bool:
        return self._local.rings.of_incarnation(ring.ring) is ring

    def _hand(self, wish: Wish, base: Ring, number: int) -> Hand:
        if wish.here or base.owner is None:
            return WorkerHand()
        hand = PublisherHand(base.owner, base.ring, self._deliver)
        self._hands[number] = hand
        return hand

    def _failed(self, wish: Wish, error: Exception) -> None:
        self._errors[wish] = error if isinstance(error, RingcastError) else BrokenError(f"no stage: {error}")
        self._failures[wish] += 1
        there = any(
            row.alive and row.info.incarnation == wish.incarnation for row in self._local.table.all_publishers()
        )
        if there and self._failures[wish].bit_count() == 1:
            self._complaints.warning("", "no stage of size %s yet: %s", wish.size, error)
        self._try_later(wish)

    def _crashed(self, wish: Wish, number: int, reason: str) -> None:
        running = self.running.get(wish)
        if running is None or running.number != number:
            return
        base = running.ring.base
        alive = base.alive
        if not (alive or wish.here) and self._is_held(base) and running.has_all_before(base.next_seq):
            self._hands.pop(number, None)  # its publisher left, and its stage with it; what it made is here
            return
        # Twice at the same message is enough: it is passed over, and shows as lost.
        stuck = self._is_held(base) and running.ring.next_seq == running.first_seq < base.next_seq
        if alive or wish.here:  # or its publisher left, and its stage with it
            self._failures[wish] += 1
            tag = running.ring.tag
            self._complaints.warning(tag, "the stage of size %s on %s is gone: %s", wish.size, tag, reason)
            self._try_later(wish)
        self._drop(wish)
        if stuck:
            self._resume[wish] += 1
            self._passed[wish] += 1
        else:
            self._passed.pop(wish, None)
        if alive or self._is_held(base):
            self.on_gone(wish)

    def _try_later(self, wish: Wish) -> None:
        delay_s = min(FIRST_RETRY_S * 2 ** min(self._failures[wish] - 1, 16), LAST_RETRY_S)
        self._later[wish] = asyncio.get_running_loop().call_later(delay_s, self._again, wish)

    def _again(self, wish: Wish) -> None:
        self._later.pop(wish, None)
        self.follow()

    async def _end(self, wish: Wish) -> None:
        running = self.running[wish]
        # A publisher that left has taken its stage with it.
        if wish.here or running.ring.base.alive:
            await running.hand.end()
        if self.running.get(wish) is running:
            self._drop(wish)
            self._forget(wish)

    async def _replace(self, wish: Wish) -> None:
        """The same with another factor, from where it ended."""
        running = self.running[wish]
        await running.hand.end()
        if self.running.get(wish) is running:
            self._drop(wish)
            self.on_gone(wish)

    def _drop(self, wish: Wish) -> None:
        running = self.running.pop(wish)
        self._hands.pop(running.number, None)
        self._resume[wish] = running.ring.next_seq
        if running.ring.alive:  # or it went with its tag
            self._deliver(self._local.sharing.drop_mirror(running.ring))

    def _forget(self, wish: Wish) -> None:
        if self._relays.pop(wish, None) is not None and self.bases is not None:
            self.bases.release_base(wish)
        self._resume.pop(wish, None)
        self._passed.pop(wish, None)
        self._failures.pop(wish, None)
        self._errors.pop(wish, None)
        self._starts.pop(wish, None)
        if (timer := self._later.pop(wish, None)) is not None:
            timer.cancel()

"""The paper's proxy manager: stages that scale streams in space for subscribers of this node and channels to others.

`follow` starts and ends stages so that they match what subscribers here want and what channels hold. Invariants: equal
specs share one stage and one ring; the next ring of a spec begins where the one before it ended, or before, where a
channel ended that was behind, so a stage that crashed, or whose factor changed, costs nothing that its source still
holds; whatever happens to a scaler, the daemon goes on and logs it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import StageWanted
from ringcast.control.requests import StageDown, StageUp
from ringcast.control.service import Start
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.rings.demand import Demand, StageSpec, SubscribeOptions, spec_of
from ringcast.daemon.rings.ring import DerivedRing, Ring
from ringcast.daemon.stages.derivation import Bases, derived, first, oldest_seq
from ringcast.daemon.stages.runners import Declined, ProcessRunner, PublisherRunner, StageRunner
from ringcast.daemon.stages.running import Running
from ringcast.errors import BrokenError, PublisherGone, RingcastError

logger = logging.getLogger("ringcast.daemon")

PREPARE_S = 6.0
"""A process may have to start and to import."""
FIRST_RETRY_S = 0.2
LOOK_S = 0.1
LAST_RETRY_S = 30.0


class Stages:
    """`deliver` hands what clients are to be told to the shell; `on_gone` is told of specs whose ring ended while
    channels read it."""

    def __init__(
        self, local: Local, deliver: Callable[[list[Send]], None], background: Background, bases: Bases | None = None,
        on_gone: Callable[[StageSpec], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._local, self._deliver, self._background = local, deliver, background
        self._complaints = Complaints(logger)
        self._bases, self._on_gone = bases, on_gone
        self.on_follow: Callable[[], None] = lambda: None
        self.running: dict[StageSpec, Running] = {}
        self._held: Counter[StageSpec] = Counter()
        self._runners: dict[int, PublisherRunner] = {}
        self._numbers = itertools.count(1)
        self._tasks: dict[StageSpec, asyncio.Task[None]] = {}
        self._starts: dict[StageSpec, Start] = {}
        self._resume: dict[StageSpec, int] = {}
        self._passed: Counter[StageSpec] = Counter()
        self._past: dict[StageSpec, int] = {}
        """What comes before it killed a stage, or need not be made again."""
        self._failures: Counter[StageSpec] = Counter()
        self._errors: dict[StageSpec, RingcastError] = {}
        self._later: dict[StageSpec, asyncio.TimerHandle] = {}
        self._relays: dict[StageSpec, Ring] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._closed = False

    # ------------------------------------------------------------------ what there should be

    def wanted(self) -> set[StageSpec]:
        """Every spec that channels hold or subscribers here want. Of a publisher that left, those that are not
        finished."""
        rows = {row.info.incarnation: row for row in self._local.table.all_publishers()}
        specs = {spec for spec in self._held if spec.incarnation in rows}
        if self._local.sharing.sized:
            for row in rows.values():
                for demand in self._demands(row.info.tag) if row.alive else ():
                    spec = spec_of(row, demand, self._local.table.node)
                    if spec is not None:
                        specs.add(spec)
        for spec, running in self.running.items():
            left = rows.get(spec.incarnation)
            if left is not None and not left.alive and running.ring.readers and not running.has_all_before(left.end):
                specs.add(spec)
                self._look_again()
        return specs

    def _look_again(self) -> None:
        """A stage finishes without telling: look again later."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self.follow)

    def follow(self) -> None:
        """Start the stages that are missing and end those that nobody wants."""
        self.on_follow()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if self._closed or not (self._local.sharing.sized or self._held or self.running or self._resume):
            return
        specs = self.wanted()
        for runner in list(self._runners.values()):
            if not self._local.is_published(runner.ring):
                runner.gone("it left")
        for spec, running in list(self.running.items()):
            if spec in self._tasks:
                continue
            if spec not in specs:
                self._task(spec, self._end(spec))
            elif not self._is_held(running.ring.base):
                self._task(spec, self._replace(spec))  # its source broke, and is another ring now or soon
        known = self._resume.keys() | self._errors.keys() | self._later.keys() | self._relays.keys()
        for spec in known - specs - self._tasks.keys() - self.running.keys():
            self._forget(spec)
        for spec in specs:
            if not (spec in self.running or spec in self._tasks or spec in self._later or self._is_plain(spec)):
                self._task(spec, self._begin(spec))

    async def prepare(self, pattern: str, options: SubscribeOptions, start: Start) -> None:
        """Begin what a subscription is going to need, so that nothing sent after it is missed."""
        specs = {
            spec_of(row, self._local.sharing.demand(options, row.info.tag), self._local.table.node)
            for row in self._local.table.all_publishers()
            if row.alive and self._local.sharing.selects(pattern, options, row.info.tag)
        }
        try:
            async with asyncio.timeout(PREPARE_S):
                await asyncio.gather(*(self._ensure(spec, start) for spec in specs if spec is not None))
        except TimeoutError:
            pass  # shown when they are there

    def _demands(self, tag: str) -> set[Demand]:
        return {demand for demand in self._local.sharing.demands(tag) if demand.size is not None}

    # ------------------------------------------------------------------ for channels

    async def hold(self, spec: StageSpec, start: Start) -> DerivedRing:
        """The ring of a spec, to be given back by `release`. Raises PublisherGone, BrokenError, QosMismatch."""
        self._held[spec] += 1
        try:
            await self._ensure(spec, start)
            if spec not in self.running:
                raise self._errors.get(spec) or PublisherGone(spec.incarnation, self._local.table.node)
        except BaseException:
            self.release(spec)
            raise
        return self.running[spec].ring

    async def _ensure(self, spec: StageSpec, start: Start) -> None:
        # One that is being ended, or given another factor, is begun again after that; so is one that began too late.
        for _ in range(3):
            task = self._tasks.get(spec)
            if (task is None and spec in self.running and not self._lacks(spec, start)) or self._is_plain(spec):
                return
            self._starts.setdefault(spec, start)
            if task is None and spec in self.running:
                await asyncio.wait([self._task(spec, self._replace(spec, start))])
                continue
            await asyncio.wait([task or self._task(spec, self._begin(spec))])
            if spec in self._later:
                return

    def _lacks(self, spec: StageSpec, start: Start) -> bool:
        """Whether a channel that goes on at `start` would miss something that could be made."""
        if not isinstance(start, int) or not self._is_held(self.running[spec].ring.base):
            return False
        return self.running[spec].lacks(max(start, self._past.get(spec, 0)))

    def release(self, spec: StageSpec) -> None:
        self._held[spec] -= 1
        if not self._held[spec]:
            del self._held[spec]
            self.follow()

    # ------------------------------------------------------------------ what stages and the clock say

    def answered(self, client: int, answer: StageUp | StageDown, fds: list[Descriptor]) -> None:
        """A publisher's process begins or ended a stage. Raises BadMessage."""
        runner = self._runners.get(answer.stage)
        if runner is not None and runner.client == client:  # or it was given up meanwhile
            runner.answered(answer, fds)

    def follow_rates(self) -> None:
        """Publishers may send faster or slower than before."""
        follow = self._local.sharing.paces.follow
        self._replace_those(lambda spec, ring: bool(
            spec.rate_hz and ring.base.alive and follow(ring.base, spec.rate_hz) != ring.every
        ))  # fmt: skip

    def make_anew(self, concerned: Callable[[Ring], bool]) -> None:
        """Somebody may not read these rings any more: others take their place."""
        self._replace_those(lambda spec, ring: concerned(ring))

    def _replace_those(self, concerned: Callable[[StageSpec, DerivedRing], bool]) -> None:
        for spec, running in list(self.running.items()):
            if spec not in self._tasks and concerned(spec, running.ring):
                self._task(spec, self._replace(spec))

    @property
    def has_rates(self) -> bool:
        return any(spec.rate_hz for spec in (*self.running, *self._tasks, *self._later))

    def client_gone(self, client: int) -> None:
        for runner in [runner for runner in self._runners.values() if runner.client == client]:
            runner.gone("its process is gone")

    async def close(self) -> None:
        self._closed = True
        self._complaints.close()
        for timer in (*self._later.values(), *([self._looking] if self._looking else [])):
            timer.cancel()
        # Publishers end theirs when they find the daemon gone.
        workers = [running.runner for running in self.running.values() if isinstance(running.runner, ProcessRunner)]
        await asyncio.gather(*(runner.end() for runner in workers), return_exceptions=True)

    # ------------------------------------------------------------------ one stage

    def _task(self, spec: StageSpec, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks[spec] = self._background.start("stage", work, lambda: self._done(spec))
        return task

    def _done(self, spec: StageSpec) -> None:
        del self._tasks[spec]
        if not self._closed:
            # What is wanted may have changed while it was made.
            asyncio.get_running_loop().call_soon(self.follow)

    async def _begin(self, spec: StageSpec) -> None:
        number = next(self._numbers)
        runner: StageRunner | None = None
        try:
            base = await self._base(spec)
        except (TimeoutError, RingcastError, OSError) as exc:
            self._failed(spec, exc)
            self._leave_to_readers(spec)
            return
        try:
            every = self._local.sharing.paces.every(base, spec.rate_hz) if spec.rate_hz else spec.every
            first_seq = self._resume[spec] if spec in self._resume else self._first(spec, base)
            runner = self._runner(spec, base, number)
            wanted = StageWanted(
                publisher=base.number, stage=number, attributes=base.attributes, size=spec.size, every=every,
                first_seq=first_seq, passed=self._passed[spec], reliable=spec.reliable, ring=base.ring,
                depth=base.row.depth, capacity_bytes=base.row.capacity_bytes,
            )  # fmt: skip
            made = await runner.begin(wanted, base.files, lambda reason: self._crashed(spec, number, reason))
            ring = derived(self._local, base, spec, every, first_seq, made)
            shown = self._local.sharing.add_mirror(ring)
        except BaseException as exc:
            self._runners.pop(number, None)
            if runner is not None:
                self._dismiss(runner)
            if not isinstance(exc, TimeoutError | RingcastError | OSError):
                raise
            if isinstance(runner, PublisherRunner) and base.owner is None and self._is_held(base):
                await self._begin(spec)  # the publisher left meanwhile; run the stage on this node
                return
            self._failed(spec, exc)
            if isinstance(exc, Declined) or not base.alive:
                self._leave_to_readers(spec)
            return
        self._errors.pop(spec, None)
        self._starts.pop(spec, None)
        self._resume.pop(spec, None)
        self.running[spec] = Running(runner, ring, number, first_seq)
        self._deliver(shown)

    def _first(self, spec: StageSpec, base: Ring) -> int:
        """Where the stage begins: at the requested start, but not after what readers of another ring have read who move
        here."""
        start = first(base, self._starts.get(spec, "earliest"))
        behind = self._local.sharing.continuing(spec.incarnation)
        return start if behind is None else max(oldest_seq(base), min(start, behind))

    def _dismiss(self, runner: StageRunner) -> None:
        self._background.start("end of a stage", runner.end())

    async def _base(self, spec: StageSpec) -> Ring:
        """The publisher's own ring, or a mirror with its whole stream. The mirror is kept from one stage of a spec to
        the next, which continues from it."""
        own = self._local.rings.of_incarnation(spec.incarnation)
        if own is not None:  # its publisher may have left already
            return own
        if self._bases is None or not spec.here:
            raise PublisherGone(spec.incarnation, self._local.table.node)
        kept = self._relays.get(spec)
        if kept is not None and self._is_held(kept):
            return kept
        self._relays[spec] = await self._bases.base(spec, self._starts.get(spec, "earliest"))
        if kept is not None:
            self._bases.release_base(spec)
        return self._relays[spec]

    def _leave_to_readers(self, spec: StageSpec) -> None:
        """No stage can scale it; hand out the unscaled ring."""
        own = self._local.rings.of_incarnation(spec.incarnation)
        if own is None or spec in self._resume or spec in own.plain_for:
            return
        if own.alive:
            text = "subscribers here that want %s at %s scale for themselves"
            self._complaints.warning(own.tag, text, own.tag, spec.size)
        self._deliver(self._local.sharing.show_plain(own, spec))

    def _is_plain(self, spec: StageSpec) -> bool:
        """Whether subscribers get the unscaled ring, because no stage can scale it."""
        return (own := self._local.rings.of_incarnation(spec.incarnation)) is not None and spec in own.plain_for

    def _is_held(self, ring: Ring) -> bool:
        return self._local.rings.of_incarnation(ring.ring) is ring

    def _runner(self, spec: StageSpec, base: Ring, number: int) -> StageRunner:
        if spec.here or base.owner is None:
            return ProcessRunner(self._background, spec.priority)
        runner = PublisherRunner(base.owner, base.ring, self._deliver)
        self._runners[number] = runner
        return runner

    def _failed(self, spec: StageSpec, error: Exception) -> None:
        self._errors[spec] = error if isinstance(error, RingcastError) else BrokenError(f"no stage: {error}")
        self._failures[spec] += 1
        alive = {row.info.incarnation for row in self._local.table.all_publishers() if row.alive}
        if spec.incarnation in alive and self._failures[spec].bit_count() == 1:
            self._complaints.warning("", "no stage of size %s yet: %s", spec.size, error)
        self._try_later(spec)

    def _crashed(self, spec: StageSpec, number: int, reason: str) -> None:
        running = self.running.get(spec)
        if running is None or running.number != number:
            return
        base = running.ring.base
        alive = base.alive
        if not (alive or spec.here) and self._is_held(base) and running.has_all_before(base.next_seq):
            self._runners.pop(number, None)  # its publisher left, and its stage with it; what it made is here
            return
        # A message that crashed a stage twice is skipped, and counts as lost.
        stuck = self._is_held(base) and running.ring.next_seq == running.first_seq < base.next_seq
        if alive or spec.here:  # or its publisher left, and its stage with it
            self._failures[spec] += 1
            tag = running.ring.tag
            self._complaints.warning(tag, "the stage of size %s on %s is gone: %s", spec.size, tag, reason)
            self._try_later(spec)
        self._drop(spec)
        if stuck:
            self._resume[spec] += 1
            self._past[spec] = self._resume[spec]
            self._passed[spec] += 1
        else:
            self._passed.pop(spec, None)
        if alive or self._is_held(base):
            self._on_gone(spec)

    def _try_later(self, spec: StageSpec) -> None:
        delay_s = min(FIRST_RETRY_S * 2 ** min(self._failures[spec] - 1, 16), LAST_RETRY_S)
        self._later[spec] = asyncio.get_running_loop().call_later(delay_s, self._again, spec)

    def _again(self, spec: StageSpec) -> None:
        self._later.pop(spec, None)
        self.follow()

    async def _end(self, spec: StageSpec) -> None:
        running = self.running[spec]
        # A publisher that left has taken its stage with it.
        if spec.here or running.ring.base.alive:
            await running.runner.end()
        if self.running.get(spec) is running:
            self._drop(spec)
            self._forget(spec)

    async def _replace(self, spec: StageSpec, start: Start = "new") -> None:
        """The same with another factor, from where it ended, or from an earlier number on."""
        running = self.running[spec]
        await running.runner.end()
        if self.running.get(spec) is running:
            self._drop(spec)
            if isinstance(start, int):
                self._resume[spec] = max(start, self._past.get(spec, 0), oldest_seq(running.ring.base))
            self._on_gone(spec)

    def _drop(self, spec: StageSpec) -> None:
        running = self.running.pop(spec)
        self._runners.pop(running.number, None)
        self._resume[spec] = running.ring.next_seq
        if running.ring.alive:  # or it went with its tag
            self._deliver(self._local.sharing.drop_mirror(running.ring))

    def _forget(self, spec: StageSpec) -> None:
        if self._relays.pop(spec, None) is not None and self._bases is not None:
            self._bases.release_base(spec)
        self._resume.pop(spec, None)
        self._passed.pop(spec, None)
        self._past.pop(spec, None)
        self._failures.pop(spec, None)
        self._errors.pop(spec, None)
        self._starts.pop(spec, None)
        if (timer := self._later.pop(spec, None)) is not None:
            timer.cancel()

"""`at="auto"`: the daemon that keeps a tag puts the proxies of subscribers that left it to it where they cost least.

It looks when subscribers, publishers or nodes change, and every few seconds while there is such a subscriber, because
rates and links change too. Who has no place yet, or whose node is gone, gets one at once, while all others stay. A
better plan for all moves proxies only with hysteresis (`ringcast.placement.mesh.settling`). Invariants: without such
a subscriber nothing runs; the loop never computes a plan; only tags that this node keeps are written.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec

from ringcast import _core
from ringcast.control.limits import MAX_PLACED_PER_TAG
from ringcast.control.placing import PROBE, REPORT, Observation, SubscriberPlace
from ringcast.control.requests import SetChannel
from ringcast.control.status import ChannelStatus
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.placing.observing import Observing
from ringcast.daemon.placing.reporting import Reporting
from ringcast.daemon.placing.solving import Answer, Failed, Solving, printable
from ringcast.daemon.placing.ways import Ways
from ringcast.daemon.table.rows import Change, ChangeKind, SubscriberRow, TagRow
from ringcast.model.place import AUTO, Placed, node_of, subscriber_key
from ringcast.placement import charges, explain, plan
from ringcast.placement.mesh.live import Live, key_of, live
from ringcast.placement.mesh.settling import Settling
from ringcast.placement.model import PlacementError

logger = logging.getLogger("ringcast.daemon")

SOON_S = 0.1
PERIOD_S = 2.0
PAUSE_S = 5.0
"""Between two plans for all: a process is started for each."""
SAME = 1.1
"""Rates that differ by less than this factor are the same, as far as a new plan is worth computing."""


class Placing:
    """`deliver` hands what clients are to be told to the shell; `on_placed` is called when rows were written."""

    def __init__(
        self, local: Local, mesh: Mesh, host_of: Callable[[str], Awaitable[str]],
        channels: Callable[[], Iterable[ChannelStatus]], deliver: Callable[[list[Send]], None],
        on_placed: Callable[[], None], background: Background,
    ) -> None:  # fmt: skip
        self._local = local
        self._mesh = mesh
        self._deliver = deliver
        self._on_placed = on_placed
        self._background = background
        self._loop = asyncio.get_running_loop()
        self._ways = Ways(mesh, host_of, self._loop.time, background)
        self.reporting = Reporting(local, self._ways, self._others, channels, _core.utc_ns)
        self.observing = Observing(local, mesh, self.reporting)
        self._solving = Solving()
        self._settling = Settling()
        self._wishes: set[tuple[str, str]] = set()
        """Rows of subscribers that leave their proxies to whoever keeps the tag."""
        self._best: tuple[object, Answer] | None = None
        self._not_before = -math.inf
        self._alarm = Alarm(self._begin)
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._left = False
        """Whether subscribers went since what was for them alone was forgotten."""
        self._said = ""
        mesh.serve(REPORT, self.reporting.serve)
        mesh.serve(PROBE, self._ways.serve)

    def close(self) -> None:
        self._alarm.close()
        if self._looking is not None:
            self._looking.cancel()
        self._ways.close()
        self._solving.close()

    def changed(self, changes: Iterable[Change]) -> None:
        """The table changed, here or elsewhere."""
        seen = False
        for kind, row in changes:
            seen = True
            if isinstance(row, SubscriberRow):
                auto = row.wanted.scales and row.wanted.at == AUTO and kind is not ChangeKind.REMOVED
                (self._wishes.add if auto else self._wishes.discard)((row.owner, row.key))
            if kind is ChangeKind.REMOVED and isinstance(row, SubscriberRow):
                self._left = True
        if self._left:
            self._plan(SOON_S)
        elif seen:
            self.look_soon()

    def look_soon(self) -> None:
        """Something may be different now; a node went, say."""
        if self._wishes:
            self._plan(SOON_S)

    # ------------------------------------------------------------------ when

    def _plan(self, delay_s: float) -> None:
        if self._looking is not None:
            self._again = self._again or delay_s == SOON_S
        else:
            self._alarm.within(delay_s)

    def _begin(self) -> None:
        if self._left:
            self._left = False
            self._forget_gone()
        if any(self._mine()):
            self._looking = self._background.start("placing proxies", self._try(), self._done)

    async def _try(self) -> None:
        try:
            await self.look()
        except (PlacementError, Failed, TimeoutError, OSError) as exc:
            self._say(f"proxies are not placed, and it is tried again: {exc}")

    def _done(self) -> None:
        self._looking = None
        self._plan(SOON_S if self._again else PERIOD_S)
        self._again = False

    def _say(self, words: str) -> None:
        """Once, until it is something else."""
        if words and words != self._said:
            logger.warning("%s", words)
        self._said = words

    # ------------------------------------------------------------------ where

    def _mine(self) -> Iterator[TagRow]:
        """Tags that this node keeps, with a publisher and a subscriber that leaves its proxy to us."""
        table = self._local.table
        for tag in {row.info.tag for row in table.all_publishers() if row.alive}:
            row = table.tag(tag)
            if row is not None and row.primary == table.node and not tag.startswith("@"):
                wishes = (one.wanted for one in table.subscribers(tag))
                if row.placed or any(wanted.scales and wanted.at == AUTO for wanted in wishes):
                    yield row

    async def look(self) -> None:
        """Once, now. Raises PlacementError when the mesh is not known well enough."""
        found = await self.observing.observe()
        if self._waits_for(found):
            return  # either it answers next time, or the mesh says that it is gone
        me = self._local.table.node
        made = live(found, lambda one: one.keeper == me and one.by in ("daemon", ""), undecided=lambda o: o.by == "")
        if not any(made.free):
            self._best = None
            return
        if undecided := [index for index in made.undecided if self._has_room(made.who[index])]:
            await self._place(made, undecided)
        else:
            await self._improve(made.at_publishers())

    def _has_room(self, one: SubscriberPlace) -> bool:
        """Whether its place can be written down. For whom there is no room the publisher's node scales."""
        row = self._local.table.tag(one.tag)
        return row is not None and (key_of(one) in row.placed or len(row.placed) < MAX_PLACED_PER_TAG)

    def _waits_for(self, found: Observation) -> bool:
        """Whether a node holds a proxy that we placed, is here and did not answer."""
        mine = [one for one in found.subscribers if one.by == "daemon" and one.keeper == self._local.table.node]
        return any(node_of(one.at) in found.unanswered for one in mine if node_of(one.at))

    async def _place(self, made: Live, undecided: list[int]) -> None:
        case = made.pinned(lambda index: index not in undecided)
        answer = await self._solving.few(case)
        if not answer.feasible:
            self._say(f"no place for a proxy fits, so it stays at the publisher: {answer.problem}")
            words = {i: Placed("publisher", printable(f"no place fits: {answer.problem}")) for i in undecided}
        else:
            ats = {i: explain.word(case, case.streams[i], answer.places[i]) for i in undecided}
            words = {i: Placed(at, printable(_cause(made.who[i], answer.whys[i]))) for i, at in ats.items()}
        self._write(made, words)

    async def _improve(self, made: Live) -> None:
        answer = await self._solved(made)
        if answer is None:
            return
        self._say("" if not answer.note else f"proxies are placed {answer.note}")
        best = (
            plan.made(made.case, answer.places) if answer.feasible
            else plan.Plan(made.case.problem, False, reasons=(_reason(answer),))
        )  # fmt: skip
        decision = self._settling.decide(self._loop.time(), made.case, made.current, best)
        if decision.move:
            note = f" ({answer.note})" if answer.note else ""
            words = {
                i: Placed(
                    explain.word(made.case, made.case.streams[i], answer.places[i]),
                    printable(f"{decision.why}{note}; {answer.whys[i]}"),
                )
                for i, free in enumerate(made.free)
                if free and answer.places[i] != made.places[i]
            }
            self._write(made, words)

    async def _solved(self, made: Live) -> Answer | None:
        """The best places for all; None when that is to be computed, and the last time was just now."""
        known = signature(made)
        if self._best is None or self._best[0] != known or not _fits(made, self._best[1]):
            if self._loop.time() < self._not_before:
                return None
            self._not_before = self._loop.time() + PAUSE_S
            try:
                answer = await self._solving.whole(made.case)
            except Failed as exc:
                answer = msgspec.structs.replace(await self._solving.few(made.case), note=f"by the rule: {exc}")
            self._best = known, answer
        return self._best[1]

    def _write(self, made: Live, words: dict[int, Placed]) -> None:
        by_tag: dict[str, dict[str, Placed]] = defaultdict(dict)
        for index, word in words.items():
            by_tag[made.who[index].tag][key_of(made.who[index])] = word
        for tag, new in by_tag.items():
            row = self._local.table.tag(tag)
            if row is not None and row.primary == self._local.table.node:
                self._put(row, row.placed | new)

    def _put(self, row: TagRow, placed: dict[str, Placed]) -> None:
        here = {subscriber_key(one.owner, one.info.id) for one in self._local.table.subscribers(row.name)}
        kept = {key: word for key, word in placed.items() if key in here}
        kept = dict(list(kept.items())[:MAX_PLACED_PER_TAG])
        if kept != row.placed:
            logger.info("tag %s: proxies at %s", row.name, {key: word.at for key, word in kept.items()})
            self._deliver(self._local.tags.put_placed(row, kept))
            self._on_placed()

    def _forget_gone(self) -> None:
        """A place or a setting for one subscriber ends with it: its number may be another's later."""
        table = self._local.table
        for row in table.tags():
            if row.primary != table.node or not any("#" in key for key in (*row.settings, *row.placed)):
                continue
            here = {subscriber_key(one.owner, one.info.id) for one in table.subscribers(row.name)}
            left = [key for key in row.settings if "#" in key and key not in here]
            for key in left:
                self._deliver(
                    self._local.tags.set_channel(SetChannel(id=0, tag=row.name, node=key, at="", transport=""))
                )
            if left:
                self._on_placed()
            self._put(table.tag(row.name) or row, row.placed)

    def _others(self) -> list[str]:
        return [node.name for node in self._mesh.nodes() if node.state == "here" and not node.me]


def signature(made: Live) -> object:
    """Equal while nothing is different enough to be worth another plan."""
    problem = made.case.problem
    return (
        problem.nodes,
        tuple((link.a, link.b, link.bandwidth) for link in problem.links),
        tuple(
            (demand.tag, demand.publisher, _step(demand.period_s), _step(demand.bytes), tuple(
                (one.name, one.every, one.scaled_bytes and _step(one.scaled_bytes), one.proxy)
                for one in demand.subscribers
            ))
            for demand in problem.demands
        ),
    )  # fmt: skip


def _fits(made: Live, answer: Answer) -> bool:
    """Whether places found earlier still do: rates that count as the same may exceed a capacity."""
    return not answer.feasible or charges.loads(made.case, answer.places).fits(made.case.problem)


def _step(value: float) -> int:
    return round(math.log(value) / math.log(SAME))


def _cause(who: SubscriberPlace, why: str) -> str:
    gone = node_of(who.at)
    return f"its node {gone} is gone; {why}" if who.by == "daemon" and gone else why


def _reason(answer: Answer) -> plan.Reason:
    return plan.Reason("plan", "", None, "", answer.problem)

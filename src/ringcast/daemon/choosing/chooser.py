"""`transport="auto:METRIC"`: the daemon that keeps a tag chooses what carries it, and again when that is worth it.

Every second it asks the nodes that receive such a tag what they counted (`asking`), and decides
(`ringcast.adapt.ranking`, `ringcast.adapt.deciding`). Through a thin line it asks more seldom, and looks at the line
itself more often, which costs nothing.
While somebody reads what choices cost (`@ringcast/<node>/choices`), it also looks at its other tags, and tells of them
too: what an administrator or a subscriber chose is learned from as well. What is chosen for some receivers follows
from what these meet (`wishes`). Invariants: without such a subscriber or reader nothing runs; only tags that this node
keeps are written; a tag is written only when a choice changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from ringcast.adapt.deciding import Deciding
from ringcast.adapt.lines import Line
from ringcast.adapt.names import keeps_order
from ringcast.adapt.ranking import ranked
from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import AskHeard, Explained, Lived
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.asking import PERIOD_S, Asking, period_s
from ringcast.daemon.choosing.hearing import Hearing
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.choosing.telling import asker, explained, lived, printable
from ringcast.daemon.choosing.ways import BESIDES, Known, Way
from ringcast.daemon.choosing.wishes import Asked, asks, limited, serves, wishes_of
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.rows import Change, SubscriberRow, TagRow
from ringcast.daemon.table.system_tags import PREFIX, choices_tag
from ringcast.model.carrier import Chosen
from ringcast.model.tag import is_pattern

logger = logging.getLogger("ringcast.daemon")

SOON_S = 0.05
HURRIED_S = 0.3
"""After the last look, when a line changed: a shorter time says little of a rate."""
GLANCE_S = 0.3
"""How often a thin line is looked at: each moment adds to its queue, and to look takes nothing of it."""
RELIEVED_S = 0.5
"""After what filled a line was replaced in haste: what left since then says whether the queue is empty."""
MOST_JUDGED = 8
"""Times after each other: by then what was taken in haste has been judged again, whatever the queue (`deciding`)."""
MOST_BESIDES = 256
"""Tags that are told of although nobody leaves them to this node."""
USUAL = "relate2"


class Choosing:
    """`deliver` hands what clients are to be told to the shell; `on_chosen` is called when rows were written; `tell` is
    told after each look what carried a tag, and what that cost."""

    def __init__(
        self, local: Local, mesh: ServingMesh, hearing: Hearing, models: Models, now_ns: Callable[[], int],
        deliver: Callable[[list[Send]], None], on_chosen: Callable[[], None], background: Background,
        tell: Callable[[Lived], None] = lambda lived: None,
    ) -> None:  # fmt: skip
        self._local = local
        self._mesh = mesh
        self._hearing = hearing
        self._asking = Asking(local.table, mesh, hearing, models, now_ns)
        self.models = models
        self._now_ns = now_ns
        self._deliver = deliver
        self._on_chosen = on_chosen
        self._background = background
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._tags: dict[str, Known] = {}
        self._mine_then: dict[str, dict[str, Asked]] = {}
        """As of the last look."""
        self._somebody_asks = False
        """Whether there is a row by which somebody may leave a transport to its keeper."""
        self._crowded: set[str] = set()
        """Tags that have more wishes than a row has room for."""
        self._alarm = Alarm(self._begin)
        self._looking: asyncio.Task[None] | None = None
        self._judging: asyncio.Task[None] | None = None
        self._line_changed = asyncio.Event()
        self._looked_s = -math.inf
        self._due_s = -math.inf
        """When other nodes are to be asked, if nothing happens before."""
        self._asked = False
        """Whether they were, since that was last decided."""
        self._hurried = False

    def close(self) -> None:
        self._alarm.close()
        self._line_changed.clear()
        for task in (self._looking, self._judging):
            if task is not None:
                task.cancel()

    def changed(self, changes: Iterable[Change]) -> None:
        """The table changed, here or elsewhere. A wish comes to matter when there are subscribers, or the tag."""
        if self._alarm.waiting or self._looking is not None:
            return
        rows = [row for _, row in changes]
        if any(map(asks, rows)):
            self._somebody_asks = True
            self._alarm.within(SOON_S)
        elif (self._somebody_asks or self._is_read()) and any(map(self._concerns, rows)):
            self._alarm.within(PERIOD_S)

    def _concerns(self, row: object) -> bool:
        """Whether it may make a wish matter for a tag that this node keeps."""
        if isinstance(row, SubscriberRow):
            pattern = row.info.pattern
            if is_pattern(pattern):
                return True
            tag = self._local.table.tag(pattern)
            return tag is not None and tag.primary == self._local.table.node
        return isinstance(row, TagRow) and row.primary == self._local.table.node

    def line_changed(self) -> None:
        """A queue of this node has another rate. What fits it no longer is judged at once, since each moment adds to
        the queue; the next look comes before it is due."""
        if self._tags:
            self._line_changed.set()
            self._judge()
        if self._looking is not None:
            self._hurried = True
        elif self._alarm.waiting:
            self._due_s = max(self._loop.time() + SOON_S, self._looked_s + HURRIED_S)
            self._alarm.by(self._due_s)

    # ------------------------------------------------------------------ when

    def _begin(self) -> None:
        if mine := dict(self._mine()):
            self._looking = self._background.start("choosing transports", self._look_when_due(mine), self._done)
        else:
            self._tags.clear()
            self._mine_then = {}
            table = self._local.table
            self._somebody_asks = any(map(asks, [*table.tags(), *table.all_subscribers()]))

    async def _look_when_due(self, mine: dict[str, dict[str, Asked]]) -> None:
        if self._loop.time() < self._due_s and mine == self._mine_then:
            if not await self._became_busy():
                return
            # At once, by what left the line: answers of other nodes would come through the queue that fills.
            await self._judge_line(self._tags)
        self._due_s = self._loop.time()
        await self.look(mine)

    async def _became_busy(self) -> bool:
        """Whether this node's line was not full in the last look, and is now."""
        heard = await self._hearing.heard(AskHeard(tags=list(self._tags)))
        return any(
            Line(one.line, one.leaves).is_busy and not self._tags[name].is_busy
            for name, one in heard.tags.items() if one.line > 0 and name in self._tags
        )  # fmt: skip

    def _done(self) -> None:
        self._looking = None
        self._alarm.within(GLANCE_S if self._is_thin() else PERIOD_S)  # whatever happens
        now_s = self._loop.time()
        if self._asked:
            self._asked = False
            self._looked_s, self._due_s = now_s, now_s + self._period_s()
        if self._hurried:
            self._due_s = now_s + HURRIED_S
        self._hurried = False
        self._alarm.within(max(self._due_s - now_s, SOON_S))
        if self._is_relieved():
            self._judge()

    def _period_s(self) -> float:
        """Looks are as frequent as the thinnest of the lines allows, while nothing is about to change."""
        if any(tag.wavers for tag in self._tags.values()):
            return PERIOD_S
        return period_s(self._asking.asked, self._thinnest())

    def _is_thin(self) -> bool:
        return period_s(self._asking.asked, self._thinnest()) > PERIOD_S

    def _thinnest(self) -> float:
        """Bytes per second of the line that has the least left; 0 where none is known."""
        return min((tag.line for tag in self._tags.values() if tag.line), default=0.0)

    def _judge(self) -> None:
        if self._judging is None:
            self._judging = self._background.start("judging a line", self._judge_lines(), self._judged)

    def _judged(self) -> None:
        self._judging = None
        if self._line_changed.is_set():
            self._judge()

    # ------------------------------------------------------------------ what

    def _mine(self) -> Iterator[tuple[str, dict[str, Asked]]]:
        """Tags that this node keeps and whose transport is left to it, with who asked for what, by key. While somebody
        reads what they cost, others that go to another node too, without any wish."""
        table = self._local.table
        more = MOST_BESIDES if self._is_read() else 0
        for row in table.tags():
            if row.primary != table.node:
                continue
            subscribers = table.subscribers(row.name)
            if asked := wishes_of(row, subscribers):
                yield row.name, self._limited(row, asked)
            elif more and not row.name.startswith(PREFIX) and self._goes_out(row.name, subscribers):
                more -= 1
                yield row.name, {}

    def _limited(self, row: TagRow, asked: dict[str, Asked]) -> dict[str, Asked]:
        found = limited(asked, row.chosen)
        if len(found) == len(asked):
            self._crowded.discard(row.name)
        elif row.name not in self._crowded:
            self._crowded.add(row.name)
            logger.warning(
                "the transport of tag %s is left to this node in %d ways, and it chooses for %d; for the rest the "
                "default carries it. Let more receivers share a setting", row.name, len(asked), len(found),
            )  # fmt: skip
        return found

    def _is_read(self) -> bool:
        """Whether somebody reads what is told of this node's tags."""
        return bool(self._local.table.subscribers(choices_tag(self._local.table.node)))

    def _goes_out(self, tag: str, subscribers: Iterable[SubscriberRow]) -> bool:
        publishers = {row.owner for row in self._local.table.publishers(tag)}
        return bool(publishers) and any(publishers != {row.owner} for row in subscribers)

    async def look(self, mine: dict[str, dict[str, Asked]]) -> None:
        """Once, now."""
        self._asked = True
        for gone in self._tags.keys() - mine.keys():
            del self._tags[gone]
        self._mine_then = mine
        lines = {name: line for name in mine if name in self._tags and (line := self._tags[name].line)}
        heard = await self._asking.heard(mine, lines, self._thinnest())
        for name, asked in mine.items():
            tag = self._tags.setdefault(name, Known())
            tag.look(heard[name], asked, self._loop.time())
            row = self._local.table.tag(name)
            if row is None or row.primary != self._local.table.node:
                continue
            if asked:
                self._choose(row, tag, asked)
            else:
                self._tell_besides(name, tag)

    async def _judge_lines(self) -> None:
        """At once where a line changed, and again while what filled it was replaced in haste."""
        for _ in range(MOST_JUDGED):
            if self._line_changed.is_set():
                self._line_changed.clear()
                await self._judge_line(self._tags)
            if not self._is_relieved():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._line_changed.wait(), RELIEVED_S)
            if not self._line_changed.is_set():
                await self._judge_line([name for name, tag in self._tags.items() if tag.is_relieved])

    def _is_relieved(self) -> bool:
        return any(tag.is_relieved for tag in self._tags.values())

    async def _judge_line(self, names: Container[str]) -> None:
        """By what the last look found, without asking another node: answers would come through the full queue."""
        mine = {name: asked for name, asked in self._mine() if asked and name in self._tags and name in names}
        heard = await self._hearing.heard(AskHeard(tags=list(mine)))
        for name, one in heard.tags.items():
            row, tag = self._local.table.tag(name), self._tags.get(name)
            if tag is not None and row is not None and row.primary == self._local.table.node:
                tag.line_is(one)
                self._choose(row, tag, mine[name], measured=False)

    def explained(self, name: str) -> list[Explained]:
        """How a tag's transport was chosen here; empty where it was not."""
        row, tag = self._local.table.tag(name), self._tags.get(name)
        if row is None or tag is None:
            return []
        known = [(key, *way.ranked) for key, way in tag.ways.items() if way.ranked and key in row.chosen]
        return [explained(key, row.chosen[key], wish, around, ranking) for key, wish, around, ranking in known]

    def _choose(self, row: TagRow, tag: Known, asked: dict[str, Asked], *, measured: bool = True) -> None:
        """`measured` after a look: of it is told, and counts what it says."""
        chosen = {key: choice for key, choice in row.chosen.items() if key in asked and key in tag.ways}
        before = {key: choice.transport for key, choice in chosen.items()}
        changes: dict[str, str] = {}
        for key, one in asked.items():
            if key not in tag.ways:
                continue
            if (found := self._choice(tag.ways[key], one, chosen.get(key), measured)) is not None:
                changes[key] = found.transport if found.transport != before.get(key, "") else ""
                if changes[key]:
                    logger.info("tag %s (%s): %s, %s", row.name, key, found.transport, found.why)
                chosen[key] = found
        if measured:
            self._tell_of(row.name, tag, asked, before, changes)
        if chosen != row.chosen:
            self._deliver(self._local.tags.put_chosen(row, chosen))
            self._on_chosen()

    def _choice(self, way: Way, asked: Asked, chosen: Chosen | None, measured: bool) -> Chosen | None:
        """What is chosen for these now; None where there is nothing to say of it."""
        environment, busy = way.surroundings.environment(), way.surroundings.is_busy
        if chosen is not None and chosen.pinned != asked.pinned:
            chosen = msgspec.structs.replace(chosen, pinned=asked.pinned)
        elif environment is None or (chosen is not None and way.surroundings.paused):
            way.deciding.pause()
            return None  # it meets nothing: what others do to its line meanwhile is no reason to change it
        elif not asked.pinned and way.deciding.waits(self._loop.time(), busy):
            return None
        current = chosen.transport if chosen is not None else ""
        if environment is not None:
            model = self.models.of(asked.wish.learned, asked.wish.ordered) if asked.wish.learned else None
            way.ranked = asked.wish, environment, ranked(environment, asked.wish, model, serves, current)
            if asked.pinned:
                way.deciding = Deciding()
            else:
                decision = way.deciding.decide(
                    self._loop.time(), current, environment, way.ranked[2], measured=measured
                )  # fmt: skip
                if decision.change:
                    return Chosen(decision.transport, printable(decision.why), self._now_ns())
        return chosen or Chosen("", since_ns=self._now_ns(), pinned=asked.pinned)

    def _tell_besides(self, name: str, tag: Known) -> None:
        """Of a tag that nobody leaves to this node, as if it were asked for the usual metric."""
        around = tag.ways[BESIDES].surroundings
        environment, cost = around.environment(), around.cost()
        if environment is not None and cost.messages and len(around.carried_by) == 1:
            (by,) = around.carried_by
            wish = Wish(USUAL, ordered=keeps_order(by))
            ranking = ranked(environment, wish, self.models.of(wish.learned, wish.ordered), serves)
            self._tell(lived(name, "", by, environment, cost, ranking, "", self._now_ns()))

    def _tell_of(
        self, name: str, tag: Known, asked: dict[str, Asked], carriers: dict[str, str], changes: dict[str, str]
    ) -> None:
        """Once for each look and those who receive the same, whatever else they asked for: it was one stream, and it
        cost what it cost."""
        by_nodes: dict[frozenset[str], list[str]] = defaultdict(list)
        for key in changes:
            by_nodes[asked[key].nodes].append(key)
        for keys in by_nodes.values():
            around = tag.ways[keys[0]].surroundings
            cost = around.cost()
            if cost.messages and len(around.carried_by) == 1:
                # Whatever was chosen: an administrator may have pinned another one.
                (by,) = around.carried_by
                key = asker(by, keys, carriers)
                if (found := tag.ways[key].ranked) is not None:
                    _, environment, ranking = found
                    self._tell(lived(name, key, by, environment, cost, ranking, changes[key], self._now_ns()))

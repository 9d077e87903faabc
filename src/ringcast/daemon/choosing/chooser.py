"""`transport="auto:METRIC"`: the daemon that keeps a tag chooses what carries it, and again when that is worth it.

Every second it asks the nodes that receive such a tag what they counted, and decides (`ringcast.adapt.deciding`).
Through a thin line it asks more seldom, and looks at the line itself every second, which costs nothing.
While somebody reads what choices cost (`@ringcast/<node>/choices`), it also looks at its other tags, and tells of them
too: what an administrator or a subscriber chose is learned from as well. Invariants: without such a subscriber or
reader nothing runs; only tags that this node keeps are written; a tag is written only when a choice changes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator

from ringcast.adapt.deciding import LONGEST_RELIEF_S, Deciding, Ranking, ranked
from ringcast.adapt.environment import Environment, Surroundings
from ringcast.adapt.lines import Line
from ringcast.adapt.names import keeps_order
from ringcast.adapt.wanting import Wish
from ringcast.control import service
from ringcast.control.between.choosing import HEARD, AllHeard, AskHeard, Explained, Heard, Lived
from ringcast.control.limits import MAX_CHOICES_PER_TAG
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.hearing import Hearing
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.choosing.telling import asker, explained, lived, printable
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.rows import Change, SubscriberRow, TagRow
from ringcast.daemon.table.system_tags import PREFIX, choices_tag
from ringcast.errors import QosMismatch, RingcastError
from ringcast.model.carrier import Chosen, automatic, choice_key, is_automatic
from ringcast.transport import find

logger = logging.getLogger("ringcast.daemon")

PERIOD_S = 1.0
LONGEST_PERIOD_S = 4.0
ASKED_BYTES = 300
"""About what asking a node takes of the line, packets and acknowledgements."""
ASKED_SHARE = 0.005
"""Of a line that asking may take: messages wait behind it."""
ASKED_AT_ONCE = 0.1
"""The same while nodes are asked one after the other: a message waits behind one question, and not behind all."""
SOON_S = 0.05
HURRIED_S = 0.3
"""After the last look, when a line changed: a shorter time says little of a rate."""
RELIEVED_S = 1.0
"""After what filled a line was replaced in haste: what left since then says whether the queue is empty."""
TIMEOUT_S = 0.8
MOST_BESIDES = 256
"""Tags that are told of although nobody leaves them to this node."""
USUAL = "relate2"


class _Tag:
    """What is known of a tag that this node chooses for."""

    def __init__(self) -> None:
        self.surroundings = Surroundings()
        self.deciding: dict[str, Deciding] = defaultdict(Deciding)
        self.rankings: dict[str, tuple[Wish, Environment, Ranking]] = {}

    @property
    def is_relieved(self) -> bool:
        return any(one.relieved for one in self.deciding.values())


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
        self.models = models
        self._now_ns = now_ns
        self._deliver = deliver
        self._on_chosen = on_chosen
        self._background = background
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._tags: dict[str, _Tag] = {}
        self._alarm = Alarm(self._begin)
        self._looking: asyncio.Task[None] | None = None
        self._judging: asyncio.Task[None] | None = None
        self._asked = 0
        self._looked_s = -math.inf
        self._due_s = -math.inf
        """When other nodes are to be asked, if nothing happens before."""
        self._hurried = False
        mesh.serve(HEARD, self._serve)

    def close(self) -> None:
        self._alarm.close()
        for task in (self._looking, self._judging):
            if task is not None:
                task.cancel()

    def changed(self, changes: Iterable[Change]) -> None:
        """The table changed, here or elsewhere."""
        if self._alarm.waiting or self._looking is not None:
            return
        rows = [row for _, row in changes]
        if any(map(_asks, rows)):
            self._alarm.within(SOON_S)
        elif any(isinstance(row, SubscriberRow) for row in rows) and self._is_read():
            self._alarm.within(PERIOD_S)

    def line_changed(self) -> None:
        """A queue of this node has another rate. What fits it no longer is judged at once, since each moment adds to
        the queue; the next look comes before it is due."""
        if self._tags and self._judging is None:
            self._judging = self._background.start("judging a line", self._judge_lines(), self._judged)
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

    async def _look_when_due(self, mine: dict[str, dict[str, Wish]]) -> None:
        if self._loop.time() < self._due_s and mine.keys() == self._tags.keys() and not await self._became_busy():
            return
        self._due_s = self._loop.time()
        await self.look(mine)

    async def _became_busy(self) -> bool:
        """Whether this node's line was not full in the last look, and is now."""
        heard = await self._hearing.heard(AskHeard(tags=list(self._tags)))
        return any(
            Line(one.line, one.leaves).is_busy and not self._tags[name].surroundings.is_busy
            for name, one in heard.tags.items() if one.line > 0 and name in self._tags
        )  # fmt: skip

    def _done(self) -> None:
        self._looking = None
        now_s = self._loop.time()
        if now_s >= self._due_s:
            self._looked_s, self._due_s = now_s, now_s + self._period_s()
        if self._hurried:
            self._due_s = now_s + HURRIED_S
        self._hurried = False
        self._alarm.within(min(max(self._due_s - now_s, SOON_S), PERIOD_S))
        if self._judging is None and self._is_relieved():
            self._judging = self._background.start("judging a line", self._judge_relieved(), self._judged)

    def _period_s(self) -> float:
        """Looks are as frequent as the thinnest of the lines allows, while nothing is about to change."""
        if any(deciding.wavers for tag in self._tags.values() for deciding in tag.deciding.values()):
            return PERIOD_S
        return period_s(self._asked, self._thinnest())

    def _thinnest(self) -> float:
        """Bytes per second of the line that has the least left; 0 where none is known."""
        return min((line for tag in self._tags.values() if (line := tag.surroundings.line())), default=0.0)

    def _judged(self) -> None:
        self._judging = None

    # ------------------------------------------------------------------ what

    def _mine(self) -> Iterator[tuple[str, dict[str, Wish]]]:
        """Tags that this node keeps and whose transport is left to it, with who asked for what, by key. While somebody
        reads what they cost, others that go to another node too, without any wish."""
        table = self._local.table
        more = MOST_BESIDES if self._is_read() else 0
        for row in table.tags():
            if row.primary != table.node:
                continue
            subscribers = table.subscribers(row.name)
            if wishes := wishes_of(row, subscribers):
                yield row.name, wishes
            elif more and not row.name.startswith(PREFIX) and self._goes_out(row.name, subscribers):
                more -= 1
                yield row.name, {}

    def _is_read(self) -> bool:
        """Whether somebody reads what is told of this node's tags."""
        return bool(self._local.table.subscribers(choices_tag(self._local.table.node)))

    def _goes_out(self, tag: str, subscribers: Iterable[SubscriberRow]) -> bool:
        publishers = {row.owner for row in self._local.table.publishers(tag)}
        return bool(publishers) and any(publishers != {row.owner} for row in subscribers)

    async def look(self, mine: dict[str, dict[str, Wish]]) -> None:
        """Once, now."""
        for gone in self._tags.keys() - mine.keys():
            del self._tags[gone]
        heard = await self._heard(mine)
        for name, wishes in mine.items():
            tag = self._tags.setdefault(name, _Tag())
            tag.surroundings.look(self._loop.time(), heard.get(name, []))
            row = self._local.table.tag(name)
            if row is not None and row.primary == self._local.table.node:
                self._choose(row, tag, wishes)

    async def _judge_lines(self) -> None:
        await self._judge_line(self._tags)
        if self._is_relieved():
            await self._judge_relieved()

    def _is_relieved(self) -> bool:
        return any(tag.is_relieved for tag in self._tags.values())

    async def _judge_relieved(self) -> None:
        for _ in range(math.ceil(LONGEST_RELIEF_S / PERIOD_S) + 1):
            await asyncio.sleep(RELIEVED_S)
            await self._judge_line([name for name, tag in self._tags.items() if tag.is_relieved])
            if not self._is_relieved():
                return

    async def _judge_line(self, names: Container[str]) -> None:
        """By what the last look found, without asking another node: answers would come through the full queue."""
        mine = {name: wishes for name, wishes in self._mine() if wishes and name in self._tags and name in names}
        heard = await self._hearing.heard(AskHeard(tags=list(mine)))
        for name, one in heard.tags.items():
            row, tag = self._local.table.tag(name), self._tags.get(name)
            if tag is not None and row is not None and row.primary == self._local.table.node:
                tag.surroundings.line_is(one)
                self._choose(row, tag, mine[name], tell=False)

    async def _heard(self, mine: Iterable[str]) -> dict[str, list[Heard]]:
        by_node: dict[str, list[str]] = defaultdict(list)
        for name in mine:
            table = self._local.table
            nodes = {row.owner for row in table.subscribers(name)} | {row.owner for row in table.publishers(name)}
            for node in nodes:
                by_node[node].append(name)
        found: dict[str, list[Heard]] = defaultdict(list)
        asked = sorted(by_node)
        self._asked = len(by_node.keys() - {self._local.table.node})
        apart_s = apart(self._asked, self._thinnest())
        answers = await asyncio.gather(*(self._ask(node, by_node[node], at * apart_s) for at, node in enumerate(asked)))
        for node, answer in zip(asked, answers, strict=True):
            for name, heard in answer.tags.items():
                if heard.node == node:
                    found[name].append(heard)
        return found

    async def _ask(self, node: str, tags: list[str], after_s: float) -> AllHeard:
        lines = {name: line for name in tags if name in self._tags and (line := self._tags[name].surroundings.line())}
        asked = AskHeard(tags=tags, lines=lines)
        if node == self._local.table.node:
            self._hearing.told(lines)
            return await self._hearing.heard(asked)
        await asyncio.sleep(after_s)
        try:
            answer = await self._mesh.request(node, HEARD, service.encode(asked), TIMEOUT_S)
            found = service.decode_untrusted(answer, AllHeard)
            await self.models.follow(node, found.models, self._now_ns())
        except (TimeoutError, RingcastError) as exc:
            logger.debug("node %s does not say what it hears: %s", node, exc)
            return AllHeard(tags={})
        return found

    async def _serve(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskHeard)
        rows = {name: self._local.table.tag(name) for name in asked.lines}
        kept = {name for name, row in rows.items() if row is not None and row.primary == node}
        self._hearing.told({name: line for name, line in asked.lines.items() if name in kept})
        return service.encode(await self._hearing.heard(asked))

    def explained(self, name: str) -> list[Explained]:
        """How a tag's transport was chosen here; empty where it was not."""
        row, tag = self._local.table.tag(name), self._tags.get(name)
        if row is None or tag is None:
            return []
        known = [(key, *found) for key, found in tag.rankings.items() if key in row.chosen]
        return [explained(key, row.chosen[key], wish, around, ranking) for key, wish, around, ranking in known]

    def _choose(self, row: TagRow, tag: _Tag, wishes: dict[str, Wish], *, tell: bool = True) -> None:
        environment = tag.surroundings.environment()
        if environment is None:
            return
        if not wishes:
            self._tell_besides(row.name, tag, environment)
            return
        chosen = {key: choice for key, choice in row.chosen.items() if key in wishes}
        tag.rankings = {key: found for key, found in tag.rankings.items() if key in wishes}
        carriers = {key: choice.transport for key, choice in chosen.items()}
        changes: dict[str, str] = {}
        for key, wish in list(wishes.items())[:MAX_CHOICES_PER_TAG]:
            if key in chosen and tag.surroundings.paused:
                continue  # it meets nothing: what others do to its line meanwhile is no reason to change it
            if tag.deciding[key].waits(self._loop.time(), tag.surroundings.is_busy):
                continue
            model = self.models.of(wish.learned, wish.ordered) if wish.learned else None
            current = chosen[key].transport if key in chosen else ""
            ranking = ranked(environment, wish, model, serves, current)
            tag.rankings[key] = wish, environment, ranking
            decision = tag.deciding[key].decide(self._loop.time(), current, environment, ranking)
            changes[key] = decision.transport if decision.change else ""
            if decision.change:
                logger.info("tag %s (%s): %s, %s", row.name, key, decision.transport, decision.why)
                chosen[key] = Chosen(decision.transport, printable(decision.why), self._now_ns())
        if tell:
            self._tell_of(row.name, tag, carriers, changes)
        if chosen != row.chosen:
            self._deliver(self._local.tags.put_chosen(row, chosen))
            self._on_chosen()

    def _tell_besides(self, name: str, tag: _Tag, environment: Environment) -> None:
        """Of a tag that nobody leaves to this node, as if it were asked for the usual metric."""
        cost, carried_by = tag.surroundings.cost(), tag.surroundings.carried_by
        if cost.messages and len(carried_by) == 1:
            (by,) = carried_by
            wish = Wish(USUAL, ordered=keeps_order(by))
            ranking = ranked(environment, wish, self.models.of(wish.learned, wish.ordered), serves)
            self._tell(lived(name, "", by, environment, cost, ranking, "", self._now_ns()))

    def _tell_of(self, name: str, tag: _Tag, carriers: dict[str, str], changes: dict[str, str]) -> None:
        """Once for each look, whoever else asked for something: it was one stream, and it cost what it cost."""
        cost, carried_by = tag.surroundings.cost(), tag.surroundings.carried_by
        if not cost.messages or len(carried_by) != 1:
            return
        # Whatever was chosen: an administrator may have pinned another one.
        (by,) = carried_by
        key = asker(by, list(changes), carriers)
        _, environment, ranking = tag.rankings[key]
        self._tell(lived(name, key, by, environment, cost, ranking, changes[key], self._now_ns()))


def period_s(nodes: int, line: float) -> float:
    """From one look to the next, where so many nodes are asked by a line of so many bytes per second; 0 where it is not
    known. Pure."""
    wanted_s = nodes * ASKED_BYTES / (ASKED_SHARE * line) if line > 0 else 0.0
    return min(max(wanted_s, PERIOD_S), LONGEST_PERIOD_S)


def apart(nodes: int, line: float) -> float:
    """Seconds from one node's question to the next one's, in the same look. Pure."""
    if line <= 0:
        return 0.0
    return min(ASKED_BYTES / (ASKED_AT_ONCE * line), PERIOD_S / 2 / max(nodes, 1))


def wishes_of(row: TagRow, subscribers: Iterable[SubscriberRow]) -> dict[str, Wish]:
    """Who leaves the transport of this tag to its keeper, by `choice_key`. Pure."""
    asked = {setting.transport for setting in row.settings.values()} | {row.attributes.transport}
    general = [text for text in sorted(asked) if is_automatic(text)]
    found: dict[str, Wish] = {}
    for one in subscribers:
        texts = [*general, *([one.wanted.transport] if one.wanted.transport else [])]
        for text in texts:
            # Whoever scales needs an order although it asked for none, so both are at hand.
            for ordered in {True, one.wanted.ordered}:
                try:
                    metric, loss, deadline_s = automatic(text)
                except ValueError:
                    continue
                wish = Wish(metric, loss, one.info.reliable, ordered or one.info.reliable, deadline_s)
                found[choice_key(text, wish.reliable, wish.ordered)] = wish
    return found


def serves(transport: str, wish: Wish) -> bool:
    """Whether a transport keeps what is promised."""
    try:
        promises = find(transport).promises
    except QosMismatch:
        return False
    return (promises.reliable or not wish.reliable) and (promises.ordered or not wish.ordered)


def _asks(row: object) -> bool:
    """Whether somebody may leave a transport to its keeper with this row."""
    if isinstance(row, SubscriberRow):
        return bool(row.wanted.transport)
    if isinstance(row, TagRow):
        texts = [row.attributes.transport, *(setting.transport for setting in row.settings.values())]
        return any(map(is_automatic, texts))
    return False

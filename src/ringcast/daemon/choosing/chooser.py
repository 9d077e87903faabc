"""`transport="auto:METRIC"`: the daemon that keeps a tag chooses what carries it, and again when that is worth it.

Every second it asks the nodes that receive such a tag what they counted, and decides (`ringcast.adapt.deciding`).
While somebody reads what choices cost (`@ringcast/<node>/choices`), it also looks at its other tags, and tells of them
too: what an administrator or a subscriber chose is learned from as well. Invariants: without such a subscriber or
reader nothing runs; only tags that this node keeps are written; a tag is written only when a choice changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from ringcast.adapt.deciding import Deciding, Ranking, ranked
from ringcast.adapt.environment import Environment, Surroundings
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
SOON_S = 0.05
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
        mesh.serve(HEARD, self._serve)

    def close(self) -> None:
        self._alarm.close()
        if self._looking is not None:
            self._looking.cancel()

    def changed(self, changes: Iterable[Change]) -> None:
        """The table changed, here or elsewhere."""
        if self._alarm.waiting or self._looking is not None:
            return
        rows = [row for _, row in changes]
        if any(map(_asks, rows)):
            self._alarm.within(SOON_S)
        elif any(isinstance(row, SubscriberRow) for row in rows) and self._is_read():
            self._alarm.within(PERIOD_S)

    # ------------------------------------------------------------------ when

    def _begin(self) -> None:
        if mine := dict(self._mine()):
            self._looking = self._background.start("choosing transports", self.look(mine), self._done)
        else:
            self._tags.clear()

    def _done(self) -> None:
        self._looking = None
        self._alarm.within(PERIOD_S)

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

    async def _heard(self, mine: Iterable[str]) -> dict[str, list[Heard]]:
        by_node: dict[str, list[str]] = defaultdict(list)
        for name in mine:
            table = self._local.table
            nodes = {row.owner for row in table.subscribers(name)} | {row.owner for row in table.publishers(name)}
            for node in nodes:
                by_node[node].append(name)
        found: dict[str, list[Heard]] = defaultdict(list)
        answers = await asyncio.gather(*(self._ask(node, tags) for node, tags in by_node.items()))
        for node, answer in zip(by_node, answers, strict=True):
            for name, heard in answer.tags.items():
                if heard.node == node:
                    found[name].append(heard)
        return found

    async def _ask(self, node: str, tags: list[str]) -> AllHeard:
        explained = {name: self._explained(name) for name in tags if name in self._tags}
        asked = AskHeard(tags=tags, explained=explained)
        if node == self._local.table.node:
            self._hearing.told(explained)
            return await self._hearing.heard(asked)
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
        rows = {name: self._local.table.tag(name) for name in asked.explained}
        kept = {name for name, row in rows.items() if row is not None and row.primary == node}
        self._hearing.told({name: asked.explained[name] for name in kept})
        return service.encode(await self._hearing.heard(asked))

    def _explained(self, name: str) -> list[Explained]:
        row, tag = self._local.table.tag(name), self._tags[name]
        if row is None:
            return []
        known = [(key, *found) for key, found in tag.rankings.items() if key in row.chosen]
        return [explained(key, row.chosen[key], wish, around, ranking) for key, wish, around, ranking in known]

    def _choose(self, row: TagRow, tag: _Tag, wishes: dict[str, Wish]) -> None:
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
            model = self.models.of(wish.learned, wish.ordered) if wish.learned else None
            ranking = ranked(environment, wish, model, serves)
            tag.rankings[key] = wish, environment, ranking
            current = chosen[key].transport if key in chosen else ""
            decision = tag.deciding[key].decide(self._loop.time(), current, environment, ranking)
            changes[key] = decision.transport if decision.change else ""
            if decision.change:
                logger.info("tag %s (%s): %s, %s", row.name, key, decision.transport, decision.why)
                chosen[key] = Chosen(decision.transport, printable(decision.why), self._now_ns())
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

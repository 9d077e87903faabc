"""The keeper of a tag asks the nodes that send and receive it what they counted, and answers when others ask.

Questions and answers go by the lines that messages go by, so through a thin one they come one after the other, and more
seldom. Invariant: a node that does not answer in time is told apart from one that receives nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from ringcast.control import service
from ringcast.control.between.choosing import HEARD, AllHeard, AskHeard
from ringcast.daemon.choosing.hearing import Hearing
from ringcast.daemon.choosing.models import Models
from ringcast.daemon.choosing.ways import Collected
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.table import TagTable
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PERIOD_S = 1.0
LONGEST_PERIOD_S = 4.0
ASKED_BYTES = 300
"""About what asking a node takes of the line, packets and acknowledgements."""
ASKED_SHARE = 0.005
"""Of a line that asking may take: messages wait behind it."""
ASKED_AT_ONCE = 0.1
"""The same while nodes are asked one after the other: a message waits behind one question, and not behind all."""
TIMEOUT_S = 0.8


class Asking:
    """`asked` is how many other nodes were asked the last time."""

    def __init__(
        self, table: TagTable, mesh: ServingMesh, hearing: Hearing, models: Models, now_ns: Callable[[], int]
    ) -> None:  # fmt: skip
        self._table = table
        self._mesh = mesh
        self._hearing = hearing
        self._models = models
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self.asked = 0
        mesh.serve(HEARD, self._serve)

    async def heard(self, tags: Iterable[str], lines: Mapping[str, float], thinnest: float) -> dict[str, Collected]:
        """By tag. `lines` is what is left for tags of their senders' lines, `thinnest` the least of all, in bytes per
        second; 0 where it is not known."""
        by_node: dict[str, list[str]] = defaultdict(list)
        for name in tags:
            receiving = {row.owner for row in self._table.subscribers(name)}
            for node in receiving | {row.owner for row in self._table.publishers(name)}:
                by_node[node].append(name)
        self.asked = len(by_node.keys() - {self._table.node})
        apart_s = apart(self.asked, thinnest)
        nodes = sorted(by_node)
        answers = await asyncio.gather(
            *(self._ask(node, by_node[node], lines, at * apart_s) for at, node in enumerate(nodes))
        )
        found: dict[str, Collected] = defaultdict(lambda: Collected([], {}, set()))
        for node, (answer, at_s) in zip(nodes, answers, strict=True):
            if answer is None:
                for name in by_node[node]:
                    found[name].silent.add(node)
                continue
            for name, heard in answer.tags.items():
                if heard.node == node:
                    found[name].answers.append(heard)
                    found[name].at_s[node] = at_s
        return found

    async def _ask(
        self, node: str, tags: list[str], lines: Mapping[str, float], after_s: float
    ) -> tuple[AllHeard | None, float]:
        """What a node heard, and when it said so; None where it did not answer."""
        mine = {name: lines[name] for name in tags if name in lines}
        asked = AskHeard(tags=tags, lines=mine)
        if node == self._table.node:
            self._hearing.told(mine)
            return await self._hearing.heard(asked), self._loop.time()
        await asyncio.sleep(after_s)
        try:
            answer = await self._mesh.request(node, HEARD, service.encode(asked), TIMEOUT_S)
            at_s = self._loop.time()
            found = service.decode_untrusted(answer, AllHeard)
            await self._models.follow(node, found.models, self._now_ns())
        except (TimeoutError, RingcastError) as exc:
            logger.debug("node %s does not say what it hears: %s", node, exc)
            return None, self._loop.time()
        return found, at_s

    async def _serve(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskHeard)
        rows = {name: self._table.tag(name) for name in asked.lines}
        kept = {name for name, row in rows.items() if row is not None and row.primary == node}
        self._hearing.told({name: line for name, line in asked.lines.items() if name in kept})
        return service.encode(await self._hearing.heard(asked))


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

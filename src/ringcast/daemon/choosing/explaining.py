"""How the transports of tags were chosen, for whoever lists channels: asked of the nodes that keep these tags.

Invariant: while nobody asks for reasons nothing of it is on any line; an explanation has some two kilobytes, and
messages would wait behind it. Whoever asks the same meanwhile shares the answer. Tags whose keeper does not answer stay
without one: the tag's row still says what was chosen, when and why.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from ringcast.control import service
from ringcast.control.between.choosing import EXPLAIN, MOST_EXPLAINED, AllExplained, AskExplained, Explained
from ringcast.control.status import ChannelChoice, ChannelStatus
from ringcast.daemon.mesh.interface import ServingMesh
from ringcast.daemon.table.table import TagTable
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

TIMEOUT_S = 0.8


class Explaining:
    """`own` explains a tag that this node keeps; empty where it chose nothing."""

    def __init__(self, table: TagTable, mesh: ServingMesh, own: Callable[[str], list[Explained]]) -> None:
        self._table = table
        self._mesh = mesh
        self._own = own
        self._under_way: dict[tuple[str, tuple[str, ...]], asyncio.Future[dict[str, list[Explained]]]] = {}
        mesh.serve(EXPLAIN, self._serve)

    async def explained(self, rows: list[ChannelStatus]) -> list[ChannelStatus]:
        """The same channels, with how their transports were chosen."""
        found = await self.choices(row.tag for row in rows)
        return [msgspec.structs.replace(row, choices=found.get(row.tag, [])) for row in rows]

    async def choices(self, tags: Iterable[str]) -> dict[str, list[ChannelChoice]]:
        """By tag, of those whose transport was left to the mesh."""
        kept_by: dict[str, list[str]] = defaultdict(list)
        for tag in sorted(set(tags)):
            row = self._table.tag(tag)
            if row is not None and row.chosen:
                kept_by[row.primary].append(tag)
        answers = await asyncio.gather(*itertools.starmap(self._ask, kept_by.items()))
        return {
            tag: [ChannelChoice(**msgspec.structs.asdict(one)) for one in found]
            for answer in answers for tag, found in answer.items()
        }  # fmt: skip

    async def _ask(self, keeper: str, tags: list[str]) -> dict[str, list[Explained]]:
        if keeper == self._table.node:
            return {tag: self._own(tag) for tag in tags}
        question = keeper, tuple(tags)
        if (answer := self._under_way.get(question)) is not None:
            return await asyncio.shield(answer)
        answer = self._under_way[question] = asyncio.get_running_loop().create_future()
        try:
            answer.set_result(await self._asked(keeper, tags))
        finally:
            del self._under_way[question]
            answer.cancel()  # does nothing once there is a result
        return answer.result()

    async def _asked(self, keeper: str, tags: list[str]) -> dict[str, list[Explained]]:
        found: dict[str, list[Explained]] = {}
        try:
            for at in range(0, len(tags), MOST_EXPLAINED):
                some = tags[at : at + MOST_EXPLAINED]
                asked = service.encode(AskExplained(tags=some))
                answer = await self._mesh.request(keeper, EXPLAIN, asked, TIMEOUT_S)
                told = service.decode_untrusted(answer, AllExplained).tags
                found |= {tag: told[tag] for tag in some if tag in told}
        except (TimeoutError, RingcastError) as exc:
            logger.debug("node %s does not explain its choices: %s", keeper, exc)
        return found

    async def _serve(self, node: str, payload: bytes) -> bytes:
        asked = service.decode_untrusted(payload, AskExplained)
        return service.encode(AllExplained(tags={tag: self._own(tag) for tag in asked.tags}))

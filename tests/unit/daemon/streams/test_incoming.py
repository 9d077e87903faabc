"""A channel that its sender wants opened again is, whenever that is said; many publishers are followed at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ringcast.daemon.background import Background
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.streams.incoming import AT_ONCE, IncomingChannels
from ringcast.daemon.streams.state import Event, Life
from ringcast.daemon.streams.wanted import IncomingChannel, Stream
from ringcast.daemon.table.rows import PublisherRow
from ringcast.model.identity import PublisherInfo
from ringcast.testing.waiting import wait_until_async

DEMAND = Demand(at="", transport="nak")
INFO = PublisherInfo(id=1, node="n2", tag="t", incarnation=7, pid=1, user="u", program="p")
ROW = PublisherRow(info=INFO, depth=8, capacity_bytes=4096)
STREAM = Stream(7, DEMAND)


class Local:
    """Publishers on another node, and a subscriber here who wants their streams."""

    def __init__(self, rows: Sequence[PublisherRow] = (ROW,)) -> None:
        self.table = self.sharing = self
        self.node = "n1"
        self.asked = 0
        self._rows = list(rows)

    def all_publishers(self) -> list[PublisherRow]:
        return self._rows

    def publishers(self, tag: str) -> list[PublisherRow]:
        return self._rows

    def demands(self, tag: str) -> set[Demand]:
        self.asked += 1
        return {DEMAND}

    def continuing(self, incarnation: int) -> None:
        return None

    def begins(self, tag: str) -> str:
        return "earliest"

    def drop_mirror(self, ring: object) -> list[Any]:
        return []


class Mirror:
    next_seq = 3
    closed = True


class Ring:
    readers: set[object] = set()
    alive = True
    every = 1


class Ends:
    """No transport says anything."""

    def close_channel(self, key: int) -> None:
        return

    def release(self, receiving: object) -> None:
        return

    def ended(self) -> set[int]:
        return set()

    def take_deaf(self) -> set[int]:
        return set()

    def close(self) -> None:
        return


class Mesh:
    def node(self, name: str) -> object:
        return self


class Opening:
    """Opens a channel when it is told to; its keys are 1, 2, 3..."""

    def __init__(self) -> None:
        self.keys: set[int] = set()
        self.starts: list[Any] = []
        self.most = 0
        self.go: asyncio.Queue[None] = asyncio.Queue()

    async def open(
        self, stream: Stream, row: PublisherRow, via: str, start: Any, *, hold: bool
    ) -> tuple[IncomingChannel, list[Any]]:
        self.starts.append(start)
        key = len(self.starts)
        self.keys.add(key)
        self.most = max(self.most, len(self.keys))
        await self.go.get()
        self.keys.discard(key)
        life = Life()
        life.on(Event.OPENED)
        life.on(Event.STARTED)
        parts: Any = {"mirror": Mirror(), "ring": Ring(), "receiving": Ends()}
        return IncomingChannel(key=key, via=via, transport="nak", row=row, first_seq=0, life=life, **parts), []


@pytest.mark.parametrize("steps", range(6))
def test_again_however_soon_after_the_channel_began(steps: int) -> None:
    asyncio.run(_again(steps))


def channels(local: Local, opening: Opening, background: Background) -> IncomingChannels:
    parts: Any = (local, Mesh(), Ends(), opening, None, lambda sends: None, lambda: None, background)
    return IncomingChannels(*parts)


async def _again(steps: int) -> None:
    opening, background = Opening(), Background()
    incoming = channels(Local(), opening, background)
    incoming.follow()
    await wait_until_async(lambda: len(opening.starts) == 1)
    opening.go.put_nowait(None)
    for _ in range(steps):  # of the loop: the channel is open after some of them, and its task ended later still
        await asyncio.sleep(0)
    incoming.again("n2", 1)
    await wait_until_async(lambda: len(opening.starts) == 2)
    opening.go.put_nowait(None)
    await wait_until_async(lambda: [channel.key for channel in incoming.channels.values()] == [2])
    assert opening.starts == ["earliest", 3], "it goes on where the first one ended"
    incoming.close()
    background.close()


def test_many_changes_are_followed_once_and_some_channels_opened_at_a_time() -> None:
    asyncio.run(_many(4 * AT_ONCE))


async def _many(number: int) -> None:
    rows = [replace(ROW, info=replace(INFO, id=i, tag=f"t{i}", incarnation=i)) for i in range(1, number + 1)]
    local, opening, background = Local(rows), Opening(), Background()
    incoming = channels(local, opening, background)
    for _ in rows:  # as their rows come by gossip
        incoming.follow_soon()
    await wait_until_async(lambda: opening.starts)
    assert local.asked == number, "once, and not for each of them"
    for _ in rows:
        opening.go.put_nowait(None)
    await wait_until_async(lambda: len(incoming.channels) == number)
    assert opening.most == AT_ONCE
    incoming.close()
    background.close()

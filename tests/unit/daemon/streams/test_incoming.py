"""A channel that its sender wants opened again is, whenever that is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.daemon.background import Background
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.streams.incoming import IncomingChannels
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
    """One publisher on another node, and a subscriber here who wants its stream."""

    def __init__(self) -> None:
        self.table = self.sharing = self
        self.node = "n1"

    def all_publishers(self) -> list[PublisherRow]:
        return [ROW]

    def publishers(self, tag: str) -> list[PublisherRow]:
        return [ROW]

    def demands(self, tag: str) -> set[Demand]:
        return {DEMAND}

    def continuing(self, incarnation: int) -> None:
        return None

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

    def end(self, transport: str) -> Ends:
        return self

    def close_channel(self, key: int) -> None:
        return

    def ended(self) -> set[int]:
        return set()

    def take_deaf(self, transports: object) -> set[int]:
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
        self.go: asyncio.Queue[None] = asyncio.Queue()

    async def open(
        self, stream: Stream, row: PublisherRow, via: str, start: Any, *, hold: bool
    ) -> tuple[IncomingChannel, list[Any]]:
        self.starts.append(start)
        key = len(self.starts)
        self.keys.add(key)
        await self.go.get()
        self.keys.discard(key)
        life = Life()
        life.on(Event.OPENED)
        life.on(Event.STARTED)
        parts: Any = {"mirror": Mirror(), "ring": Ring()}
        return IncomingChannel(key=key, via=via, transport="nak", row=row, first_seq=0, life=life, **parts), []


@pytest.mark.parametrize("steps", range(6))
def test_again_however_soon_after_the_channel_began(steps: int) -> None:
    asyncio.run(_again(steps))


async def _again(steps: int) -> None:
    local, mesh, ends, opening, senders = Local(), Mesh(), Ends(), Opening(), None
    background = Background()
    parts: Any = (local, mesh, ends, opening, senders, lambda sends: None, lambda: None, background)
    incoming = IncomingChannels(*parts)
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

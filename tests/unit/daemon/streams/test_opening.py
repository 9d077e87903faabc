"""Whatever fails while a channel is opened, nothing is left of it; what is asked comes in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from ringcast import _core
from ringcast.control import service
from ringcast.control.service import ChannelOpened, Nothing
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.opening import Opening
from ringcast.daemon.streams.state import State
from ringcast.daemon.streams.wanted import Stream
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import BrokenError, NoSpace, PublisherGone
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes

STREAM = Stream(7, Demand(at="", transport="udp"))
INFO = PublisherInfo(id=1, node="n2", tag="t", incarnation=7, pid=1, user="u", program="p")
ROW = PublisherRow(info=INFO, depth=8, capacity_bytes=4096)


class Tag:
    attributes = TagAttributes()


class Local:
    """The part of the local manager that opening uses."""

    def __init__(self, *, has_tag: bool = True, has_room: bool = True) -> None:
        self.table = self.sharing = self
        self.shown: list[Any] = []
        self._has_tag, self._has_room = has_tag, has_room

    def tag(self, name: str) -> Tag | None:
        return Tag() if self._has_tag else None

    def number(self) -> int:
        return 5

    def add_mirror(self, ring: Any, before: Any = None) -> list[Any]:
        if not self._has_room:
            raise NoSpace(3, 2, 1)
        self.shown.append(ring)
        return []


class Sender:
    """The mesh, with a node that answers as it is told to."""

    refused: Counter[str] = Counter()

    def __init__(self, fails_at: str = "") -> None:
        self.asked: list[str] = []
        self._fails_at = fails_at

    def node(self, name: str) -> object:
        return self

    async def request(self, node: str, name: str, payload: bytes, timeout: float) -> bytes:
        self.asked.append(name)
        if name == self._fails_at:
            raise BrokenError("the node went")
        if name == service.OPEN:
            return service.encode(ChannelOpened(first_seq=3, depth=8, capacity_bytes=4096, every=1))
        return service.encode(Nothing())


async def clock(node: str) -> _core.TimeBase:
    return _core.TimeBase()


async def here(node: str) -> str:
    return "127.0.0.1"


class Ends(ReceivingEnds):
    """Counts the channels that are open."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1")
        self.opened: set[int] = set()
        end = self.end("udp")
        opening, closing = end.open, end.close_channel

        def open_(channel: Any) -> Any:
            self.opened.add(channel.key)
            return opening(channel)

        def close_(key: int) -> None:
            self.opened.discard(key)
            closing(key)

        end.open, end.close_channel = open_, close_  # type: ignore[method-assign]


def run(local: Local, sender: Sender, ends: Ends) -> Any:
    opening = Opening(local, sender, ends, here, clock)  # type: ignore[arg-type]
    return asyncio.run(opening.open(STREAM, ROW, "n2", "new", hold=False))


def test_the_sender_is_asked_where_it_begins_and_then_to_send() -> None:
    local, sender, ends = Local(), Sender(), Ends()
    try:
        channel, _ = run(local, sender, ends)
        assert sender.asked == [service.OPEN, service.START]
        assert channel.life.state is State.FLOWING
        assert channel.first_seq == channel.ring.first_seq == 3
        assert local.shown == [channel.ring]
        assert ends.opened == {channel.key}
        channel.ring.close()
    finally:
        ends.close()


@pytest.mark.parametrize(
    ("local", "sender", "error"),
    [
        (Local(), Sender(service.OPEN), BrokenError),
        (Local(), Sender(service.START), BrokenError),
        (Local(has_tag=False), Sender(), PublisherGone),
        (Local(has_room=False), Sender(), NoSpace),
    ],
    ids=["not opened", "not started", "the tag is gone", "no room for the mirror"],
)
def test_what_fails_leaves_nothing(local: Local, sender: Sender, error: type[Exception]) -> None:
    ends = Ends()
    try:
        with pytest.raises(error):
            run(local, sender, ends)
        assert ends.opened == set()
        assert local.shown == []
    finally:
        ends.close()

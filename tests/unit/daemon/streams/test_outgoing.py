"""Channels that break by themselves."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from ringcast.control.service import StartChannel
from ringcast.daemon.background import Background
from ringcast.daemon.rings.fanout import Answer
from ringcast.daemon.streams import outgoing, places
from ringcast.daemon.streams.outgoing import OutgoingChannels
from ringcast.errors import BrokenError
from ringcast.testing.waiting import wait_until_async


class Sending:
    def __init__(self) -> None:
        self.broken = False
        self.unsettled = False
        self.calls: list[tuple[str, int]] = []

    async def ready(self) -> None:
        return

    def settle(self) -> None:
        self.calls.append(("settle", 0))
        self.unsettled = False

    def too_long(self, seq: int) -> None:
        self.calls.append(("too long", seq))

    def behind(self, seq: int) -> None:
        self.calls.append(("behind", seq))
        self.unsettled = True

    def release(self) -> None:
        self.calls.append(("release", 0))

    def close(self) -> None:
        return


class Transport:
    name = "fake"

    def __init__(self) -> None:
        self.made: list[Sending] = []

    def send(self, *_: object) -> Sending:
        self.made.append(Sending())
        return self.made[-1]


class Source:
    depth, capacity_bytes = 8, 4096
    ended = False


class Sources:
    def __init__(self) -> None:
        self.released = 0

    async def source(self, *_: object) -> Source:
        return Source()

    def release(self, *_: object) -> None:
        self.released += 1


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> Transport:
    made = Transport()
    monkeypatch.setattr(outgoing, "find", lambda _: made)
    monkeypatch.setattr(outgoing, "CHECK_S", 0.001)
    monkeypatch.setattr(outgoing, "SETTLE_S", 0.001)
    return made


def request(key: int) -> StartChannel:
    return StartChannel(key=key, incarnation=0xAB, first_seq=0, address=":7", transport="fake")


def test_a_channel_that_broke_is_said_and_opened_again(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(_breaks(transport, caplog))


async def _breaks(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    sources: Any = Sources()
    again: list[tuple[str, int]] = []
    manager = OutgoingChannels(sources, Background(), on_again=lambda node, key: again.append((node, key)))
    with caplog.at_level(logging.WARNING, "ringcast.daemon"):
        await manager.start("b", "127.0.0.1", request(1))
        await manager.start("c", "127.0.0.1", request(2))
        transport.made[0].broken = True
        await wait_until_async(lambda: again)
        assert again == [("b", 1)]
        assert list(manager.channels) == [2]
        assert transport.made[0].calls == [("release", 0)]
        assert sources.released == 1
        # It breaks again before anything came of it: not said again.
        await manager.start("b", "127.0.0.1", request(3))
        transport.made[2].broken = True
        await wait_until_async(lambda: len(again) == 2)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the channel of publisher ab to node b by fake broke; it is opened again where it ended"]
    manager.close()


def test_what_a_channel_reads_is_held_until_its_node_has_asked_again(transport: Transport) -> None:
    """Or the mirror of a relayed stream would end, with what the node has not got yet."""
    asyncio.run(_another_factor())


async def _another_factor() -> None:
    sources: Any = Sources()
    again: list[int] = []
    manager = OutgoingChannels(sources, Background(), on_again=lambda _, key: again.append(key))
    await manager.start("b", "127.0.0.1", request(1))
    held: Any = manager.channels[1].source
    held.changed_factor = lambda every, rate_hz: True
    manager.follow_rates()
    assert again == [1]
    assert sources.released == 0
    manager.close()


def test_what_a_publisher_gives_back_is_pumped(transport: Transport) -> None:
    asyncio.run(_gives_back(transport))


async def _gives_back(transport: Transport) -> None:
    sources: Any = Sources()
    manager = OutgoingChannels(sources, Background())
    await manager.start("b", "127.0.0.1", request(1))
    sending = transport.made[0]
    manager.given_back(Answer(link=9, seq=4, behind=True))
    assert sending.calls == []
    manager.given_back(Answer(link=1, seq=5, behind=True))
    await wait_until_async(lambda: not sending.unsettled)
    manager.given_back(Answer(link=1, seq=6, behind=False))
    assert sending.calls == [("behind", 5), ("settle", 0), ("too long", 6)]
    manager.close()


class Place:
    closed = False

    def close(self) -> None:
        self.closed = True


class KeptSource(Source):
    """A publisher's ring in which places can be kept."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.taken_over = 0

    def keep_place(self) -> Place:
        self.places.append(Place())
        return self.places[-1]

    def take_over(self) -> None:
        self.taken_over += 1


class KeptSources(Sources):
    def __init__(self) -> None:
        super().__init__()
        self.one = KeptSource()

    async def source(self, *_: object) -> Source:
        return self.one


def reliably(key: int) -> StartChannel:
    return StartChannel(key=key, incarnation=0xAB, first_seq=0, address=":7", transport="fake", reliable=True)


def test_a_place_is_kept_for_a_reliable_node_that_went(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PLACE_S", 0.01)
    asyncio.run(_keeps_places())


async def _keeps_places() -> None:
    sources: Any = KeptSources()
    kept = sources.one.places
    manager = OutgoingChannels(sources, Background())
    await manager.start("b", "127.0.0.1", reliably(1))
    assert sources.one.taken_over == 1
    manager.node_gone("b")
    assert [place.closed for place in kept] == [False]
    await manager.start("c", "127.0.0.1", reliably(2))  # another node's channel is not what it is kept for
    assert not kept[0].closed
    await manager.start("b", "127.0.0.1", reliably(3))
    assert kept[0].closed
    # For whoever does not come back it is not kept for ever, and for whoever says goodbye not at all.
    manager.node_gone("b")
    await wait_until_async(lambda: kept[1].closed)
    manager.close_channel(outgoing.CloseChannel(key=2))
    await manager.start("d", "127.0.0.1", request(4))
    manager.node_gone("d")
    assert len(kept) == 2
    manager.close()


def test_a_ring_that_ends_while_a_channel_is_started_is_said_to_who_asked(transport: Transport) -> None:
    asyncio.run(_ends_meanwhile(transport))


async def _ends_meanwhile(transport: Transport) -> None:
    sources: Any = KeptSources()
    manager = OutgoingChannels(sources, Background())
    begun = asyncio.Event()
    connected = asyncio.Event()

    class Slow(Sending):
        async def ready(self) -> None:
            begun.set()
            await connected.wait()

    def send(*_: object) -> Slow:
        transport.made.append(Slow())
        return transport.made[-1]

    transport.send = send  # type: ignore[method-assign]
    starting = asyncio.create_task(manager.start("b", "127.0.0.1", request(1)))
    await begun.wait()
    sources.one.ended = True
    connected.set()
    with pytest.raises(BrokenError, match="ended while"):
        await starting
    assert manager.channels == {}
    assert sources.released == 1
    assert transport.made[0].calls == [("release", 0)]
    manager.close()

"""Asking a client to receive a stream itself: what it answers, refuses, or does not say."""

from __future__ import annotations

import asyncio
import os
import socket
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ringcast import _core
from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import IntakeUnwanted, IntakeWanted
from ringcast.control.requests import IntakeDown, IntakeUp
from ringcast.control.service import Seat
from ringcast.daemon.intakes import handing
from ringcast.daemon.intakes.handing import HandedMirror, Handing
from ringcast.errors import BadMessage, BrokenError
from ringcast.transport import Channel
from ringcast.transport.interface import MirrorBefore
from ringcast.transport.stack_receiving import open_mirror

READER = (3, 8)


class Desk:
    """A daemon with one client, as far as handing looks at it."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(receives=True)
        self.known: dict[int, object] = {}
        self.sent: list[Any] = []
        rings = SimpleNamespace(of_incarnation=self.known.get)
        self.handing = Handing(SimpleNamespace(rings=rings, clients={3: self.client}), "127.0.0.1", self.sent.extend)  # type: ignore[arg-type]
        self.clock = _core.TimeBase()
        seat = Seat(key=5, number=0, chunk=1400, feedback=9, next_seq=7, peers=[])
        self.channel = Channel(
            key=77, incarnation=6, depth=16, capacity_bytes=4096, first_seq=7, transport="nak", sender="127.0.0.1",
            seat=seat,
        )  # fmt: skip

    async def open(self, answer: Any, before: MirrorBefore | None = None) -> HandedMirror:
        """`answer` is called with what the client is asked."""
        receiving = self.handing.end(READER)
        try:
            opening = asyncio.ensure_future(receiving.open_there(self.channel, self.clock, before))
            await asyncio.sleep(0)
            answer(self.sent[-1])
            return await opening
        finally:
            receiving.close()


class Mirrored:
    """What a client makes of it."""

    def __init__(self, channel: Channel, before: MirrorBefore | None = None) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            self.delivery = _core.Delivery(sock.fileno(), attended=True)
        self.mirror = open_mirror(self.delivery, channel, shown=True, before=before)

    def fds(self) -> list[Descriptor]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.close()
        given = (self.mirror.ring_fd, self.mirror.bell_fd, theirs.fileno(), self.mirror.page_fd)
        fds = [Descriptor(os.dup(fd)) for fd in given]
        theirs.close()
        return fds


def test_the_client_gets_socket_and_clock_and_gives_a_mirror() -> None:
    desk = Desk()
    client = Mirrored(desk.channel)

    def answer(send: Any) -> None:
        assert (send.client, len(send.fds)) == (3, 2)
        wanted = send.message
        assert isinstance(wanted, IntakeWanted)
        assert (wanted.subscription, wanted.intake) == (8, 77)
        assert msgspec.msgpack.decode(wanted.channel, type=Channel) == desk.channel
        desk.handing.answered(3, IntakeUp(id=1, intake=77, incarnation=client.mirror.incarnation), client.fds())

    mirror = asyncio.run(desk.open(answer))
    assert (mirror.incarnation, mirror.next_seq, mirror.closed) == (client.mirror.incarnation, 7, False)
    assert mirror.counters()["messages"] == 0
    client.delivery.close()
    assert mirror.closed
    assert desk.client.receives


def test_the_mirror_before_goes_with_it_and_its_messages_come_back() -> None:
    desk = Desk()
    writer = _core.RingWriter(depth=16, capacity_bytes=4096)
    for number in range(9):  # 7 and 8 come again by the channel, which begins at 7
        writer.send(b"%d" % number)
    before = MirrorBefore(writer.ring_fd, 16, 4096, writer.incarnation)
    made: list[Mirrored] = []

    def answer(send: Any) -> None:
        assert (len(send.fds), send.message.before) == (3, before[1:])
        received = MirrorBefore(send.fds[2].fileno(), *send.message.before)
        made.append(Mirrored(desk.channel, received))
        desk.handing.answered(3, IntakeUp(id=1, intake=77, incarnation=made[0].mirror.incarnation), made[0].fds())

    mirror = asyncio.run(desk.open(answer, before))
    history = _core.RingHistory()
    history.attach(mirror.ring_fd, depth=16, capacity_bytes=4096, incarnation=mirror.incarnation)
    assert [(msg.seq, msg.lost, bytes(msg.data)) for msg in history.range(0, 100)] == [
        (number, 0, b"%d" % number) for number in range(7)
    ]
    assert mirror.next_seq == 7
    history.close()
    made[0].delivery.close()
    writer.close()


def test_a_mirror_before_that_is_none_does_not_stand_in_the_way() -> None:
    desk = Desk()
    writer = _core.RingWriter(depth=16, capacity_bytes=4096)
    made = Mirrored(desk.channel, MirrorBefore(writer.ring_fd, 32, 8192, writer.incarnation + 1))
    assert made.mirror.next_seq == 7
    made.delivery.close()
    writer.close()


def test_one_that_refuses_is_not_asked_again_and_its_end_is_told() -> None:
    desk = Desk()
    refusal = IntakeDown(id=1, intake=77, reason="no descriptors left")
    with pytest.raises(BrokenError, match="no descriptors left"):
        asyncio.run(desk.open(lambda _: desk.handing.answered(3, refusal, [])))
    assert not desk.client.receives
    assert desk.sent[-1].message == IntakeUnwanted(subscription=8, intake=77)


def test_one_that_says_nothing_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "ANSWER_S", 0.01)
    desk = Desk()
    with pytest.raises(TimeoutError):
        asyncio.run(desk.open(lambda _: None))
    assert not desk.client.receives
    desk.handing.answered(3, IntakeDown(id=1, intake=77), [])  # too late, and no harm


@pytest.mark.parametrize(("client", "fds"), [(4, 4), (3, 3)])
def test_an_answer_of_somebody_else_or_with_other_descriptors(client: int, fds: int) -> None:
    desk = Desk()

    def answer(_: Any) -> None:
        given = [Descriptor(os.open("/dev/null", os.O_RDONLY)) for _ in range(fds)]
        with pytest.raises(BadMessage):
            desk.handing.answered(client, IntakeUp(id=1, intake=77, incarnation=9), given)
        desk.handing.answered(3, IntakeDown(id=2, intake=77), [])

    with pytest.raises(BrokenError):
        asyncio.run(desk.open(answer))


def test_a_mirror_with_the_number_of_another_ring_or_an_open_page() -> None:
    desk = Desk()
    client = Mirrored(desk.channel)
    desk.known[client.mirror.incarnation] = object()
    up = IntakeUp(id=1, intake=77, incarnation=client.mirror.incarnation)
    with pytest.raises(BadMessage, match="another ring"):
        asyncio.run(desk.open(lambda _: desk.handing.answered(3, up, client.fds())))
    desk.known.clear()
    fds = client.fds()
    fds[3] = Descriptor(os.memfd_create("page", os.MFD_ALLOW_SEALING))
    with pytest.raises(Exception, match="not sealed"):
        asyncio.run(desk.open(lambda _: desk.handing.answered(3, up, fds)))
    client.delivery.close()


def test_a_client_that_cannot_end_it_is_not_waited_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "END_S", 0.0)
    desk = Desk()
    client = Mirrored(desk.channel)
    up = IntakeUp(id=1, intake=77, incarnation=client.mirror.incarnation)
    mirror = asyncio.run(desk.open(lambda _: desk.handing.answered(3, up, client.fds())))
    assert not mirror.closed
    mirror.end()
    assert mirror.closed
    client.delivery.close()

"""Somebody who sees the probes of clocks changes, repeats and invents them: no clock moves, and each is counted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from ringcast.clock.exchange import Exchange
from ringcast.clock.probe import ClockProbe, decode_untrusted
from ringcast.control import service
from ringcast.control.peering import Reply
from ringcast.daemon.clocks.peer import PeerClock
from ringcast.daemon.clocks.probing import Probing
from ringcast.testing.waiting import PATIENCE_S

HOST = "127.0.0.1"
HOUR_NS = 3600 * 10**9
ROUNDS = 50


class Between(asyncio.DatagramProtocol):
    """Takes what node a sends to node b and back. What it makes of each answer goes to a as well, before the answer."""

    def __init__(self, b: int, forge: Callable[[bytes], list[bytes]]) -> None:
        self._b = b
        self._forge = forge
        self._a: Any = None
        self._transport: Any = None
        self.forged = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if addr[1] != self._b:
            self._a = addr
            self._transport.sendto(data, (HOST, self._b))
            return
        for datagram in self._forge(data):
            self.forged += 1
            self._transport.sendto(datagram, self._a)
        self._transport.sendto(data, self._a)


def probed(forge: Callable[[bytes], list[bytes]]) -> tuple[PeerClock, Probing, Between]:
    """Node a asks node b, which has the same clock, through somebody between."""

    async def body() -> tuple[PeerClock, Probing, Between]:
        clock, answers = PeerClock("b", common=False), asyncio.Queue[Exchange]()
        a, b = Probing(HOST, lambda _, exchange: answers.put_nowait(exchange)), Probing(HOST, lambda *_: None)
        loop = asyncio.get_running_loop()
        transport, between = await loop.create_datagram_endpoint(
            lambda: Between(b.port, forge), local_addr=(HOST, 0)
        )  # fmt: skip
        try:
            given = b.let_ask("a")
            asked = answered = 0
            async with asyncio.timeout(PATIENCE_S):
                while answered < ROUNDS:
                    a.ask("b", HOST, between.port, given)
                    asked += 1
                    try:
                        clock.add(await asyncio.wait_for(answers.get(), PATIENCE_S / 10), 0)
                        answered += 1
                    except TimeoutError:  # a busy machine drops datagrams, and answers that are late do not count
                        continue
                    assert answered + answers.qsize() <= asked
        finally:
            transport.close()
            a.close()
            b.close()
        return clock, a, between

    return asyncio.run(body())


def unmoved(clock: PeerClock) -> bool:
    status = clock.status(0)
    return clock.steps == 0 and status.probes == ROUNDS and abs(status.offset_ns) < HOUR_NS / 2


def test_answers_whose_times_were_changed() -> None:
    def an_hour_ahead(answer: bytes) -> list[bytes]:
        probe = decode_untrusted(answer)
        moved = probe._replace(heard_ns=probe.heard_ns + HOUR_NS, answered_ns=probe.answered_ns + HOUR_NS)
        return [moved.encode(bytes(32)), moved.encode(b"guessed")[:-16] + answer[-16:]]

    clock, a, between = probed(an_hour_ahead)
    assert a.dropped == {"forged": between.forged}
    assert between.forged >= 2 * ROUNDS
    assert unmoved(clock)


def test_answers_that_were_sent_before_or_belong_to_another_question() -> None:
    seen: list[bytes] = []

    def again(answer: bytes) -> list[bytes]:
        seen.append(answer)
        nonce = answer[16:24]
        return [*seen[:-1][-3:], *(old[:16] + nonce + old[24:] for old in seen[:-1][-3:])]

    clock, a, between = probed(again)
    assert a.dropped["unasked"] == a.dropped["forged"] == between.forged / 2 > ROUNDS
    assert unmoved(clock)


def test_questions_sent_back_as_answers() -> None:
    def reflected(answer: bytes) -> list[bytes]:
        asked = answer[:24] + bytes(16) + answer[40:]
        return [asked[:4] + b"\x02" + asked[5:], asked[:4] + b"\x01" + asked[5:]]

    clock, a, between = probed(reflected)
    assert a.dropped == {"forged": between.forged / 2, "unknown key": between.forged / 2}
    assert unmoved(clock)


def test_a_daemon_counts_forged_probes_and_believes_none(
    victims: Callable[..., Any], attack: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    """Whoever is between two daemons knows the port and the key's number, and not the secret."""
    victims("a")
    a, _ = victims("b", RINGCAST_CLOCK_AHEAD_S="0.000001")  # another clock, if by little: it is measured
    eventually(lambda: a.session.clock("b").source == "measured")
    mallory = attack(a.address)
    answer = mallory.ask(service.CLOCK, service.encode(service.OpenClock()))
    assert isinstance(answer, Reply)
    opened = msgspec.msgpack.decode(answer.piece, type=service.ClockOpened)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((HOST, opened.port))
        for number in range(ROUNDS):
            sock.send(ClockProbe(opened.key, number).encode(bytes(32)))
            sock.send(ClockProbe(opened.key, number, HOUR_NS, HOUR_NS, is_answer=True).encode(opened.secret))
            sock.send(b"rubbish")
    counted = {"forged": ROUNDS, "unasked": ROUNDS, "unreadable": ROUNDS}
    eventually(lambda: a.session.dropped().get("clock") == counted)
    probes = a.session.clock("b").probes
    eventually(lambda: a.session.clock("b").probes > probes)
    clock = a.session.clock("b")
    assert clock.steps == 0
    assert abs(clock.offset_ns) < HOUR_NS / 2

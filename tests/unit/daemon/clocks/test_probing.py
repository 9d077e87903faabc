"""Probes between two sockets: the kernel stamps them, and nobody who was not given a secret is answered."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ringcast.clock.exchange import Exchange
from ringcast.clock.probe import ClockProbe, decode_untrusted
from ringcast.daemon.clocks.probing import MOST_READ_PER_S, Probing, Secret, look


class Pair:
    """Node a asks node b."""

    def __init__(self) -> None:
        self.exchanges: asyncio.Queue[tuple[str, Exchange]] = asyncio.Queue()
        self.a = Probing("127.0.0.1", lambda node, exchange: self.exchanges.put_nowait((node, exchange)))
        self.b = Probing("", lambda node, exchange: None)
        self.given = self.b.let_ask("a")

    def close(self) -> None:
        self.a.close()
        self.b.close()


def run(test: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    async def body() -> None:
        pair = Pair()
        try:
            async with asyncio.timeout(60):
                await test(pair)
        finally:
            pair.close()

    asyncio.run(body())


def test_an_exchange_is_stamped_in_order() -> None:
    async def test(pair: Pair) -> None:
        before = time.time_ns()
        pair.a.ask("b", "127.0.0.1", pair.b.port, pair.given)
        node, exchange = await pair.exchanges.get()
        assert node == "b"
        assert before <= exchange.asked_ns <= exchange.heard_ns <= exchange.answered_ns <= exchange.received_ns
        assert exchange.possible
        assert abs(exchange.offset_ns) <= exchange.delay_ns / 2, "it is the same clock"

    run(test)


def test_of_two_questions_the_second_counts_which_finds_the_way_warm() -> None:
    async def test(pair: Pair) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
            answering.setblocking(False)
            answering.bind(("127.0.0.1", 0))
            given = Secret(1, bytes(32))
            pair.a.ask("it", "127.0.0.1", answering.getsockname()[1], given)
            for number in (1, 2):
                asked = decode_untrusted(await loop.sock_recv(answering, 100))
                answer = asked._replace(heard_ns=number, answered_ns=number, is_answer=True).encode(given.secret)
                answering.sendto(answer, ("127.0.0.1", pair.a.port))
            assert (await pair.exchanges.get())[1].heard_ns == 2
        assert pair.exchanges.empty()
        assert pair.a.dropped == {}

    run(test)


def test_without_the_secret_nobody_is_answered() -> None:
    async def test(pair: Pair) -> None:
        key, secret = pair.given
        pair.a.ask("b", "127.0.0.1", pair.b.port, Secret(key + 1, secret))
        pair.a.ask("b", "127.0.0.1", pair.b.port, Secret(key, bytes(32)))
        pair.a.ask("c", "127.0.0.1", pair.b.port, pair.given)
        assert (await pair.exchanges.get())[0] == "c"
        assert pair.exchanges.empty()
        assert pair.b.dropped == {"unknown key": 2, "forged": 2}
        old, pair.given = pair.given, pair.b.let_ask("a")
        pair.a.ask("b", "127.0.0.1", pair.b.port, old)
        pair.a.ask("d", "127.0.0.1", pair.b.port, pair.given)
        assert (await pair.exchanges.get())[0] == "d", "another secret makes the one before worthless"

    run(test)


def test_an_answer_that_was_not_asked_for_or_came_before_says_nothing() -> None:
    async def test(pair: Pair) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
            answering.setblocking(False)
            answering.bind(("127.0.0.1", 0))
            now, given = time.time_ns(), Secret(1, bytes(32))
            unasked = ClockProbe(given.key, 7, now, now, is_answer=True).encode(given.secret)
            answering.sendto(unasked, ("127.0.0.1", pair.a.port))
            answering.sendto(b"no probe", ("127.0.0.1", pair.a.port))
            pair.a.ask("it", "127.0.0.1", answering.getsockname()[1], given)
            await loop.sock_recv(answering, 100)
            asked = decode_untrusted(await loop.sock_recv(answering, 100))
            answer = asked._replace(heard_ns=now, answered_ns=now, is_answer=True).encode(given.secret)
            for _ in range(3):
                answering.sendto(answer, ("127.0.0.1", pair.a.port))
            assert (await pair.exchanges.get())[0] == "it"
        pair.a.ask("b", "127.0.0.1", pair.b.port, pair.given)
        assert (await pair.exchanges.get())[0] == "b"
        assert pair.exchanges.empty()
        assert pair.a.dropped == {"unasked": 3, "unreadable": 1}

    run(test)


def test_a_flood_is_not_read_without_end() -> None:
    async def test(pair: Pair) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
            while not pair.a.dropped["throttled"]:
                for _ in range(50):
                    flooding.sendto(b"no probe", ("127.0.0.1", pair.a.port))
                await asyncio.sleep(0)
        assert pair.a.dropped["unreadable"] >= MOST_READ_PER_S / 4
        while pair.exchanges.empty():  # those that met a full buffer are lost
            pair.a.ask("b", "127.0.0.1", pair.b.port, pair.given)
            await asyncio.sleep(0.01)

    run(test)


def test_what_is_under_way_when_the_clock_is_set_is_forgotten() -> None:
    async def test(pair: Pair) -> None:
        pair.a.ask("b", "127.0.0.1", pair.b.port, pair.given)
        pair.a.forget()
        pair.a.ask("c", "127.0.0.1", pair.b.port, pair.given)
        assert (await pair.exchanges.get())[0] == "c"
        assert pair.exchanges.empty()

    run(test)


def test_one_look_is_at_one_moment() -> None:
    first, then = look(), look()
    assert then.utc_ns > first.utc_ns
    assert then.boot_ns > first.boot_ns
    assert then.boot_ns >= then.awake_ns

"""Requests between nodes: all sizes, errors, time-outs, peers that die or do not read."""

from __future__ import annotations

import asyncio

import pytest
from mesh_town import RawPeer, Town, echo, looped, village

from ringcast.control.peering import (
    CHUNK_BYTES,
    MAX_PAYLOAD_BYTES,
)
from ringcast.errors import BrokenError, Empty, MessageTooLarge, QosMismatch, RingcastError, UnknownTag
from ringcast.testing.waiting import PATIENCE_S


@looped
async def test_requests_of_all_sizes_are_answered() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        b.mesh.serve("echo", echo)
        a.mesh.serve("echo", echo)
        for size in (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 7):
            payload = bytes(range(256)) * (size // 256 + 1)
            assert await a.mesh.request("n1", "echo", payload[:size], PATIENCE_S) == payload[:size]
        assert await a.mesh.request("n0", "echo", b"me", PATIENCE_S) == b"me"
        many = [b"%d" % number for number in range(500)]
        assert await asyncio.gather(*(a.mesh.request("n1", "echo", one, PATIENCE_S) for one in many)) == many


@looped
async def test_the_largest_payload_passes_and_small_requests_overtake_it() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        b.mesh.serve("echo", echo)
        done = []

        async def ask(payload: bytes) -> None:
            done.append(len(await a.mesh.request("n1", "echo", payload, PATIENCE_S)))

        await asyncio.gather(ask(bytes(MAX_PAYLOAD_BYTES)), ask(b"small"))
        assert done == [5, MAX_PAYLOAD_BYTES]
        with pytest.raises(MessageTooLarge):
            await a.mesh.request("n1", "echo", bytes(MAX_PAYLOAD_BYTES + 1), PATIENCE_S)


@looped
async def test_what_a_handler_raises_is_raised_where_it_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    async def unknown(node: str, payload: bytes) -> bytes:
        raise UnknownTag(f"{node}/x")

    async def empty(node: str, payload: bytes) -> bytes:
        raise Empty

    async def mistake(node: str, payload: bytes) -> bytes:
        raise ZeroDivisionError

    async with Town() as town:
        a, b = await village(town, 2)
        for handler in (unknown, empty, mistake):
            b.mesh.serve(handler.__name__, handler)
        with pytest.raises(UnknownTag, match="n0/x"):
            await a.mesh.request("n1", "unknown", b"", PATIENCE_S)
        with pytest.raises(RingcastError, match="the history is empty"):
            await a.mesh.request("n1", "empty", b"", PATIENCE_S)
        with pytest.raises(RingcastError, match="see that node's log"):
            await a.mesh.request("n1", "mistake", b"", PATIENCE_S)
        for node in ("n0", "n1"):
            with pytest.raises(QosMismatch, match="no such service"):
                await a.mesh.request(node, "nothing", b"", PATIENCE_S)
        with pytest.raises(BrokenError, match="'n7' is not in the mesh"):
            await a.mesh.request("n7", "nothing", b"", PATIENCE_S)


@looped
async def test_a_request_that_takes_too_long_is_given_up_on_both_sides() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        cancelled = asyncio.Event()

        async def forever(node: str, payload: bytes) -> bytes:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return b""

        b.mesh.serve("forever", forever)
        with pytest.raises(TimeoutError):
            await a.mesh.request("n1", "forever", b"", 0.01)
        await cancelled.wait()


@looped
async def test_a_request_ends_when_the_other_side_dies() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        asked = asyncio.Event()

        async def forever(node: str, payload: bytes) -> bytes:
            asked.set()
            await asyncio.Event().wait()
            return b""

        b.mesh.serve("forever", forever)
        request = asyncio.create_task(a.mesh.request("n1", "forever", b"", PATIENCE_S))
        await asked.wait()
        await b.mesh.abort()
        with pytest.raises(BrokenError, match=r"'n1' (went down|is not in the mesh)"):
            await request


@looped
async def test_a_peer_that_does_not_read_slows_nobody_else() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        b.mesh.serve("echo", echo)
        peer = await RawPeer.greet(a.address)
        await town.until(lambda: "raw" in a.others())
        stuck = [asyncio.create_task(a.mesh.request("raw", "x", bytes(32 << 20), PATIENCE_S)) for _ in range(4)]
        assert await a.mesh.request("n1", "echo", b"hello", PATIENCE_S) == b"hello"
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        await peer.close()

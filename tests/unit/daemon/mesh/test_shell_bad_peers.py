"""Peers that talk garbage, speak another version, are of another mesh, or break the rules."""

from __future__ import annotations

import msgspec
import pytest
from mesh_town import RawPeer, Town, echo, looped, village

from ringcast.control.peering import (
    LENGTH_BYTES,
    Call,
    Chunk,
    Hello,
    PeerMessage,
    Ping,
    Refusal,
    Reply,
    encode_frame,
)
from ringcast.daemon.mesh import link_pool
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.testing.waiting import PATIENCE_S, wait_until_async

BAD_FRAMES = {
    "noise": b"\x00\x00\x00\x05noise",
    "too long": b"\xff\xff\xff\xff",
    "no hello": encode_frame(Ping(seq=1)),
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "rows first": encode_frame(Chunk(id=1, reply=False, piece=b"")),
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES)
@looped
async def test_garbage_is_counted_and_loses_its_link_only(frame: bytes) -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        b.mesh.serve("echo", echo)
        peer = await RawPeer.dial(a.address)
        peer.writer.write(frame)
        assert isinstance(await peer.hear(Refusal), Refusal)
        assert await peer.hear(Hello) is None
        await peer.close()
        assert a.mesh.status().bad_messages == 1
        assert await a.mesh.request("n1", "echo", b"x", PATIENCE_S) == b"x"


@looped
async def test_a_newer_version_is_told_why_it_is_refused() -> None:
    async with Town() as town:
        (a,) = await village(town, 1)
        peer = await RawPeer.dial(a.address)
        body = msgspec.msgpack.encode({"t": "hello", "version": 9, "all": "different"})
        peer.writer.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        refusal = await peer.hear(Refusal)
        assert "speaks peering protocol 2 and the other 9" in refusal.reason
        await peer.close()
        assert a.mesh.status().refusals == {"127.0.0.1": refusal.reason}


@looped
async def test_another_mesh_is_refused_and_the_doctor_knows() -> None:
    async with Town() as town:
        a = await town.node("a", mesh="plant")
        b = await town.node("b", mesh="lab", seed=a)
        await wait_until_async(lambda: b.mesh.status().refusals)
        assert "'plant'" in b.mesh.status().refusals[a.address]
        assert a.others() == b.others() == set()


MISCONDUCT: dict[str, list[PeerMessage]] = {
    "a call twice": [Call(id=1, service="wait", size=2, piece=b"x")] * 2,
    "more than was announced": [
        Call(id=1, service="wait", size=2, piece=b"x"), Chunk(id=1, reply=False, piece=b"yz")
    ],
    "a large call": [Call(id=1, service="wait", size=1, piece=b"xxx")],
}  # fmt: skip


@pytest.mark.parametrize("messages", MISCONDUCT.values(), ids=MISCONDUCT)
@looped
async def test_calls_against_the_rules_lose_the_link(messages: list[PeerMessage]) -> None:
    async with Town() as town:
        (a,) = await village(town, 1)
        a.mesh.serve("wait", echo)
        peer = await RawPeer.greet(a.address)
        for message in messages:
            peer.say(message)
        assert isinstance(await peer.hear(Refusal), Refusal)
        await peer.close()
        assert a.mesh.status().bad_messages == 1


@looped
async def test_replies_nobody_asked_for_are_ignored() -> None:
    async with Town() as town:
        (a,) = await village(town, 1)
        a.mesh.serve("echo", echo)
        peer = await RawPeer.greet(a.address)
        peer.say(Reply(id=9, size=5, piece=b"hello"))
        peer.say(Chunk(id=9, reply=True, piece=b"x"))
        peer.say(Call(id=1, service="echo", size=2, piece=b"ok"))
        assert await peer.hear(Reply) == Reply(id=1, size=2, piece=b"ok")
        await peer.close()


@looped
async def test_silent_strangers_are_few_and_short_of_stay() -> None:
    async with Town() as town:
        (a,) = await village(town, 1, timing=Timing(hello_ns=50_000_000, probe_ns=20_000_000))
        strangers = [await RawPeer.dial(a.address) for _ in range(link_pool.MAX_STRANGERS + 5)]
        for stranger in strangers:
            try:
                assert await stranger.hear(Refusal) is None
            except ConnectionError:
                pass
            await stranger.close()
        assert a.mesh.status().strangers_refused >= 5
        b = await town.node("b", seed=a)
        await town.until(lambda: b.others() == {"n0"})

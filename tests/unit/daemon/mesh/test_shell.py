"""Meshes of several nodes over real sockets of this machine, in one event loop: finding, telling, asking, bad company.

Time limits here only keep a failing test from hanging.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import msgspec
import pytest

from ringcast.control.peering import (
    CHUNK_BYTES,
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    MAX_PAYLOAD_BYTES,
    Call,
    Chunk,
    FrameReader,
    Hello,
    NodeRecord,
    PeerMessage,
    Ping,
    Refusal,
    Reply,
    Scout,
    decode_untrusted,
    encode_frame,
    encode_scout,
)
from ringcast.daemon.mesh import link_pool
from ringcast.daemon.mesh.core.events import NameCleared, NameConflict
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.mesh.scouting import Scouting, ScoutSettings
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BrokenError, Empty, MessageTooLarge, QosMismatch, RingcastError, UnknownTag
from ringcast.model import addresses
from ringcast.model.identity import PublisherInfo
from ringcast.testing.waiting import PATIENCE_S, wait_until_async


def looped(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await test(*args, **kwargs)

        asyncio.run(limited())

    return run


class Node:
    """A mesh and what it told."""

    def __init__(self, town: Town, name: str, listen: tuple[str, ...], peers: tuple[str, ...], **options: Any) -> None:
        self.name = name
        self.told: list[Any] = []
        self.table = TagTable(name, time.time_ns())
        self._town = town

        def tell(what: Any) -> None:
            self.told.append(what)
            town.happened.set()

        self.mesh = Mesh(
            self.table,
            on_changes=tell,
            on_presence=tell,
            on_name=tell,
            on_contest=tell,
            listen=listen,
            peers=peers,
            **options,
        )

    @property
    def address(self) -> str:
        return self.mesh.me.control[0]

    def others(self) -> set[str]:
        return {row.name for row in self.mesh.nodes() if row.state == "here" and not row.me}

    def publish(self, number: int, tag: str = "lab/temp") -> None:
        info = PublisherInfo(id=number, node=self.name, tag=tag, incarnation=number, pid=1, user="u")
        self.mesh.changed(self.table.put(PublisherRow(info=info, depth=8, capacity_bytes=64)))

    def publishers(self, tag: str = "lab/temp") -> list[tuple[str, int]]:
        return sorted((row.info.node, row.info.id) for row in self.table.publishers(tag))


class Town:
    """Several nodes; all end with it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.happened = asyncio.Event()

    async def node(self, name: str, *, host: str = "", seed: Node | None = None, **options: Any) -> Node:
        listen = options.pop("listen", (f"{host or f'127.0.0.{len(self.nodes) + 1}'}:0",))
        node = Node(self, name, listen, (seed.address,) if seed else options.pop("peers", ()), **options)
        self.nodes.append(node)
        await node.mesh.start()
        return node

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.happened.clear()
            await self.happened.wait()

    async def __aenter__(self) -> Town:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(node.mesh.close() for node in self.nodes))


async def village(town: Town, count: int, **options: Any) -> list[Node]:
    nodes = [await town.node("n0", **options)]
    for number in range(1, count):
        nodes.append(await town.node(f"n{number}", seed=nodes[0], **options))
    await town.until(lambda: all(len(node.others()) == count - 1 for node in nodes))
    return nodes


class RawPeer:
    """Somebody on a socket who can say anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._frames = FrameReader(MAX_FRAME_BYTES)

    @classmethod
    async def dial(cls, address: str) -> RawPeer:
        return cls(*await asyncio.open_connection(*addresses.split(address)))

    @classmethod
    async def greet(cls, address: str, name: str = "raw") -> RawPeer:
        peer = await cls.dial(address)
        peer.say(Hello(record=NodeRecord(name, 77, control=("127.0.0.99:1",))))
        return peer

    def say(self, message: PeerMessage) -> None:
        self.writer.write(encode_frame(message))

    async def hear(self, kind: type) -> Any:
        """The next message of that kind; None when the link ended before."""
        while True:
            while (body := self._frames.next_body()) is not None:
                message = decode_untrusted(body)
                if isinstance(message, kind):
                    return message
            data = await self._reader.read(65536)
            if not data:
                return None
            self._frames.feed(data)

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


# ------------------------------------------------------------------ finding and telling


@looped
async def test_ten_nodes_agree_after_a_change_and_notice_one_that_is_killed_and_returns() -> None:
    async with Town() as town:
        nodes = await village(town, 10)
        nodes[3].publish(1)
        row, changes = nodes[3].table.open_tag("lab/temp", {"depth": 16})
        nodes[3].mesh.changed(changes)
        await town.until(lambda: all(node.publishers() == [("n3", 1)] and node.table.tags() for node in nodes))
        await nodes[3].mesh.abort()
        rest = [node for node in nodes if node.name != "n3"]
        await town.until(lambda: all("n3" not in node.others() and not node.publishers() for node in rest))
        await town.until(lambda: len({_primary(node, row.name) for node in rest} | {"n3"}) == 2)
        again = await town.node("n3", host="127.0.0.4", seed=nodes[0])
        again.publish(2)
        await town.until(lambda: all(node.publishers() == [("n3", 2)] for node in [*rest, again]))
        gone = [(row.state, row.name) for row in nodes[0].mesh.nodes() if row.state == "gone"]
        assert gone == [("gone", "n3")]
        went = [p for told in nodes[0].told if isinstance(told, list) for p in told if getattr(p, "kind", "") == "node"]
        assert [(p.node, p.came) for p in went if p.node == "n3"] == [("n3", True), ("n3", False), ("n3", True)]


def _primary(node: Node, tag: str) -> str:
    row = node.table.tag(tag)
    return row.primary if row else "n3"


@looped
async def test_of_two_with_one_name_the_younger_is_told_and_takes_over_later() -> None:
    async with Town() as town:
        first = await town.node("cam")
        other = await town.node("hub", seed=first)
        await town.until(lambda: other.others() == {"cam"})
        second = await town.node("cam", seed=other)
        await town.until(lambda: any(isinstance(told, NameConflict) and told.mine for told in second.told))
        assert not second.mesh.serving
        assert first.mesh.serving
        second.publish(2)
        first.publish(1)
        await town.until(lambda: other.publishers() == [("cam", 1)])
        expected = {first.mesh.me.incarnation: "here", second.mesh.me.incarnation: "conflict"}
        await town.until(
            lambda: {row.incarnation: row.state for row in other.mesh.nodes() if row.name == "cam"} == expected
        )
        await first.mesh.close()
        await town.until(lambda: any(isinstance(told, NameCleared) for told in second.told))
        await town.until(lambda: other.publishers() == [("cam", 2)])


@looped
async def test_nodes_that_listen_everywhere_learn_their_addresses_also_ipv6() -> None:
    async with Town() as town:
        first = await town.node("a", listen=("0.0.0.0:0", "[::1]:0"))
        six = await town.node("b", listen=("[::1]:0",), peers=(first.address,))
        four = await town.node("c", listen=("0.0.0.0:0",), seed=six)
        await town.until(lambda: all(len(node.others()) == 2 for node in town.nodes))
        four.mesh.announce(("127.0.0.1:5",))
        first.mesh.serve("hello", _echo)
        assert await four.mesh.request("a", "hello", b"x", PATIENCE_S) == b"x"
        record = first.mesh.node("c")
        assert record is not None
        assert record.data == ("127.0.0.1:5",)


@pytest.mark.parametrize("address", ["", "a b:1", "[::1", "host:port", "a:1:2:x", ":5", "h:70000", "[::1]:x", "[h]x"])
@looped
async def test_addresses_are_checked_when_given(address: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Mesh(TagTable("a", 1), on_changes=lambda changes: None, listen=(address,))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("h", "h", 9), ("h:1", "h", 1), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:5", "::1", 5), ("[::1]", "::1", 9),
        ("::1", "::1", 9), ("[fe80::1%eth0]:5", "fe80::1%eth0", 5),
    ],
)  # fmt: skip
def test_addresses(text: str, host: str, port: int) -> None:
    assert addresses.split(text, 9) == (host, port)
    assert addresses.split(addresses.join(host, port)) == (host, port)


# ------------------------------------------------------------------ asking


async def _echo(node: str, payload: bytes) -> bytes:
    return payload


@looped
async def test_requests_of_all_sizes_are_answered() -> None:
    async with Town() as town:
        a, b = await village(town, 2)
        b.mesh.serve("echo", _echo)
        a.mesh.serve("echo", _echo)
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
        b.mesh.serve("echo", _echo)
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
        b.mesh.serve("echo", _echo)
        peer = await RawPeer.greet(a.address)
        await town.until(lambda: "raw" in a.others())
        stuck = [asyncio.create_task(a.mesh.request("raw", "x", bytes(32 << 20), PATIENCE_S)) for _ in range(4)]
        assert await a.mesh.request("n1", "echo", b"hello", PATIENCE_S) == b"hello"
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        await peer.close()


# ------------------------------------------------------------------ bad company

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
        b.mesh.serve("echo", _echo)
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
        a.mesh.serve("wait", _echo)
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
        a.mesh.serve("echo", _echo)
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


# ------------------------------------------------------------------ scouting


def _multicast_works(group: str) -> bool:
    """Asked with sockets of our own, or a broken scouting would excuse itself."""
    everywhere = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        try:
            ear.bind(("", 0))
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, everywhere)
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            ear.settimeout(2)
            ear.sendto(b"anybody?", (group, ear.getsockname()[1]))
            return ear.recv(64) == b"anybody?"
        except OSError:
            return False


@looped
async def test_nodes_find_each_other_by_multicast_where_there_is_any() -> None:
    async with Town() as town:
        settings = ScoutSettings(groups=("239.255.74.17",), port=17418, interface="lo")
        a = await town.node("a", scouting=settings)
        b = await town.node("b", scouting=settings)
        heard = [node.mesh.status().scouting[0] for node in (a, b)]
        if not _multicast_works(settings.groups[0]):
            pytest.skip("multicast on the loopback interface does not work on this machine")
        await town.until(lambda: a.others() == {"b"} and b.others() == {"a"})
        while any(status.works is None for status in heard):
            await asyncio.sleep(0.05)
        assert all(status.works for status in heard)


@looped
async def test_where_multicast_is_impossible_the_reason_is_kept() -> None:
    async with Town() as town:
        settings = ScoutSettings(groups=("239.255.74.17", "ff02::7417"), port=17418, interface="nothing0")
        a = await town.node("a", scouting=settings)
        (status,) = a.mesh.status().scouting
        assert status.works is False
        assert "nothing0" in status.error


@looped
async def test_what_is_heard_is_counted_and_checked(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[str, int]] = []
    scouting = Scouting(
        ScoutSettings(groups=("239.255.74.17",), interface="nothing0"), mesh="lab", incarnation=5,
        listening=[("127.0.0.1", 4)], on_heard=lambda *call: heard.append(call),
    )  # fmt: skip
    await scouting.start()
    (status,) = scouting.status()
    for scout in (
        Scout(incarnation=5, port=4, mesh="lab"), Scout(incarnation=6, port=7, mesh="lab"),
        Scout(incarnation=6, port=7, mesh="lab", host="10.0.0.9"), Scout(incarnation=6, port=7, mesh="other"),
        Scout(incarnation=6, port=7, mesh="lab", version=1), Scout(incarnation=6, port=7, mesh="lab", version=1),
    ):  # fmt: skip
        scouting._ears[0].datagram_received(encode_scout(scout), ("10.0.0.1", 99))
    scouting._ears[0].datagram_received(b"noise", ("10.0.0.1", 99))
    scouting.close()
    assert heard == [("10.0.0.1:7", 6), ("10.0.0.9:7", 6)]
    assert (status.heard_self, status.heard_others, status.bad, status.foreign) == (1, 2, 3, 1)
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "a node at 10.0.0.1 speaks peering protocol 1 and this one 2"
    ]


@looped
async def test_rows_that_were_there_before_the_start_are_told_and_tags_get_a_backup() -> None:
    async with Town() as town:
        a = await town.node("a")
        b = Node(town, "b", ("127.0.0.2:0",), (a.address,))
        town.nodes.append(b)
        b.publish(1)
        b.mesh.changed(b.table.open_tag("lab/temp", {})[1])
        await b.mesh.start()
        await town.until(lambda: a.publishers() == [("b", 1)] and [row.backup for row in a.table.tags()] == ["a"])


@looped
async def test_one_action_that_fails_costs_the_others_nothing() -> None:
    async with Town() as town:
        a = await town.node("a")

        def fail(changes: Any) -> None:
            raise KeyError("a mistake of ours")

        b = Node(town, "b", ("127.0.0.2:0",), (a.address,))
        b.mesh._on_changes = fail
        town.nodes.append(b)
        await b.mesh.start()
        a.publish(1)
        await town.until(lambda: bool(b.mesh.mistakes) and any(isinstance(what, list) for what in b.told))
        assert b.others() == {"a"}, "the link by which it came is as good as before"
        assert b.publishers() == [("a", 1)]

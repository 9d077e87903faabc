"""Real meshes for tests, of several nodes in one process, and a peer that says what it likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from ringcast.control.peering import (
    MAX_FRAME_BYTES,
    FrameReader,
    Hello,
    NodeRecord,
    PeerMessage,
    decode_untrusted,
    encode_frame,
)
from ringcast.daemon.mesh.shell import Mesh
from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.table import TagTable
from ringcast.model import addresses
from ringcast.model.identity import PublisherInfo
from ringcast.testing.waiting import PATIENCE_S


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


async def echo(node: str, payload: bytes) -> bytes:
    return payload

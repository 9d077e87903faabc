"""A page of another site, a name that was made to point here, frames that make no sense, and more of everything than is
allowed: each gets a clear answer, and a page that behaves notices nothing."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from processes import Daemon

import ringcast
from ringcast.gateway import Gateway, Limits
from ringcast.testing.waiting import PATIENCE_S

Visit = Callable[[Gateway, ClientSession], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Any:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        yield made


@pytest.fixture
def visit(session: ringcast.Session) -> Callable[..., None]:
    """Run a visit at a gateway with these limits."""

    def run(visitor: Visit, **options: Any) -> None:
        async def main() -> None:
            async with asyncio.timeout(PATIENCE_S), Gateway(session, port=0, **options) as gateway:
                async with ClientSession() as client:
                    await visitor(gateway, client)

        asyncio.run(main())

    return run


class Visitor:
    """A client that speaks the protocol by hand."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket
        self.token = ""
        self._ids = 0

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The answer; what is said in between is left out."""
        self._ids += 1
        await self.socket.send_str(json.dumps({"op": op, "id": self._ids, **fields}))
        return await self.hear(lambda said: said.get("id") == self._ids)

    async def hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = await self.socket.receive()
            assert message.type in (WSMsgType.TEXT, WSMsgType.BINARY), message
            if message.type is WSMsgType.TEXT and wanted(said := json.loads(message.data)):
                return said

    async def end(self) -> tuple[int | None, str]:
        """How the gateway ended the connection."""
        while True:
            message = await self.socket.receive()
            if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED):
                return message.data, message.extra or ""


@asynccontextmanager
async def entered(gateway: Gateway, client: ClientSession, **headers: str) -> AsyncIterator[Visitor]:
    async with client.ws_connect(f"{gateway.address}/ringcast/socket", headers=headers) as socket:
        visitor = Visitor(socket)
        said = await visitor.ask("hello", version=1)
        assert (said["op"], said["resumed"]) == ("welcome", False)
        visitor.token = said["token"]
        yield visitor


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
        {"Host": "evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "websocket"},
    ],
)  # fmt: skip
def test_a_page_of_another_site(visit: Any, headers: dict[str, str]) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        with pytest.raises(WSServerHandshakeError) as caught:
            await client.ws_connect(f"{gateway.address}/ringcast/socket", headers=headers)
        assert caught.value.status == 403
        async with client.get(f"{gateway.address}/ringcast/ringcast.js", headers=headers) as answer:
            assert answer.status == 403
            assert "gateway" in await answer.text()
        assert (gateway.refused, gateway.pages) == (2, 0)

    visit(visitor)


def test_a_listed_site_comes_in(visit: Any) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client, Origin="https://dash.example.org"):
            assert gateway.pages == 1
        async with client.get(
            f"{gateway.address}/ringcast/ringcast.js", headers={"Origin": "https://dash.example.org"}
        ) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == "https://dash.example.org"

    visit(visitor, origins=["https://dash.example.org"])


def test_frames_that_make_no_sense(visit: Any, session: ringcast.Session) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client) as bad, entered(gateway, client) as good:
            assert (await good.ask("subscribe", subscription=1, pattern="odd/one"))["op"] == "done"
            for frame in (b"", b"\x03", b"\xff" * 50, struct.pack("<BBHII", 5, 1, 0, 1, 1)):
                await bad.socket.send_bytes(frame)
                said = await bad.hear(lambda said: said["op"] == "error")
                assert (said["id"], said["error"]) == (None, "BadMessage")
            for text, id in (("{", None), ("[1]", None), ('{"op":"what","id":7}', 7)):
                await bad.socket.send_str(text)
                assert (await bad.hear(lambda said: said["op"] == "error"))["id"] == id
            # Of a publisher that is not open, and more taken than was sent.
            await bad.socket.send_bytes(struct.pack("<BBHIIIq", 3, 0, 0, 9, 1, 0, 0) + b"x")
            assert "not open" in (await bad.hear(lambda said: said["op"] == "error"))["message"]
            assert (await bad.ask("subscribe", subscription=1, pattern="odd/one"))["op"] == "done"
            await bad.socket.send_bytes(struct.pack("<BBHII", 5, 0, 0, 1, 1000))
            assert "taken" in (await bad.hear(lambda said: said["op"] == "error"))["message"]
            assert (await bad.ask("hello", version=1))["error"] == "BadMessage"
            assert (await bad.ask("pull", tag="odd/one", what="at", arguments=["x"]))["error"] == "ValueError"
            assert (await bad.ask("list", what="tags"))["op"] == "done"
            while not bad.socket.closed:
                await bad.socket.send_bytes(b"\0")
                if (message := await bad.socket.receive()).type is WSMsgType.CLOSE:
                    assert (message.data, "malformed" in (message.extra or "")) == (1008, True)
            assert (await good.ask("list", what="nodes"))["op"] == "done"

    visit(visitor)


def test_bytes_that_are_not_what_the_tag_agreed_on(visit: Any, session: ringcast.Session) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        session.tag("odd/json", codec="json")
        async with entered(gateway, client) as page:
            assert (await page.ask("publish", publisher=1, tag="odd/json"))["op"] == "done"
            await page.socket.send_bytes(struct.pack("<BBHIIIq", 3, 0, 0, 1, 1, 0, 0) + b"{no json")
            said = await page.hear(lambda said: said["op"] == "refused")
            assert (said["publisher"], said["number"], said["error"]) == (1, 1, "DecodeError")
        with pytest.raises(ringcast.Empty):
            session.tag("odd/json").history().latest()

    visit(visitor)


def test_a_message_longer_than_allowed(visit: Any) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client) as page:
            await page.socket.send_bytes(bytes(5000))
            assert (await page.end())[0] == 1009

    visit(visitor, limits=Limits(message_bytes=4096))


def test_more_pages_and_streams_than_allowed(visit: Any) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client) as page:
            async with client.ws_connect(f"{gateway.address}/ringcast/socket") as second:
                with pytest.raises(WSServerHandshakeError) as caught:  # two that have not said who they are
                    await client.ws_connect(f"{gateway.address}/ringcast/socket")
                assert caught.value.status == 503
                await second.send_str('{"op":"hello","id":1,"version":1}')
                assert await Visitor(second).end() == (1013, "this gateway serves at most 1 pages")
            for number in (1, 2):
                assert (await page.ask("subscribe", subscription=number, pattern="odd/one"))["op"] == "done"
            said = await page.ask("subscribe", subscription=3, pattern="odd/one")
            assert said["error"] == "ResourceLimit"

    visit(visitor, limits=Limits(pages=1, streams=2))


def test_more_messages_than_allowed_are_read_slowly(visit: Any, session: ringcast.Session) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client) as page:
            assert (await page.ask("publish", publisher=1, tag="odd/many"))["op"] == "done"
            for number in range(1, 121):
                await page.socket.send_bytes(struct.pack("<BBHIIIq", 3, 0, 0, 1, number, 0, 0))
            assert (await page.hear(lambda said: said.get("held") is True))["op"] == "beat"
            history = session.tag("odd/many").history()
            while history.bounds()[1] < 119:  # none is lost for it
                await asyncio.sleep(0.05)

    visit(visitor, limits=Limits(messages_per_s=100.0))


def test_somebody_who_never_says_hello_or_speaks_another_version(visit: Any) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        for first in ('{"op":"list","id":1}', '{"op":"hello","id":1,"version":99}', "x"):
            async with client.ws_connect(f"{gateway.address}/ringcast/socket") as socket:
                await socket.send_str(first)
                assert (await Visitor(socket).end())[0] == 1008
        assert gateway.pages == 0

    visit(visitor)


def test_somebody_who_counts_otherwise_begins_anew(visit: Any) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with entered(gateway, client) as page:
            await page.ask("subscribe", subscription=1, pattern="odd/one")
            token = page.token
            async with client.ws_connect(f"{gateway.address}/ringcast/socket") as socket:
                again = Visitor(socket)
                said = await again.ask("hello", version=1, token=token, received={"1": 77})
                assert (said["resumed"], said["token"] != token) == (False, True)
                assert (await again.ask("list", what="nodes"))["op"] == "done"
            assert gateway.pages <= 1

    visit(visitor)


def test_a_page_that_leaves_without_a_word(visit: Any, session: ringcast.Session) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with client.ws_connect(f"{gateway.address}/ringcast/socket", autoclose=False) as socket:
            page = Visitor(socket)
            await page.ask("hello", version=1)
            assert (await page.ask("subscribe", subscription=1, pattern="odd/left"))["op"] == "done"
            response = socket._response
            assert response.connection is not None
            assert response.connection.transport is not None
            response.connection.transport.abort()
            while gateway.pages or session.tags("odd/left")[0].subscribers:
                await asyncio.sleep(0.02)

    visit(visitor, limits=Limits(linger_s=0.2))

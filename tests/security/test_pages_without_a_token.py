"""A gateway whose pages need tokens: without one nothing is readable, with one what its rules say, and the cookie that
holds it is of no use to another site."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from processes import Daemon

import ringcast
from ringcast.daemon.access.tokens import fingerprint, read
from ringcast.gateway import Gateway
from ringcast.testing.waiting import PATIENCE_S

Visit = Callable[[Gateway, ClientSession], Coroutine[Any, Any, None]]
TOKEN, OTHER = "the token of a dashboard", "another one"
RULES = f"""
[tokens]
dashboard = "{fingerprint(TOKEN)}"
other = "{fingerprint(OTHER)}"
[[rules]]
token = "dashboard"
may = ["subscribe", "pull"]
tags = ["open/**"]
"""


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Any:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        made.tag("open/a").publisher().send(b"shown")
        made.tag("closed/a").publisher().send(b"secret")
        yield made


@pytest.fixture
def visit(session: ringcast.Session, tmp_path: Path) -> Callable[[Visit], None]:
    (tmp_path / "pages.toml").write_text(RULES)

    def run(visitor: Visit) -> None:
        async def main() -> None:
            permits = read(tmp_path / "pages.toml")
            async with asyncio.timeout(PATIENCE_S), Gateway(session, port=0, permits=permits) as gateway:
                async with ClientSession() as client:
                    await visitor(gateway, client)

        asyncio.run(main())

    return run


async def said(socket: Any, **request: Any) -> dict[str, Any]:
    await socket.send_str(json.dumps(request))
    while True:
        message = await socket.receive()
        assert message.type in (WSMsgType.TEXT, WSMsgType.BINARY), message
        if message.type is WSMsgType.TEXT and (answer := json.loads(message.data)).get("id") == request["id"]:
            return dict(answer)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_no_token_and_a_wrong_one_get_nothing(visit: Callable[[Visit], None]) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        for headers in ({}, bearer("wrong"), bearer(fingerprint(TOKEN)), {"Cookie": "ringcast_token=wrong"}):
            with pytest.raises(WSServerHandshakeError) as caught:
                await client.ws_connect(f"{gateway.address}/ringcast/socket", headers=headers)
            assert caught.value.status == 401
        async with client.post(f"{gateway.address}/ringcast/enter", data={"token": "wrong"}) as answer:
            assert answer.status == 401
            assert not answer.cookies
        assert gateway.refused == 5

    visit(visitor)


def test_a_token_reads_what_its_rules_say_and_no_more(visit: Callable[[Visit], None]) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        async with client.ws_connect(f"{gateway.address}/ringcast/socket", headers=bearer(TOKEN)) as socket:
            await said(socket, op="hello", id=1, version=1)
            listed = await said(socket, op="list", id=2)
            assert [row["name"] for row in listed["rows"]] == ["open/a"]
            refused = [
                await said(socket, op="tag", id=3, name="closed/a"),
                await said(socket, op="subscribe", id=4, subscription=1, pattern="closed/a"),
                await said(socket, op="subscribe", id=5, subscription=1, pattern="**"),
                await said(socket, op="pull", id=6, tag="closed/a", what="latest"),
                await said(socket, op="publish", id=7, publisher=1, tag="open/a"),
                await said(socket, op="list", id=8, what="channels"),
                await said(socket, op="list", id=9, what="publishers", pattern="closed/a"),
                await said(socket, op="watch", id=10, watch=1),
            ]
            assert [answer["op"] for answer in refused] == ["error"] * len(refused)
            assert {answer["error"] for answer in refused} == {"NotAllowed"}
            assert (await said(socket, op="pull", id=11, tag="open/a", what="latest"))["op"] == "pulled"
            made = await said(socket, op="tag", id=12, name="open/new")
            assert made["error"] == "UnknownTag"  # it has no right to make one

    visit(visitor)


def test_the_cookie_is_for_this_site_alone(visit: Callable[[Visit], None]) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        enter = f"{gateway.address}/ringcast/enter"
        async with client.post(enter, data={"token": TOKEN}, headers={"Origin": "https://evil.example"}) as answer:
            assert answer.status == 403
        async with client.post(enter, data={"token": TOKEN}, allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        held = {"Cookie": cookie.partition(";")[0]}
        async with client.ws_connect(f"{gateway.address}/ringcast/socket", headers=held) as socket:
            assert (await said(socket, op="hello", id=1, version=1))["op"] == "welcome"
        with pytest.raises(WSServerHandshakeError) as caught:
            await client.ws_connect(
                f"{gateway.address}/ringcast/socket", headers={**held, "Origin": "https://evil.example"}
            )
        assert caught.value.status == 403

    visit(visitor)


def test_a_page_is_not_taken_over_with_another_token(visit: Callable[[Visit], None]) -> None:
    async def visitor(gateway: Gateway, client: ClientSession) -> None:
        url = f"{gateway.address}/ringcast/socket"
        async with client.ws_connect(url, headers=bearer(TOKEN)) as socket:
            page = (await said(socket, op="hello", id=1, version=1))["token"]
            async with client.ws_connect(url, headers=bearer(OTHER)) as thief:
                welcome = await said(thief, op="hello", id=1, version=1, token=page)
                assert not welcome["resumed"]
                assert (await said(thief, op="pull", id=2, tag="open/a", what="latest"))["error"] == "NotAllowed"

    visit(visitor)

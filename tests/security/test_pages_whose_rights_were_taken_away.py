"""The rules of a gateway change while pages hold something: what they may not have any more ends at once, a token that
is gone ends its pages, and what was refused is in the audit. A gateway that others can reach is not open by accident.
"""

from __future__ import annotations

import asyncio
import json
import signal
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from processes import Daemon

import ringcast
from ringcast.conference import serving
from ringcast.daemon.access.tokens import Permit, fingerprint, read
from ringcast.gateway import Gateway
from ringcast.testing.waiting import PATIENCE_S

TOKEN, OTHER = "the token of a dashboard", "another one"
PUBLISH = struct.Struct("<BBxxIIxxxxq")


def rules(**tokens: tuple[str, str]) -> str:
    """{name: (token, tags that it may use)}"""
    said = "[tokens]\n" + "".join(f'{name} = "{fingerprint(token)}"\n' for name, (token, _) in tokens.items())
    for name, (_, tags) in tokens.items():
        said += f'[[rules]]\ntoken = "{name}"\nmay = ["subscribe", "pull", "publish"]\ntags = ["{tags}"]\n'
    return said


@pytest.fixture(scope="module")
def session(module_daemon: Daemon) -> Any:
    with ringcast.connect(socket=module_daemon.socket_path, start=False) as made:
        for name in ("kept/a", "lost/a"):
            made.tag(name)
        yield made


class Page:
    """A client that speaks the protocol by hand."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self._ids = 0

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self._ids += 1
        await self.socket.send_str(json.dumps({"op": op, "id": self._ids, **fields}))
        return await self.hear(lambda said: said.get("id") == self._ids)

    async def hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = await self.socket.receive()
            assert message.type in (WSMsgType.TEXT, WSMsgType.BINARY), message
            if message.type is WSMsgType.TEXT and wanted(said := json.loads(message.data)):
                return dict(said)

    async def message(self) -> tuple[int, bytes]:
        """The next one: of which subscription, and what."""
        while True:
            message = await self.socket.receive()
            assert message.type in (WSMsgType.TEXT, WSMsgType.BINARY), message
            if message.type is WSMsgType.BINARY and message.data[0] == 1:
                return struct.unpack_from("<I", message.data, 4)[0], message.data[48:]

    async def publish(self, publisher: int, number: int, data: bytes) -> None:
        await self.socket.send_bytes(PUBLISH.pack(3, 0, publisher, number, 0) + data)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def served(session: ringcast.Session, visit: Callable[[Gateway, str], Coroutine[Any, Any, None]], **how: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), Gateway(session, port=0, **how) as gateway:
            await visit(gateway, f"{gateway.address}/ringcast/socket")

    asyncio.run(main())


def test_what_a_page_held_and_may_not_have_any_more_ends(session: ringcast.Session, tmp_path: Path) -> None:
    (tmp_path / "before").write_text(rules(dashboard=(TOKEN, "**")))
    (tmp_path / "after").write_text(rules(dashboard=(TOKEN, "kept/**")))

    async def visit(gateway: Gateway, url: str) -> None:
        async with ClientSession() as client, client.ws_connect(url, headers=bearer(TOKEN)) as socket:
            page = Page(socket)
            await page.ask("hello", version=1)
            for number, tag in enumerate(("kept/a", "lost/a")):
                assert (await page.ask("subscribe", subscription=number, pattern=tag))["op"] == "done"
                assert (await page.ask("publish", publisher=number, tag=tag))["op"] == "done"
            assert (await page.ask("watch", watch=1, pattern="lost/**"))["op"] == "done"
            lost, kept = session.tag("lost/a").publisher(), session.tag("kept/a").publisher()
            lost.send(b"before")
            assert await page.message() == (1, b"before")
            held = session.tag("lost/a").subscribe()

            await gateway.take_over(read(tmp_path / "after"))
            failed = await page.hear(lambda said: said["op"] == "failed")
            assert (failed["subscription"], failed["ended"], failed["error"]) == (1, True, "NotAllowed")
            lost.send(b"secret")
            kept.send(b"after")
            assert await page.message() == (0, b"after"), "what it may have goes on, and nothing else came before"
            await page.publish(1, 1, b"injected")
            assert (await page.hear(lambda said: said["op"] == "refused"))["error"] == "NotAllowed"
            await page.publish(0, 1, b"allowed")
            assert bytes((await asyncio.to_thread(held.recv, PATIENCE_S)).data) == b"secret"
            assert await page.message() == (0, b"allowed")
            for op, fields in (
                ("subscribe", {"subscription": 7, "pattern": "lost/a"}), ("publish", {"publisher": 1, "tag": "lost/a"}),
                ("pull", {"tag": "lost/a", "what": "latest"}),
            ):  # fmt: skip
                assert (await page.ask(op, **fields))["error"] == "NotAllowed"

            await gateway.take_over(read(tmp_path / "before"))
            assert (await page.ask("publish", publisher=1, tag="lost/a"))["op"] == "done"
            await page.publish(1, 1, b"again")
            assert bytes((await asyncio.to_thread(held.recv, PATIENCE_S)).data) == b"again"
            for thing in (lost, kept, held):
                thing.close()

    served(session, visit, permits=read(tmp_path / "before"))


def test_a_token_that_is_gone_ends_its_pages(session: ringcast.Session, tmp_path: Path) -> None:
    (tmp_path / "before").write_text(rules(dashboard=(TOKEN, "**"), other=(OTHER, "**")))
    (tmp_path / "after").write_text(rules(dashboard=("a new token of the same name", "**"), other=(OTHER, "**")))

    async def visit(gateway: Gateway, url: str) -> None:
        async with (
            ClientSession() as client,
            client.ws_connect(url, headers=bearer(TOKEN)) as socket,
            client.ws_connect(url, headers=bearer(TOKEN)) as slow,
            client.ws_connect(url, headers=bearer(OTHER)) as stays,
        ):
            page, late, staying = Page(socket), Page(slow), Page(stays)
            await page.ask("hello", version=1)
            await staying.ask("hello", version=1)
            await gateway.take_over(read(tmp_path / "after"))
            assert gateway.pages == 1
            while (message := await socket.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
                pass
            assert message.type is WSMsgType.CLOSE
            assert "not good any more" in (message.extra or "")
            await late.socket.send_str(json.dumps({"op": "hello", "id": 1, "version": 1}))
            assert (await late.socket.receive()).type is WSMsgType.CLOSE, "it showed its token before, and is too late"
            assert (await staying.ask("list"))["op"] == "done"
            with pytest.raises(WSServerHandshakeError):
                await client.ws_connect(url, headers=bearer(TOKEN))

    served(session, visit, permits=read(tmp_path / "before"))


def test_what_pages_were_refused_is_in_the_audit(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "pages.toml").write_text(rules(dashboard=(TOKEN, "kept/**")))

    async def visit(gateway: Gateway, url: str) -> None:
        async with ClientSession() as client:
            for headers in ({}, bearer("wrong"), bearer("wrong"), {"Origin": "https://evil.example"}):
                with pytest.raises(WSServerHandshakeError):
                    await client.ws_connect(url, headers=headers)
            async with client.ws_connect(url, headers=bearer(TOKEN)) as socket:
                page = Page(socket)
                await page.ask("hello", version=1)
                assert (await page.ask("pull", tag="lost/a", what="latest"))["error"] == "NotAllowed"
        assert gateway.refused == 5

    found: Counter[tuple[str, str]] = Counter()
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        audit: Any = session.tag(f"@ringcast/{session.status().node}/audit")
        with audit.subscribe(start="earliest") as reading:
            served(session, visit, permits=read(tmp_path / "pages.toml"))
            while found.total() < 5:
                row = reading.recv(PATIENCE_S).data
                assert row["kind"] == "web"
                assert TOKEN not in str(row)
                assert "says the program" in row["who"], "whose word it is"
                found[row["action"], row["reason"].partition(" of ")[0]] += 1 + row["left_out"]
    assert found == {
        ("enter", "no token"): 1, ("enter", "a wrong token"): 2, ("enter", "pages"): 1, ("pull", "no rule allows it"): 1
    }  # fmt: skip


def test_a_gateway_for_others_is_not_open_by_accident(session: ringcast.Session) -> None:
    with pytest.raises(ValueError, match=r"whoever reaches 0\.0\.0\.0 could do what this program may"):
        Gateway(session, host="0.0.0.0", port=0)
    Gateway(session, host="0.0.0.0", port=0, anybody=Permit())
    Gateway(session, host="localhost", port=0)


def test_a_conference_shows_its_own_tags_and_no_others(session: ringcast.Session) -> None:
    described = serving.describe("main", form=1, scheme="speakers", threshold=1.0)

    async def main() -> None:
        gateway = serving.gateway(session, described, host="0.0.0.0", port=0)
        async with asyncio.timeout(PATIENCE_S), gateway, ClientSession() as client:
            async with client.ws_connect(f"{gateway.address}/ringcast/socket") as socket:
                page = Page(socket)
                await page.ask("hello", version=1)
                assert (await page.ask("tag", name="conference/main/chat"))["op"] == "done"
                assert (await page.ask("list", what="channels"))["rows"] == []
                assert [row["name"] for row in (await page.ask("list"))["rows"]] == ["conference/main/chat"]
                for op, fields in (
                    ("pull", {"tag": "kept/a", "what": "latest"}), ("publish", {"publisher": 1, "tag": "kept/a"}),
                    ("subscribe", {"subscription": 1, "pattern": "**"}), ("tag", {"name": "conference/other/chat"}),
                ):  # fmt: skip
                    assert (await page.ask(op, **fields))["error"] == "NotAllowed"

    asyncio.run(main())


def command(socket_path: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "ringcast", "gateway", "--socket", socket_path, "--no-start", *words]


def test_the_command_refuses_to_serve_others_without_rules(module_daemon: Daemon) -> None:
    said = subprocess.run(
        command(module_daemon.socket_path, "--listen", "0.0.0.0:0"), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert said.returncode == 2
    assert "--rules" in said.stderr
    assert "--open" in said.stderr
    assert "Traceback" not in said.stderr


def test_the_command_reads_its_rules_again(module_daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "pages.toml"
    file.write_text(rules(dashboard=(TOKEN, "**")))
    words = command(module_daemon.socket_path, "--listen", "127.0.0.1:0", "--rules", str(file), "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = json.loads(process.stdout.readline())["address"] + "/ringcast/socket"
            assert asyncio.run(status(url, TOKEN)) == 101
            for mistake in (lambda: file.write_text("this is no TOML"), file.unlink):
                mistake()
                process.send_signal(signal.SIGHUP)
                assert "the old ones stay in force" in process.stderr.readline()
                assert asyncio.run(status(url, TOKEN)) == 101
            file.write_text(rules(other=(OTHER, "**")))
            process.send_signal(signal.SIGHUP)
            assert "read again" in process.stderr.readline()
            assert asyncio.run(status(url, TOKEN)) == 401
            assert asyncio.run(status(url, OTHER)) == 101
        finally:
            process.terminate()


async def status(url: str, token: str) -> int:
    async with ClientSession() as client:
        try:
            async with client.ws_connect(url, headers=bearer(token)):
                return 101
        except WSServerHandshakeError as exc:
            return exc.status

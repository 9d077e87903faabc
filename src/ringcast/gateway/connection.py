"""One WebSocket of a page: reads what it asks, writes what is said to it and what its streams have for it.

Writing never runs ahead of the page: a message leaves the backlog when its stream's window and the network take it.
Reading never runs ahead of the limits: a page that sends more waits in its own browser. Invariant: whatever a page
sends, it gets an answer or is disconnected with a reason, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from aiohttp import WSCloseCode, WSMsgType, web

from ringcast.errors import BadMessage
from ringcast.gateway import answers, frames, requests
from ringcast.gateway.backlog import Entry, Stream
from ringcast.gateway.gate import Gate
from ringcast.gateway.limits import Allowance, Limits
from ringcast.gateway.outbox import is_text
from ringcast.gateway.page import Page

logger = logging.getLogger("ringcast.gateway")

HELLO_S = 10.0
_MALFORMED = 100
"""So many frames that make no sense, and the connection ends: it is not a page of ours."""
_LOOK_S = 0.005
_TURN = 16


class Ended(Exception):
    """The connection is over; its text is the reason for the page."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Connection:
    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport, limits: Limits) -> None:
        self._socket = socket
        self._transport = transport
        self._gate = Gate(transport)
        self._limits = limits
        self._messages = Allowance(limits.messages_per_s)
        self._bytes = Allowance(limits.bytes_per_s)
        self._malformed = 0
        self._heard_s = time.monotonic()
        self._held = False
        self._is_cut = False
        self._told_lost: dict[int, int] = {}
        self.said_goodbye = False

    async def hello(self) -> requests.Hello:
        """The first thing that a page says. Raises Ended."""
        try:
            async with asyncio.timeout(HELLO_S):
                message = await self._socket.receive()
        except TimeoutError:
            raise Ended(WSCloseCode.POLICY_VIOLATION, f"no hello within {HELLO_S:g} s") from None
        if message.type is not WSMsgType.TEXT:
            raise Ended(WSCloseCode.POLICY_VIOLATION, "say hello first: docs/gateway.md")
        try:
            request = requests.parse_untrusted(message.data)
        except requests.Misasked as exc:
            raise Ended(WSCloseCode.POLICY_VIOLATION, exc.reason) from None
        if not isinstance(request, requests.Hello):
            raise Ended(WSCloseCode.POLICY_VIOLATION, "say hello first: docs/gateway.md")
        if request.version != requests.VERSION:
            raise Ended(
                WSCloseCode.POLICY_VIOLATION,
                f"this gateway speaks version {requests.VERSION}, the page {request.version}: reload the page",
            )
        return request

    async def run(self, page: Page) -> None:
        """Until the connection ends. Raises Ended."""
        tasks = [asyncio.create_task(self._read(page)), asyncio.create_task(self._write(page)),
                 asyncio.create_task(self._beat(page))]  # fmt: skip
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (ConnectionError, RuntimeError):  # it broke; aiohttp says either
            return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, code: int, reason: str) -> None:
        """The reason is for people; a close frame has room for 123 bytes."""
        with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._socket.close(code=code, message=reason.encode()[:120])
        self.cut()

    def cut(self) -> None:
        """End it without a word, as when a newer connection of the same page is there: from now on it takes nothing
        of the page's, and what it still hears does not count."""
        self._is_cut = True
        self._transport.abort()

    # ---------------------------------------------------------------- reading

    async def _read(self, page: Page) -> None:
        while True:
            message = await self._socket.receive()
            if self._is_cut:
                return
            now_s = self._heard_s = time.monotonic()
            if message.type is WSMsgType.CLOSE:
                self.said_goodbye = message.data in (WSCloseCode.OK, WSCloseCode.GOING_AWAY)
                return
            if message.type in (WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
                return
            await self._take(page, message.type, message.data, now_s)
            # Whoever asks and does not read the answers is not read either.
            await page.outbox.wait_for_room(self._limits.backlog_bytes)
            pause_s = max(self._messages.take(1, now_s), self._bytes.take(len(message.data or ""), now_s))
            if pause_s > 0:
                self._held = True
                await asyncio.sleep(pause_s)

    async def _take(self, page: Page, kind: WSMsgType, data: str | bytes, now_s: float) -> None:
        id: int | None = None
        try:
            if kind is WSMsgType.BINARY:
                frame = frames.parse_untrusted(bytes(data) if not isinstance(data, str) else b"")
                if isinstance(frame, frames.Taken):
                    page.taken(frame, now_s)
                else:
                    await page.publish(frame)
                return
            request = requests.parse_untrusted(data)
            if not isinstance(request, requests.Beat):
                await page.ask(request)
        except BadMessage as exc:
            id = exc.id if isinstance(exc, requests.Misasked) else None
            page.outbox.say(answers.error(id, exc))
            self._malformed += 1
            if self._malformed >= _MALFORMED:
                raise Ended(WSCloseCode.POLICY_VIOLATION, f"{self._malformed} malformed frames") from None

    # ---------------------------------------------------------------- writing

    async def _write(self, page: Page) -> None:
        turn = 0
        while True:
            turn += 1
            if turn % _TURN == 0:
                await asyncio.sleep(0)
            if self._is_cut:
                return
            if (said := page.outbox.take()) is not None:
                await (self._socket.send_str(said.decode()) if is_text(said) else self._socket.send_bytes(said))
                continue
            if not self._gate.is_open:
                await asyncio.sleep(_LOOK_S)
                continue
            now_s = time.monotonic()
            found = page.backlog.take(now_s)
            if found is None:
                await page.outbox.wait(self._limits.beat_s)
                continue
            stream, entry = found
            frame = _message(stream, entry)
            stream.note_sent(entry, now_s)
            await self._socket.send_bytes(frame)

    async def _beat(self, page: Page) -> None:
        while True:
            await asyncio.sleep(self._limits.beat_s)
            if self._is_cut:
                return
            if time.monotonic() - self._heard_s > self._limits.silent_s:
                raise Ended(WSCloseCode.GOING_AWAY, f"nothing was heard for {self._limits.silent_s:g} s")
            lost = page.lost()
            news = {stream: total for stream, total in lost.items() if total != self._told_lost.get(stream, 0)}
            self._told_lost = lost
            page.outbox.say(answers.beat(news, self._held))
            self._held = False


def _message(stream: Stream, entry: Entry) -> bytes:
    return frames.MESSAGE_HEADER.pack(
        frames.MESSAGE, frames.DISCARDABLE if entry.discardable else 0, 0, stream.number, entry.seq, entry.event_ns,
        entry.sent_ns, entry.received_ns, min(entry.lost, frames.WRAP - 1), entry.source,
    ) + entry.payload  # fmt: skip

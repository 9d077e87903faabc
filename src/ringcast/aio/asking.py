"""Asking and serving for asyncio: answers and questions come through the loop, and no thread waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from typing import Any, Generic

from ringcast.aio.closing import AsyncClosing
from ringcast.aio.subscriber import watched
from ringcast.aio.threads import Threads
from ringcast.asking import DEPTH, HEADER, MOST_CALLS, Asker, asking_name
from ringcast.client.attachment import Attachment
from ringcast.errors import ClosedError, ForkedError, ResourceLimit, RingcastError, ServerGone, WouldBlock
from ringcast.message import Message, T
from ringcast.serving import Answers, check_alone
from ringcast.subscriber import Subscriber
from ringcast.tag import Tag

MOST_AT_ONCE = 256
"""Questions that one server works at; more wait in their rings."""


class AsyncAsker(Generic[T]):
    """Made by the first `await tag.ask()`. One task takes answers in while there are calls."""

    def __init__(self, asker: Asker[T], threads: Threads) -> None:
        self._asker = asker
        self._threads = threads
        self._calls: dict[int, tuple[asyncio.Future[bytes], str]] = {}
        self._receiving: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()

        def on_gone() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._end_calls_of_gone)

        asker.on_gone = on_gone

    async def ask(self, data: T, timeout: float | None) -> Any:
        payload = self._asker.encoded(data)
        server = self._asker.server or await self._threads.run(self._asker.await_server, timeout)
        if len(self._calls) >= MOST_CALLS:
            said = f"{MOST_CALLS} questions to the server of {self._asker.name!r} are under way"
            raise ResourceLimit(said, "ask again when some are answered")
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        number = self._asker.publisher.send(payload)
        self._calls[number] = (future, server)
        if self._receiving is None:
            self._receiving = asyncio.create_task(self._receive())
        try:
            async with asyncio.timeout(timeout):
                answer = await future
        except TimeoutError:
            raise TimeoutError(f"no answer from the server of {self._asker.name!r} within {timeout:g} s") from None
        finally:
            self._calls.pop(number, None)
        return self._asker.decoded(answer)

    async def _receive(self) -> None:
        try:
            while self._calls:
                try:
                    self._settle(await self._asker.answers.recv_async(1.0))
                except TimeoutError:
                    continue  # look whether anybody still waits
        except RingcastError as exc:
            for future, _ in self._calls.values():
                if not future.done():
                    future.set_exception(exc)
        finally:
            self._receiving = None

    def _end_calls_of_gone(self) -> None:
        with contextlib.suppress(WouldBlock, RingcastError):
            while True:  # the server may have answered and then left
                self._settle(self._asker.answers.recv_nowait())
        gone = self._asker.take_gone()
        for future, server in self._calls.values():
            if server in gone and not future.done():
                future.set_exception(ServerGone(self._asker.name, server))

    def _settle(self, message: Message[bytes]) -> None:
        if len(message.data) < HEADER.size:
            return
        future, _ = self._calls.get(HEADER.unpack_from(message.data)[0], (None, ""))
        if future is not None and not future.done():
            future.set_result(message.data)


class AsyncServer(AsyncClosing[Subscriber[bytes]], Generic[T]):
    """Made by `await tag.serve(function)`. `delivered` counts questions that were answered, `failed` those answered
    with an error."""

    def __init__(
        self, questions: Subscriber[bytes], answers: Answers[T], function: Callable[[T], Any], threads: Threads
    ):
        super().__init__(questions, threads)
        self.delivered = 0
        self.failed = 0
        self._answers = answers
        self._function = function
        self._turn = asyncio.Semaphore(MOST_AT_ONCE)
        self._preparing = asyncio.Lock()
        self._working: set[asyncio.Task[None]] = set()
        self._receiving = asyncio.create_task(self._receive())

    async def close(self) -> None:
        """Serve no more: who waits for an answer gets ServerGone. A second call does nothing."""
        await super().close()
        tasks = {self._receiving, *self._working} - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._threads.run(self._answers.close)

    async def _receive(self) -> None:
        while True:
            await self._turn.acquire()
            try:
                message = await self._thing.recv_async()
            except (ClosedError, ForkedError):
                return
            task = asyncio.create_task(self._answer(message))
            self._working.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._turn.release()

    async def _answer(self, message: Message[bytes]) -> None:
        if not self._answers.knows(message):
            async with self._preparing:
                await self._threads.run(self._answers.prepare, message)
        try:
            value = self._function(self._answers.question(message))
            self._answers.send(message, await value if inspect.isawaitable(value) else value)
            self.delivered += 1
        except Exception as exc:
            self._answers.send_error(message, exc)
            self.failed += 1


def open_questions(attachment: Attachment, tag: Tag[T]) -> Subscriber[bytes]:
    """The subscription on which a server is asked. Raises AlreadyServed, and as `subscribe` does."""
    questions = tag.beside(asking_name(tag.name), DEPTH)
    check_alone(questions)
    return watched(questions.subscribe())

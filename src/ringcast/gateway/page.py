"""One page: what it holds, and what its requests do. It outlives its connection for a while.

Requests that open or close something are done in the order in which they came; pulls and listings beside each other.
Invariant: after `release` nothing of the page is left, at the daemon or here. Must not know the connection; what is to
be said goes to `outbox`, which `ringcast.gateway.connection` empties.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ringcast.aio.publisher import AsyncPublisher
from ringcast.aio.subscriber import AsyncSubscriber
from ringcast.aio.threads import Threads
from ringcast.aio.watch import AsyncWatch
from ringcast.daemon.access.tokens import NotPermitted, Permit
from ringcast.errors import BadMessage, ResourceLimit, RingcastError, WouldBlock
from ringcast.gateway import answers, frames, reading, requests
from ringcast.gateway.backlog import Backlog, Stream
from ringcast.gateway.limits import Limits
from ringcast.gateway.outbox import Outbox
from ringcast.gateway.streaming import Sources, Streaming
from ringcast.model.closing import HasClose
from ringcast.security.rules import EVERYTHING
from ringcast.session import Session
from ringcast.tag import Tag

logger = logging.getLogger("ringcast.gateway")

_REMEMBERED = 256
"""Answers to a publisher's messages that are kept for a page that asks again after its connection broke."""
_BESIDE = 8
"""Pulls and listings of one page at once."""
_CHECKED = ("json", "msgpack")
"""Codecs whose bytes are decoded before they are sent on: a page must not spoil a tag for others."""


class PagePublisher:
    """A page's publisher, and what became of its messages."""

    def __init__(self, publisher: AsyncPublisher[Any], tag: str, check: Callable[[Any], object] | None) -> None:
        self.publisher = publisher
        self.tag = tag
        self.check = check
        self.last = 0
        self.taken_away: NotPermitted | None = None
        """It lost the right; nothing of it is sent any more."""
        self.answers: OrderedDict[int, bytes] = OrderedDict()

    def remember(self, number: int, answer: bytes) -> bytes:
        self.last = number
        self.answers[number] = answer
        if len(self.answers) > _REMEMBERED:
            self.answers.popitem(last=False)
        return answer


class Page:
    """`permit` says what it may do of what `session` may; `on_refusal` hears of what it asked for beyond that."""

    def __init__(
        self, session: Session, threads: Threads, limits: Limits, permit: Permit = Permit(),
        on_refusal: Callable[[NotPermitted], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.permit = permit
        self._on_refusal = on_refusal
        self.token = secrets.token_urlsafe(24)
        self.limits = limits
        self.backlog = Backlog(limits.backlog_bytes)
        self.outbox = Outbox()
        self._session = session
        self._threads = threads
        self._sources = Sources(session, threads, self.outbox)
        self._publishers: dict[int, PagePublisher] = {}
        self._streaming: dict[int, Streaming] = {}
        self._watches: dict[int, tuple[AsyncWatch, asyncio.Task[None], str]] = {}  # with the pattern of tags, or ''
        self._asked: asyncio.Queue[requests.AnyRequest] = asyncio.Queue(256)
        self._beside = asyncio.Semaphore(_BESIDE)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._released = False
        self._start(self._work())

    def __repr__(self) -> str:
        held = f"{len(self._publishers)} publishers, {len(self._streaming)} subscriptions, {len(self._watches)} watches"
        return f"<Page with {held}{', released' if self._released else ''}>"

    # ---------------------------------------------------------------- what comes from the page

    async def ask(self, request: requests.AnyRequest) -> None:
        """Waits while too much was asked already."""
        await self._asked.put(request)

    async def publish(self, frame: frames.Published) -> None:
        """Send a page's message on its tag. What is wrong with it is told to the page."""
        held = self._publishers.get(frame.publisher)
        if held is None:
            raise BadMessage(f"publisher {frame.publisher} is not open")
        if not 0 < (frame.number - held.last) % frames.WRAP < frames.WRAP // 2:  # it came before
            if (before := held.answers.get(frame.number)) is not None:
                self.outbox.say(before)
            return
        try:
            if held.taken_away is not None:
                raise held.taken_away
            if held.check is not None:
                held.check(frame.payload)
            seq = await held.publisher.send(bytes(frame.payload), frame.event_ns, frame.discardable)
        except (RingcastError, OverflowError) as exc:
            self.outbox.say(held.remember(frame.number, answers.refused(frame.publisher, frame.number, exc)))
        else:
            self.outbox.say(held.remember(frame.number, frames.sent(frame.publisher, frame.number, seq)))

    def taken(self, frame: frames.Taken, now_s: float) -> None:
        """Raises BadMessage."""
        # A subscription that was closed meanwhile: the page could not know.
        if (stream := self.backlog.get(frame.stream)) is not None:
            stream.taken(frame.number, now_s)
            self.outbox.wake()

    def resume(self, received: dict[int, int]) -> None:
        """A new connection has taken over. Raises BadMessage."""
        for stream in self.backlog:
            if stream.number in received:  # others the page has closed, and says so again
                stream.resume(received[stream.number])
        self.outbox.clear()
        self._sources.repeat()

    def lost(self) -> dict[int, int]:
        """By subscription, everything that it missed so far."""
        return {number: streaming.lost for number, streaming in self._streaming.items()}

    # ---------------------------------------------------------------- requests

    async def _work(self) -> None:
        while True:
            request = await self._asked.get()
            if isinstance(request, (requests.Pull, requests.List)):
                await self._beside.acquire()
                self._start(self._do_beside(request))
            else:
                await self._do(request)

    async def _do_beside(self, request: requests.AnyRequest) -> None:
        try:
            await self._do(request)
        finally:
            self._beside.release()

    async def _do(self, request: requests.AnyRequest) -> None:
        try:
            await self._ACTIONS[type(request)](self, request)
        except NotPermitted as exc:
            self._on_refusal(exc)
            self.outbox.say(answers.error(request.id, exc))
        except (RingcastError, ValueError, TypeError, TimeoutError, OverflowError) as exc:
            self.outbox.say(answers.error(request.id, exc))
        except Exception as exc:
            logger.exception("a request of a page failed: %r", request)
            self.outbox.say(answers.error(request.id, exc))

    async def _hello(self, request: requests.Hello) -> None:
        raise BadMessage("hello is said once, first of all")

    async def _open_tag(self, request: requests.OpenTag) -> None:
        options = request.options
        if not self.permit.allows("create", request.name):
            self.permit.check_sees(request.name)
            options = {**options, "create": False}
        tag = await self._threads.run(lambda: self._session.tag(request.name, **options))
        self.outbox.say(answers.done(request.id, name=tag.name, attributes=answers.row(tag.attributes)))

    async def _publish(self, request: requests.Publish) -> None:
        held = self._publishers.get(request.publisher)
        if held is None or held.taken_away is not None:
            self._check_room(len(self._publishers), "publishers")
            held = await self._make_publisher(request)
            self._publishers[request.publisher] = held
        elif held.tag != request.tag:
            raise ValueError(f"publisher {request.publisher} is open on {held.tag}")
        self.outbox.say(answers.done(request.id, publisher=answers.row(held.publisher.info), last=held.last))

    async def _make_publisher(self, request: requests.Publish) -> PagePublisher:
        # In two calls: of one that is cancelled, only what it returns is closed.
        self.permit.check("publish", request.tag)
        create = self.permit.allows("create", request.tag)
        tag: Tag[Any] = await self._threads.run(lambda: self._session.tag(request.tag, create=create))
        publisher = await self._threads.run(lambda: tag.publisher(request.on_slow, encoded=True))
        await self._check_still("publish", request.tag, publisher)
        check = tag.codec.decode if tag.attributes.codec in _CHECKED else None
        return PagePublisher(AsyncPublisher(publisher, self._threads), request.tag, check)

    async def _unpublish(self, request: requests.Unpublish) -> None:
        if (held := self._publishers.pop(request.publisher, None)) is not None:
            await held.publisher.close()
        self.outbox.say(answers.done(request.id))

    async def _subscribe(self, request: requests.Subscribe) -> None:
        if request.subscription not in self._streaming:
            self._check_room(len(self._streaming), "subscriptions")
            self.permit.check("subscribe", request.pattern)
            made = await self._threads.run(reading.subscribe, self._session, request)
            await self._check_still("subscribe", request.pattern, made)
            stream = Stream(request.subscription, request.priority, request.reliable)
            self.backlog.add(stream)
            streaming = Streaming(AsyncSubscriber(made, self._threads), stream, self.backlog, self.outbox,
                                  self._sources, request)  # fmt: skip
            self._streaming[request.subscription] = streaming
        self.outbox.say(answers.done(request.id))

    async def _unsubscribe(self, request: requests.Unsubscribe) -> None:
        if (streaming := self._streaming.pop(request.subscription, None)) is not None:
            self.backlog.remove(request.subscription)
            await streaming.close()
        self.outbox.say(answers.done(request.id))

    async def _move(self, request: requests.Move) -> None:
        streaming = self._streaming.get(request.subscription)
        if streaming is None:
            raise ValueError(f"subscription {request.subscription} is not open")
        await streaming.subscriber.move(request.at, request.transport)
        self.outbox.say(answers.done(request.id))

    async def _pull(self, request: requests.Pull) -> None:
        self.permit.check("pull", request.tag)
        found = await self._threads.run(reading.pull, self._session, request, self.limits.pulled_messages)
        self.permit.check("pull", request.tag)  # the rules may have changed meanwhile
        if found.bounds is not None:
            self.outbox.say(answers.done(request.id, bounds=found.bounds))
            return
        for message in found.messages:
            number = self._sources.announce(message.publisher, found.attributes, request.size)
            self.outbox.say(_pulled(request.id, message, number))
            # A pull is as long as the page's link is slow, and waits here rather than in memory.
            await self.outbox.wait_for_room(self.limits.backlog_bytes)
        self.outbox.say(answers.pulled(request.id, len(found.messages), found.unanswered))

    async def _list(self, request: requests.List) -> None:
        session, what, pattern = self._session, request.what, request.pattern
        if what in ("publishers", "subscribers"):
            self.permit.check_sees(pattern)
        elif what == "channels" and not self.permit.may("set"):
            self.permit.check("set", EVERYTHING)

        def rows() -> list[Any]:
            if what in ("publishers", "subscribers"):
                tag: Any = session.tag(pattern, create=False)
                return list(tag.publishers() if what == "publishers" else tag.subscribers())
            return list(session.tags(pattern) if what == "tags" else getattr(session, what)())

        found = await self._threads.run(rows)
        if what == "tags":
            found = [row for row in found if self.permit.sees(row.name)]
        elif what == "channels":
            found = [row for row in found if self.permit.allows("set", row.tag)]
        self.outbox.say(answers.done(request.id, rows=[answers.row(one) for one in found]))

    async def _watch(self, request: requests.Watch) -> None:
        # One that is asked for again is begun again: what was said on a broken connection may not have come.
        await self._end_watch(request.watch)
        self._check_room(len(self._watches), "watches")
        of_tags = any(kind != "node" for kind in request.kinds)
        if of_tags:
            self.permit.check_sees(request.pattern)
        made = await self._threads.run(self._session.watch, request.pattern, kinds=request.kinds)
        if of_tags and not self.permit.sees(request.pattern):  # the rules changed meanwhile
            await self._threads.run(made.close)
            raise NotPermitted(self.permit, "subscribe", request.pattern)
        watch = AsyncWatch(made, self._threads)
        rows = []
        with contextlib.suppress(WouldBlock):  # all that is there was told before it was made
            while True:
                rows.append(answers.row(watch.recv_nowait()))
        self.outbox.say(answers.done(request.id, rows=rows))
        telling = self._start(self._tell_presences(request.watch, watch))
        self._watches[request.watch] = (watch, telling, request.pattern if of_tags else "")

    async def _tell_presences(self, number: int, watch: AsyncWatch) -> None:
        try:
            async for what in watch:
                self.outbox.say(answers.presence(number, what))
                await self.outbox.wait_for_room(self.limits.backlog_bytes)
        except RingcastError as exc:
            self.outbox.say(answers.error(None, exc))

    async def _unwatch(self, request: requests.Unwatch) -> None:
        await self._end_watch(request.watch)
        self.outbox.say(answers.done(request.id))

    async def _end_watch(self, number: int) -> None:
        if (held := self._watches.pop(number, None)) is not None:
            held[1].cancel()
            await held[0].close()

    _ACTIONS: dict[type[Any], Callable[[Page, Any], Awaitable[None]]] = {
        requests.Hello: _hello, requests.OpenTag: _open_tag, requests.Publish: _publish,
        requests.Unpublish: _unpublish, requests.Subscribe: _subscribe, requests.Unsubscribe: _unsubscribe,
        requests.Move: _move, requests.Pull: _pull, requests.List: _list, requests.Watch: _watch,
        requests.Unwatch: _unwatch,
    }  # fmt: skip

    def _check_room(self, held: int, what: str) -> None:
        if held >= self.limits.streams:
            raise ResourceLimit(what, f"a page may have {self.limits.streams} {what} at this gateway")

    # ---------------------------------------------------------------- rights that are taken away

    async def enforce(self, permit: Permit) -> None:
        """It may do this from now on: what it holds beyond that ends, and the page is told."""
        self.permit = permit
        for held in self._publishers.values():
            if held.taken_away is None and not permit.allows("publish", held.tag):
                held.taken_away = NotPermitted(permit, "publish", held.tag)
                self._on_refusal(held.taken_away)
                await held.publisher.close()
        for number, streaming in list(self._streaming.items()):
            if not permit.allows("subscribe", streaming.pattern):
                del self._streaming[number]
                self.backlog.remove(number)
                await streaming.close()
                self.outbox.say(answers.failed(number, self._lost("subscribe", streaming.pattern), ended=True))
        for number, (_, _, pattern) in list(self._watches.items()):
            if pattern and not permit.sees(pattern):
                await self._end_watch(number)
                self.outbox.say(answers.error(None, self._lost("subscribe", pattern)))

    def _lost(self, action: str, pattern: str) -> NotPermitted:
        error = NotPermitted(self.permit, action, pattern)
        self._on_refusal(error)
        return error

    async def _check_still(self, action: str, pattern: str, made: HasClose) -> None:
        """The rules may have changed while something was made. Raises NotPermitted."""
        if not self.permit.allows(action, pattern):
            await self._threads.run(made.close)
            raise NotPermitted(self.permit, action, pattern)

    # ---------------------------------------------------------------- the end

    async def release(self) -> None:
        """Give everything back. A second call does nothing."""
        if self._released:
            return
        self._released = True
        for task in list(self._tasks):
            task.cancel()
        things: list[Coroutine[Any, Any, None]] = [held.publisher.close() for held in self._publishers.values()]
        things += [streaming.close() for streaming in self._streaming.values()]
        things += [watch.close() for watch, _, _ in self._watches.values()]
        for failure in await asyncio.gather(*things, return_exceptions=True):
            if isinstance(failure, Exception):
                logger.warning("something of a page that left could not be closed: %s", failure)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _pulled(id: int, message: Any, source: int) -> bytes:
    return frames.MESSAGE_HEADER.pack(
        frames.PULLED, frames.DISCARDABLE if message.discardable else 0, 0, id, message.seq, message.event_ns,
        message.sent_ns, message.received_ns, min(message.lost, frames.WRAP - 1), source,
    ) + bytes(message.data)  # fmt: skip

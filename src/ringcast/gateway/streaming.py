"""One subscription of a page: takes messages from the rings and puts them into the page's backlog.

The ring is the buffer: a page that catches up with a history, and one that stalls for a moment, is waited for. One that
is behind is not, because old messages are worth less than new ones: then all that comes is taken, and the backlog keeps
the newest.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

from ringcast.aio.subscriber import AsyncSubscriber
from ringcast.aio.threads import Threads
from ringcast.errors import ClosedError, CorruptRing, DecodeError, RingcastError, WouldBlock
from ringcast.gateway import answers, reading, requests
from ringcast.gateway.backlog import QUEUED, Backlog, Entry, Stream
from ringcast.gateway.limits import Allowance
from ringcast.gateway.outbox import Outbox
from ringcast.message import Message
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes
from ringcast.session import Session

CATCH_UP_S = 10.0
_SOURCES = 1024
"""Publishers that are remembered; `ringcast.js` remembers twice as many."""
_TURN = 32
"""Messages that are taken before others in this event loop have their turn."""
_PATIENCE_S = 0.1
"""In any second, a page's stalls of together so long cost it nothing."""


class Sources:
    """The publishers that a page has heard of, by the numbers that stand for them in frames; the latest ones only."""

    def __init__(self, session: Session, threads: Threads, outbox: Outbox) -> None:
        self._session = session
        self._threads = threads
        self._outbox = outbox
        self._known: OrderedDict[tuple[int, str, tuple[int, int] | None], tuple[int, bytes]] = OrderedDict()
        self._following = 0

    async def find(self, info: PublisherInfo, size: tuple[int, int] | None) -> int:
        known = self._known.get((info.incarnation, info.tag, size))
        if known is not None:
            return known[0]
        attributes = await self._threads.run(reading.attributes_of, self._session, info.tag, size)
        return self.announce(info, attributes, size)

    def announce(self, info: PublisherInfo, attributes: TagAttributes, size: tuple[int, int] | None) -> int:
        """Of a message whose tag's attributes are known."""
        key = (info.incarnation, info.tag, size)
        if key not in self._known:
            announcement = answers.source(self._following, info, attributes)
            self._known[key] = (self._following, announcement)
            self._following += 1
            self._outbox.say(announcement)
            if len(self._known) > _SOURCES:
                self._known.popitem(last=False)
        return self._known[key][0]

    def repeat(self) -> None:
        """On a new connection: what was announced on the one that broke may not have come."""
        for _, announcement in self._known.values():
            self._outbox.say(announcement)


class Streaming:
    def __init__(
        self, subscriber: AsyncSubscriber[bytes], stream: Stream, backlog: Backlog, outbox: Outbox, sources: Sources,
        asked: requests.Subscribe,
    ) -> None:  # fmt: skip
        self.subscriber = subscriber
        self.stream = stream
        self.pattern = asked.pattern
        self._backlog = backlog
        self._outbox = outbox
        self._sources = sources
        self._size = asked.size
        self._only = frozenset(asked.only)
        self._lost_of_others = 0
        self._room = asyncio.Event()
        self._patience = Allowance(_PATIENCE_S)
        self._catching_up_until_s = 0.0 if asked.start == "new" else time.monotonic() + CATCH_UP_S
        stream.on_room = self._room.set
        self._task = asyncio.create_task(self._run())

    @property
    def lost(self) -> int:
        return self.subscriber.lost - self._lost_of_others + self.stream.left_out

    async def _run(self) -> None:
        turn = 0
        while True:
            try:
                await self._wait_for_room()
                message = await self._next()
                turn += 1
                if turn % _TURN == 0:
                    await asyncio.sleep(0)
                await self._put(message)
            except (DecodeError, CorruptRing) as exc:  # of one message or one ring; the others go on
                self._outbox.say(answers.failed(self.stream.number, exc, ended=False))
            except ClosedError:
                return
            except RingcastError as exc:
                self._outbox.say(answers.failed(self.stream.number, exc, ended=True))
                return

    async def _next(self) -> Message[bytes]:
        try:
            return self.subscriber.recv_nowait()
        except WouldBlock:
            self._catching_up_until_s = 0.0
        return await self.subscriber.recv()

    async def _put(self, message: Message[bytes]) -> None:
        if self._only and str(message.publisher.incarnation) not in self._only:
            self._lost_of_others += message.lost
            return
        source = await self._sources.find(message.publisher, self._size)
        entry = Entry(
            source, message.seq, bytes(message.data), lost=message.lost, discardable=message.discardable,
            event_ns=message.event_ns, sent_ns=message.sent_ns, received_ns=message.received_ns,
        )  # fmt: skip
        for stream in self._backlog.push(self.stream, entry, time.monotonic()):
            self._outbox.say(answers.paced(stream.number, stream.every))
        self._outbox.wake()

    async def _wait_for_room(self) -> None:
        while len(self.stream.queue) >= QUEUED or not self._backlog.has_room(self.stream):
            now_s = time.monotonic()
            patient = self.stream.reliable or now_s < self._catching_up_until_s
            if not patient and (self.stream.every > 1 or self._patience.take(0.0, now_s) > 0):
                return
            self._room.clear()
            try:
                async with asyncio.timeout(None if self.stream.reliable else _PATIENCE_S / 2):
                    await self._room.wait()
            except TimeoutError:
                pass
            if not patient:
                self._patience.take(time.monotonic() - now_s, time.monotonic())

    async def close(self) -> None:
        self._task.cancel()
        await self.subscriber.close()
        await asyncio.gather(self._task, return_exceptions=True)

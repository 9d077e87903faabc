"""A tag for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from ringcast.aio.asking import AsyncAsker, AsyncServer, open_questions
from ringcast.aio.history import AsyncHistory
from ringcast.aio.publisher import AsyncPublisher
from ringcast.aio.subscriber import AsyncSubscriber, watched
from ringcast.aio.threads import Threads
from ringcast.aio.watch import AsyncWatch
from ringcast.asking import DEFAULT_TIMEOUT_S, Asker
from ringcast.codec import Codec
from ringcast.control.status import PublisherStatus, SubscriberStatus
from ringcast.history import Whose
from ringcast.message import T
from ringcast.model.options import SubscriptionOptions
from ringcast.model.tag import TagAttributes
from ringcast.scaling import Size
from ringcast.serving import Answers
from ringcast.tag import Tag

if TYPE_CHECKING:
    from typing_extensions import Buffer


class AsyncTag(Generic[T]):
    """Made by `await session.tag(name)`. Every call raises as that of `Tag` does."""

    def __init__(self, tag: Tag[T], threads: Threads) -> None:
        self._tag = tag
        self._threads = threads
        self._asker: AsyncAsker[T] | None = None
        self._making = asyncio.Lock()

    @property
    def blocking(self) -> Tag[T]:
        """The tag itself, for other threads."""
        return self._tag

    @property
    def name(self) -> str:
        return self._tag.name

    @property
    def id(self) -> int:
        """The tag's number, the same on every node."""
        return self._tag.id

    @property
    def attributes(self) -> TagAttributes:
        """What the tag's users have agreed on."""
        return self._tag.attributes

    @property
    def codec(self) -> Codec:
        return self._tag.codec

    @overload
    async def publisher(  # type: ignore[overload-overlap]
        self: AsyncTag[bytes], on_slow: Literal["raise", "skip"] = "raise"
    ) -> AsyncPublisher[Buffer]: ...
    @overload
    async def publisher(self, on_slow: Literal["raise", "skip"] = "raise") -> AsyncPublisher[T]: ...
    async def publisher(self, on_slow: Literal["raise", "skip"] = "raise") -> AsyncPublisher[Any]:
        """Make a ring and register it, so that subscribers find it."""
        return AsyncPublisher(await self._threads.run(self._tag.publisher, on_slow), self._threads)

    async def subscribe(self, **options: Unpack[SubscriptionOptions]) -> AsyncSubscriber[T]:
        """Receive from every publisher of the tag. The options are those of `Tag.subscribe`."""
        return AsyncSubscriber(await self._threads.run(lambda: watched(self._tag.subscribe(**options))), self._threads)

    async def history(
        self,
        depth: int | None = None,
        publisher: Whose | AsyncPublisher[Any] | None = None,
        *,
        at: str | None = None,
        every: int = 1,
        size: Size | None = None,
    ) -> AsyncHistory[T]:
        """Look into the rings of this tag, here or on other nodes. The options are those of `Tag.history`."""
        whose = publisher.blocking if isinstance(publisher, AsyncPublisher) else publisher
        made = await self._threads.run(self._tag.history, depth, whose, at=at, every=every, size=size)
        return AsyncHistory(made, self._threads)

    async def serve(self, function: Callable[[T], Any]) -> AsyncServer[T]:
        """Answer what others ask on this tag, as `Tag.serve`. `function` may be a coroutine function: then questions
        are answered side by side."""
        questions = await self._threads.run(open_questions, self._tag.attachment, self._tag)
        assert questions.tag is not None
        return AsyncServer(questions, Answers(self._tag, questions.tag), function, self._threads)

    async def ask(self, data: T, timeout: float | None = DEFAULT_TIMEOUT_S) -> Any:
        """What the server of this tag answers, as `Tag.ask`. Any number of tasks may ask at once."""
        if self._asker is None:
            async with self._making:
                if self._asker is None:
                    self._asker = AsyncAsker(await self._threads.run(self._listening_asker), self._threads)
        return await self._asker.ask(data, timeout)

    def _listening_asker(self) -> Asker[T]:
        asker: Asker[T] = Asker(self._tag.attachment, self._tag)
        asker.answers.fileno()  # made here, because the daemon has to be asked for it
        return asker

    async def publishers(self, left: bool = False, local: bool = False) -> list[PublisherStatus]:
        """Who publishes, on whichever node."""
        return await self._threads.run(self._tag.publishers, left, local)

    async def subscribers(self, local: bool = False) -> list[SubscriberStatus]:
        """Who receives this tag, on whichever node and wildcards included."""
        return await self._threads.run(self._tag.subscribers, local)

    async def watch(self) -> AsyncWatch:
        """Be told which publishers and subscribers of this tag come and go."""
        return AsyncWatch(await self._threads.run(self._tag.watch), self._threads)

    async def destroy(self, force: bool = False) -> None:
        """Remove the tag from the table."""
        await self._threads.run(self._tag.destroy, force)

    def __repr__(self) -> str:
        return f"<asyncio {self._tag!r}>"

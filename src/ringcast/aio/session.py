"""A session for asyncio: `async with ringcast.connect_async() as session`. It belongs to the loop that opened it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from ringcast.aio.closing import AsyncClosing
from ringcast.aio.publisher import AsyncPublisher
from ringcast.aio.subscriber import AsyncSubscriber, watched
from ringcast.aio.tag import AsyncTag
from ringcast.aio.threads import Threads
from ringcast.aio.watch import AsyncWatch
from ringcast.client.connection_callback import ConnectionCallback
from ringcast.control.answers import Status
from ringcast.control.placing import Observation
from ringcast.control.status import ChannelStatus, ClockStatus, NodeStatus, SettingStatus, TagStatus
from ringcast.model.connection import ConnectionChange
from ringcast.model.identity import PresenceKind
from ringcast.model.options import PublisherOptions, SubscribeOptions, TagOptions
from ringcast.publisher import Publisher
from ringcast.session import Session, connect
from ringcast.tag import Tag

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ringcast.client.mesh.assigning import Assigned
    from ringcast.codec.audio import AudioBlock

S = TypeVar("S")


def connect_async(
    socket: str | os.PathLike[str] | None = None, start: bool = True, program: str | None = None
) -> Connecting:
    """`connect` for asyncio: `async with ringcast.connect_async() as session`, or `session = await connect_async()` and
    later `await session.close()`. Arguments and errors are those of `connect`; errors come when it is awaited."""
    return Connecting(lambda: connect(socket, start, program))


class Connecting:
    """Made by `connect_async`: wait for it, or enter it."""

    def __init__(self, opening: Callable[[], Session]) -> None:
        self._opening = opening
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def _open(self) -> AsyncSession:
        threads = Threads()
        try:
            return AsyncSession(await threads.run(self._opening), threads)
        except Exception:
            threads.end()
            raise

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._open()
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()


class AsyncSession(AsyncClosing[Session]):
    """Made by `connect_async`. Every call raises as that of `Session` does."""

    @property
    def node(self) -> str:
        """This node's name."""
        return self._thing.node

    @property
    def connected(self) -> bool:
        """False while the daemon is away. What is open goes on working, and the session attaches again by itself."""
        return self._thing.connected

    def on_connection_change(self, callback: Callable[[ConnectionChange], object]) -> ConnectionCallback:
        """Call `callback` in this loop: at once with how the connection is, then whenever it is lost or back."""
        loop = asyncio.get_running_loop()
        return self._thing.on_connection_change(lambda change: loop.call_soon_threadsafe(callback, change))

    # ---------------------------------------------------------------- tags

    @overload
    async def tag(
        self, name: str, *, codec: str = ..., schema: type[S], create: bool = True, **options: Unpack[TagOptions]
    ) -> AsyncTag[S]: ...
    @overload
    async def tag(
        self, name: str, *, codec: Literal["bytes"], create: bool = True, **options: Unpack[TagOptions]
    ) -> AsyncTag[bytes]: ...
    @overload
    async def tag(
        self, name: str, *, codec: Literal["numpy", "image"], schema: Mapping[str, object] | None = ...,
        create: bool = True, **options: Unpack[TagOptions],
    ) -> AsyncTag[NDArray[np.generic]]: ...  # fmt: skip
    @overload
    async def tag(
        self, name: str, *, codec: Literal["audio"], schema: Mapping[str, object] | None = ...,
        create: bool = True, **options: Unpack[TagOptions],
    ) -> AsyncTag[AudioBlock]: ...  # fmt: skip
    @overload
    async def tag(
        self, name: str, *, codec: str = ..., schema: object = ..., create: bool = True, **options: Unpack[TagOptions]
    ) -> AsyncTag[object]: ...
    async def tag(self, name: str, **attributes: Any) -> AsyncTag[Any]:
        """Create the tag, or join it as it is. The attributes are those of `Session.tag`."""
        opened: Tag[Any] = await self._threads.run(lambda: self._thing.tag(name, **attributes))
        return AsyncTag(opened, self._threads)

    @overload
    async def publisher(
        self, name: str, *, codec: str = ..., schema: type[S], **options: Unpack[PublisherOptions]
    ) -> AsyncPublisher[S]: ...
    @overload
    async def publisher(  # type: ignore[overload-overlap]
        self, name: str, *, codec: Literal["bytes"], **options: Unpack[PublisherOptions]
    ) -> AsyncPublisher[Buffer]: ...
    @overload
    async def publisher(  # type: ignore[overload-overlap]
        self, name: str, *, codec: Literal["numpy", "image"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[PublisherOptions],
    ) -> AsyncPublisher[NDArray[np.generic]]: ...  # fmt: skip
    @overload
    async def publisher(
        self, name: str, *, codec: str = ..., schema: object = ..., **options: Unpack[PublisherOptions]
    ) -> AsyncPublisher[object]: ...
    async def publisher(self, name: str, **options: Any) -> AsyncPublisher[Any]:
        """A tag and its publisher in one step, as `Session.publisher`."""
        made: Publisher[Any] = await self._threads.run(lambda: self._thing.publisher(name, **options))
        return AsyncPublisher(made, self._threads)

    @overload
    async def subscribe(
        self, pattern: str, *, codec: str = ..., schema: type[S], **options: Unpack[SubscribeOptions]
    ) -> AsyncSubscriber[S]: ...
    @overload
    async def subscribe(
        self, pattern: str, *, codec: Literal["bytes"], **options: Unpack[SubscribeOptions]
    ) -> AsyncSubscriber[bytes]: ...
    @overload
    async def subscribe(
        self, pattern: str, *, codec: Literal["numpy", "image"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscriber[NDArray[np.generic]]: ...  # fmt: skip
    @overload
    async def subscribe(
        self, pattern: str, *, codec: Literal["audio"], schema: Mapping[str, object] | None = ...,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscriber[AudioBlock]: ...  # fmt: skip
    @overload
    async def subscribe(
        self, pattern: str, *, codec: str = ..., schema: object = ..., **options: Unpack[SubscribeOptions]
    ) -> AsyncSubscriber[object]: ...
    async def subscribe(self, pattern: str, **options: Any) -> AsyncSubscriber[Any]:
        """Receive a tag, or with a wildcard every tag that matches, as `Session.subscribe`."""
        made = await self._threads.run(lambda: watched(self._thing.subscribe(pattern, **options)))
        return AsyncSubscriber(made, self._threads)

    async def tags(self, pattern: str = "**") -> list[TagStatus]:
        """The tags that match, with counters."""
        return await self._threads.run(self._thing.tags, pattern)

    async def local_tags(self) -> list[TagStatus]:
        """The tags that somebody on this node created or uses."""
        return await self._threads.run(self._thing.local_tags)

    async def destroy_tag(self, name: str, *, force: bool = False) -> None:
        """`AsyncTag.destroy` for whoever has not the tag's codec."""
        await self._threads.run(self._thing.destroy_tag, name, force=force)

    # ---------------------------------------------------------------- the network and the daemon

    async def set_channel(
        self, tag: str, *, node: str = "", subscriber: int = 0, at: str | None = None, transport: str | None = None,
        planned: bool = False, priority: str | None = None, dscp: str | int | None = None, sched: str | None = None,
        bandwidth: str | None = None,
    ) -> list[str]:  # fmt: skip
        """Decide, for everybody, where a tag's proxies sit and what carries it, as `Session.set_channel`."""
        return await self._threads.run(
            self._thing.set_channel, tag, node=node, subscriber=subscriber, at=at, transport=transport,
            planned=planned, priority=priority, dscp=dscp, sched=sched, bandwidth=bandwidth,
        )  # fmt: skip

    async def assign_priorities(self, pattern: str = "**", *, dry_run: bool = False) -> list[Assigned]:
        """Classes and schedules for all channels by their deadlines, as `Session.assign_priorities`."""
        return await self._threads.run(self._thing.assign_priorities, pattern, dry_run=dry_run)

    async def nodes(self) -> list[NodeStatus]:
        """The nodes that this one knows, itself among them."""
        return await self._threads.run(self._thing.nodes)

    async def clock(self, node: str) -> ClockStatus:
        """How far a node's clock is ahead, how that drifts, and how far it may be off, as `Session.clock`."""
        return await self._threads.run(self._thing.clock, node)

    async def channels(self, *, why: bool = True) -> list[ChannelStatus]:
        """The streams that come to this node from others and go from it to others, as `Session.channels`."""
        return await self._threads.run(self._thing.channels, why=why)

    async def observe(self, *, measured: bool = True) -> Observation:
        """The mesh as one sees it who places proxies, as `Session.observe`."""
        return await self._threads.run(self._thing.observe, measured=measured)

    async def watch(
        self, pattern: str = "**", *, kinds: Iterable[PresenceKind] = ("node", "publisher", "subscriber")
    ) -> AsyncWatch:
        """Be told which nodes, publishers and subscribers come and go, as `Session.watch`."""
        return AsyncWatch(await self._threads.run(self._thing.watch, pattern, kinds=kinds), self._threads)

    async def status(self) -> Status:
        """What the daemon says of itself."""
        return await self._threads.run(self._thing.status)

    async def settings(self) -> list[SettingStatus]:
        """The daemon's settings, and where each came from."""
        return await self._threads.run(self._thing.settings)

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until reliable readers are through with what this session sent. A task that is cancelled leaves a thread
        waiting, for `timeout` at most."""
        await self._threads.run(self._thing.drain, timeout)

    async def close(self) -> None:
        """Close everything this session gave out. A second call does nothing."""
        await super().close()
        self._threads.end()

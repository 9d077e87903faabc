"""A subscriber for asyncio: the loop watches its descriptor, and no thread is needed to receive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic

from ringcast.aio.closing import AsyncClosing
from ringcast.errors import ClosedError
from ringcast.measure.receiving import SubscriberStats
from ringcast.message import Message, T, T_co
from ringcast.scaling.fidelity import Fidelity
from ringcast.subscriber import Subscriber


class AsyncSubscriber(AsyncClosing[Subscriber[T_co]], Generic[T_co]):
    """Made by `await tag.subscribe()` or `await session.subscribe(pattern)`. For one task at a time."""

    @property
    def pattern(self) -> str:
        return self._thing.pattern

    @property
    def fidelity(self) -> Fidelity:
        """What it has of the range that it asked for, as `Subscriber.fidelity`."""
        return self._thing.fidelity

    async def recv(self, timeout: float | None = None, copy: bool = True) -> Message[T_co]:
        """The next message. A task that is cancelled loses none. Raises as `Subscriber.recv` does; BusyError when
        another task receives."""
        return await self._thing.recv_async(timeout, copy)

    def recv_nowait(self, copy: bool = True) -> Message[T_co]:
        """The next message, or WouldBlock. Raises as `Subscriber.recv_nowait` does."""
        return self._thing.recv_nowait(copy)

    async def recv_many(self, n: int, timeout: float | None = None) -> list[Message[T_co]]:
        """Wait for at least one message, return at most `n`. Raises as `Subscriber.recv_many` does."""
        return await self._thing.recv_many_async(n, timeout)

    async def __aiter__(self) -> AsyncIterator[Message[T_co]]:
        """Messages until somebody closes the subscriber. Raises as `recv` does otherwise."""
        while True:
            try:
                message = await self.recv()
            except ClosedError:
                return
            yield message

    @property
    def latest(self) -> Message[T_co] | None:
        """The newest message that any publisher's ring holds, whether received or not; None when there is none.

        Raises ClosedError, ForkedError, DecodeError.
        """
        return self._thing.latest

    @property
    def lost(self) -> int:
        """How many messages this subscription lost so far."""
        return self._thing.lost

    def stats(self) -> SubscriberStats:
        """Raises ForkedError."""
        return self._thing.stats()

    async def move(self, at: str | None = None, transport: str | None = None) -> None:
        """Let the proxy sit elsewhere, or another transport carry the streams. Raises as `Subscriber.move` does."""
        await self._threads.run(self._thing.move, at, transport)

    async def prioritise(
        self, priority: str | None = None, *, dscp: str | int | None = None, sched: str | None = None,
        bandwidth: str | None = None,
    ) -> None:  # fmt: skip
        """Make its channels more or less urgent. Raises as `Subscriber.prioritise` does."""
        await self._threads.run(self._thing.prioritise, priority, dscp=dscp, sched=sched, bandwidth=bandwidth)


def watched(subscriber: Subscriber[T]) -> Subscriber[T]:
    """Its descriptor is made before it comes to the loop, because the daemon has to be asked for it."""
    try:
        subscriber.fileno()
    except BaseException:
        subscriber.close()
        raise
    return subscriber

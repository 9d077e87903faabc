"""The rings that a subscriber reads, with its registration at the daemon and its descriptor in an event loop.

Must not know what the application sees of it; that is `ringcast.subscriber`.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Decoders
from ringcast.client.ring_following import RingFollowing, Scaling, first_message
from ringcast.errors import ResourceLimit
from ringcast.model.options import Start
from ringcast.model.tag import is_pattern

if TYPE_CHECKING:
    from ringcast.client.readiness import Readiness
    from ringcast.tag import Tag


@types.coroutine
def _turn() -> Generator[None]:
    """Let whatever else is ready in the event loop run. As asyncio.sleep(0), without loading asyncio."""
    yield


RECEIVING = ("recv", "recv_nowait", "recv_many", "recv_columns")


class SubscribedRings(_core.RingReader):
    """Raises what `tag.subscribe` does."""

    def __init__(
        self,
        attachment: Attachment,
        pattern: str,
        decoders: Decoders,
        *,
        start: Start = "new",
        reliable: bool = False,
        busy_poll: bool = False,
        role: Literal["subscriber", "history"] = "subscriber",
        scaling: Scaling = Scaling(),
        tag: Tag[Any] | None = None,
    ) -> None:
        first_message(start)
        scaling.check()
        if reliable and not scaling.ordered:
            raise ValueError("reliable=True delivers in order: leave ordered=False out, or reliable=True")
        attachment.check()
        try:
            slot = attachment.counters.take()
        except ResourceLimit:  # more subscribers than the page has room for: these count for themselves only
            slot = None
        super().__init__(reliable=reliable, busy_poll=busy_poll, counters=slot)
        self.tag = tag  # kept open: a restarted daemon has to make it as it was
        self._attachment = attachment
        self._ready: Readiness | None = None
        self.registration = RingFollowing(
            attachment.connection, attachment.registry.number(), pattern, self, start=start, decoders=decoders,
            reliable=reliable, counter_index=-1 if slot is None else slot.index, role=role, scaling=scaling,
        )  # fmt: skip
        if is_pattern(pattern):
            self.registration.mailbox_fd = self.use_mailbox()
        try:
            attachment.registry.subscribe(self.registration)
        except BaseException:
            self.registration.close(super().close)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self.registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    def fileno(self) -> int:
        """Raises ClosedError, ForkedError, DaemonUnavailable, ResourceLimit."""
        self._attachment.check()
        return self.registration.descriptor(self, self._attachment.bridge)

    async def receive(self, timeout: float | None, copy: bool) -> _core.Message[Any]:
        """`recv` for asyncio."""
        if self._ready is None:
            from ringcast.client.readiness import Readiness  # loads asyncio, which most programs do without

            itself = weakref.ref(self)
            self._ready = Readiness(self.fileno(), quiet=lambda: (rings := itself()) is not None and rings.quiet())
            weakref.finalize(self, self._ready.close).atexit = False
        if (message := self.recv_queued(copy)) is not None:
            return message
        if self.plan_spin():  # messages come sooner than a loop falls asleep and wakes; other tasks go first
            await _turn()
            if (message := self.recv_queued(copy, spins=True)) is not None:
                return message
        return await self._ready.receive(lambda: self.recv_if_any(copy), lambda: self.registration.failure, timeout)

    def close(self) -> None:
        """Give the registration back; whoever waits gets ClosedError. A second call does nothing, and so does one in a
        forked child."""
        if self._attachment.is_forked or not self.registration.close(super().close):
            return
        self.registration.threads.close()
        if self._ready is not None:
            self._ready.close()
        self._finalizer.detach()
        self._attachment.dismiss(self)
        self._attachment.registry.release(self.registration)

"""A publisher: a ring that this process writes, and the registration by which others find it.

`send`, `send_nowait`, `send_many`, `reserve` are the native methods themselves; nothing of Python runs per message.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

from ringcast.client.attachment import Attachment
from ringcast.client.rings.lending import lend
from ringcast.client.rings.published import SENDING, PublishedRing
from ringcast.client.rings.shaping import Shaping
from ringcast.errors import ClosedError
from ringcast.message import Reservation, T_contra
from ringcast.model.closing import Closing
from ringcast.model.declared import Declared, OnExcess
from ringcast.model.identity import PublisherInfo
from ringcast.model.priority import Level
from ringcast.model.profile import Profile

if TYPE_CHECKING:
    from ringcast.tag import Tag


class Publisher(Closing, Generic[T_contra]):
    """Made by `tag.publisher()` or `session.publisher(name)`. `Publisher[T]` sends values of type T. Thread-safe."""

    def __init__(
        self, attachment: Attachment, tag: Tag[Any], on_slow: Literal["raise", "skip"] = "raise", encoded: bool = False,
        declared: Declared | None = None, on_excess: OnExcess = "drop", offered: Profile | None = None,
    ) -> None:  # fmt: skip
        if on_slow not in ("raise", "skip"):
            raise ValueError(f"on_slow is 'raise' or 'skip', not {on_slow!r}")
        self._attachment = attachment
        if on_excess not in ("wait", "drop"):
            raise ValueError(f"on_excess is 'wait' or 'drop', not {on_excess!r}")
        self._ring = PublishedRing(
            attachment, tag, skip_slow=on_slow == "skip", encoded=encoded, declared=declared, offered=offered
        )
        self._ring.face = weakref.ref(self)
        self._shaping: Shaping | None = None
        if declared is not None:
            encode = None if encoded else tag.codec.encode
            self._shaping = Shaping(self._ring, tag.name, declared, on_excess, encode)
        lend(self._shaping or self._ring, self, SENDING)
        if self._ring.registration.failure is not None:  # the tag was destroyed meanwhile
            self._ring.fail(self._ring.registration.failure)

    # ---------------------------------------------------------------- sending

    def send(
        self, data: T_contra, event_ns: int | None = None, discardable: bool = False, priority: Level | None = None
    ) -> int:
        """Send a message; returns its sequence number. `event_ns` is when it happened (UTC), as you know it;
        `discardable` says that receivers can do without it: it is left out first where not everything can be delivered.
        `priority`, "low" to "critical", is the class of this message's own datagrams, whatever its channels have. A
        connection (tcp) takes a higher class at once, also for what waits before the message, and a lower one when
        everything written has left (docs/priorities.md).

        Raises ClosedError, ForkedError, MessageTooLarge, EncodeError (the tag's codec or schema), SlowSubscriber (a
        reliable reader made no room within the tag's `max_wait_s`; nothing was written), ReservationError,
        TagDestroyed, ValueError (no such class).
        """
        return self._ring.send(data, event_ns, discardable, priority)

    def send_nowait(
        self, data: T_contra, event_ns: int | None = None, discardable: bool = False, priority: Level | None = None
    ) -> int:
        """As `send`, but raises WouldBlock where `send` would wait for a reliable reader. Raises as `send` does,
        without SlowSubscriber."""
        return self._ring.send_nowait(data, event_ns, discardable, priority)

    def send_many(self, items: Sequence[T_contra], event_ns: int | None = None) -> int:
        """Send each item as a message of its own, with one wake-up; returns the number of the last one. All have the
        same send time, and the same event time. When an item cannot be sent, those before it were. Raises as `send`
        does, and ValueError for none."""
        return self._ring.send_many(items, event_ns)

    def reserve(self, length: int) -> Reservation:
        """Room for `length` bytes inside the ring, to be written in place: `with pub.reserve(n) as view:` sends it. One
        at a time. Raises as `send` does, without EncodeError."""
        return self._ring.reserve(length)

    def drain(self, timeout: float | None = None) -> None:
        """Wait until every reliable reader, on whichever node, is through with what was sent before this call: it has
        received it and asked for the next message. Readers that are not reliable, and reliable ones that were passed
        over, are not waited for.

        Raises TimeoutError, ClosedError, ForkedError, TagDestroyed.
        """
        self._ring.drain(timeout)

    # ---------------------------------------------------------------- who and how much

    @property
    def tag(self) -> Tag[object]:
        return self._ring.tag

    @property
    def info(self) -> PublisherInfo:
        """Who this publisher is, as every message shows it. After a daemon's restart the `id` is another one."""
        assert self._ring.registration.info is not None
        return self._ring.registration.info

    @property
    def incarnation(self) -> int:
        """The number of this stream; a publisher that restarts has another one. Raises ClosedError, ForkedError."""
        return self._ring.incarnation

    @property
    def next_seq(self) -> int:
        """The number that the next message gets. Raises ClosedError, ForkedError."""
        return self._ring.next_seq

    @property
    def memory_bytes(self) -> int:
        """How much memory the ring can take. Raises ClosedError, ForkedError."""
        return self._ring.memory_bytes

    def counters(self) -> dict[str, int]:
        """sent, bytes, waits (for reliable readers), overruns (readers passed over), wakes; of a declared publisher
        also excess_dropped and excess_waited.

        Raises ClosedError, ForkedError.
        """
        found = self._ring.counters()
        if self._shaping is not None:
            found |= {"excess_dropped": self._shaping.dropped, "excess_waited": self._shaping.waited}
        return found

    @property
    def declared(self) -> Declared | None:
        """What this publisher declared, and keeps to."""
        return self._ring.registration.declared

    @property
    def subscribers(self) -> int:
        """How many subscriptions select this tag, as far as the daemon has said."""
        return self._ring.registration.subscribers

    def wait_for_subscribers(self, n: int = 1, timeout: float | None = None) -> int:
        """Wait until at least `n` subscriptions select this tag; returns how many do.

        Raises TimeoutError, ClosedError, ForkedError, TagDestroyed.
        """
        self._attachment.check()
        registration = self._ring.registration
        with registration.changed:
            found = registration.changed.wait_for(
                lambda: registration.subscribers >= n or registration.failure is not None or self.closed, timeout
            )
            if registration.failure is not None:
                raise registration.failure
            if self.closed:
                raise ClosedError("publisher")
            if not found:
                raise TimeoutError(
                    f"{registration.subscribers} of {n} subscribers on {registration.tag!r} after {timeout:g} s"
                )
            return registration.subscribers

    # ---------------------------------------------------------------- the end

    @property
    def closed(self) -> bool:
        return self._ring.closed

    def close(self) -> None:
        """Give the registration back. Readers may read what the ring still holds; histories keep it as the daemon's
        memory allows. A second call does nothing, and so does one in a forked child. Raises ReservationError."""
        self._ring.close()

    def __repr__(self) -> str:
        return f"<Publisher on {self.tag.name!r}{' closed' if self.closed else ''}>"

"""A publisher: a ring that this process writes, and the right to have it found.

`send`, `send_many`, `reserve` are the native methods themselves; nothing of Python runs per message.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.registration import Publication
from ringcast.client.staging import PublisherStages
from ringcast.control.notices import StageUnwanted, StageWanted
from ringcast.errors import ClosedError, RingcastError
from ringcast.model.closing import Closing
from ringcast.model.identity import PublisherInfo

if TYPE_CHECKING:
    from ringcast.tag import Tag


class Publisher(_core.RingWriter, Closing):
    """Made by `tag.publisher()` or `session.publisher(name)`.

    `send(data, event_ns=None, discardable=False)` returns the message's sequence number. Raises ClosedError,
    ForkedError, MessageTooLarge, EncodeError (the tag's codec or schema), SlowSubscriber (a reliable reader made no
    room within the tag's `max_wait_s`; nothing was written), TagDestroyed.
    """

    def __init__(
        self, attachment: Attachment, tag: Tag, on_slow: Literal["raise", "skip"] = "raise", encoded: bool = False
    ) -> None:
        if on_slow not in ("raise", "skip"):
            raise ValueError(f"on_slow is 'raise' or 'skip', not {on_slow!r}")
        attachment.check()
        attributes = tag.attributes
        super().__init__(
            depth=attributes.depth,
            capacity_bytes=attributes.capacity_bytes,
            max_wait_s=attributes.max_wait_s,
            skip_slow=on_slow == "skip",
            prefault=attributes.prefault,
            encode=None if encoded else tag.codec.encode,
        )
        self._tag = tag
        self._attachment = attachment
        self._stages = PublisherStages()
        self._registration = Publication(attachment.connection, tag.name, self)
        try:
            attachment.registry.publish(self._registration)
        except BaseException:
            super().close()
            attachment.registry.abandon(self._registration)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self._registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    @property
    def tag(self) -> Tag:
        return self._tag

    @property
    def info(self) -> PublisherInfo:
        """Who this publisher is, as every message shows it. After a daemon's restart the `id` is another one."""
        assert self._registration.info is not None
        return self._registration.info

    @property
    def subscribers(self) -> int:
        """How many subscriptions select this tag, as far as the daemon has said."""
        return self._registration.subscribers

    def wait_for_subscribers(self, n: int = 1, timeout: float | None = None) -> int:
        """Wait until at least `n` subscriptions select this tag; returns how many do.

        Raises TimeoutError, ClosedError, ForkedError, TagDestroyed.
        """
        self._attachment.check()
        registration = self._registration
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

    def stage(self, notice: StageWanted | StageUnwanted | None) -> None:
        """The daemon wants the stream at another size, or no longer; None is another daemon. Called by the session."""
        match notice:
            case StageWanted():
                self._stages.wanted(self, notice, self._attachment.connection)
            case StageUnwanted(stage=number):
                self._stages.unwanted(self, number, self._attachment.connection)
            case None:
                self._stages.forget(self)

    def fail(self, error: RingcastError) -> None:
        """Let every later send raise `error`. Called when the tag was destroyed by force."""

        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise error

        # An instance's attribute hides the class's method: the native path stays free of a check for the rarest case.
        for name in ("send", "send_many", "reserve"):
            setattr(self, name, refuse)

    def close(self) -> None:
        """Give the right back. Readers may read what the ring still holds; histories keep it as the daemon's memory
        allows. A second call does nothing, and so does one in a forked child."""
        if self._attachment.is_forked or self.closed:
            return
        with self._registration.lock:
            super().close()
        self._stages.close()
        with self._registration.changed:
            self._registration.changed.notify_all()
        self._finalizer.detach()
        self._attachment.registry.release(self._registration)

    def __repr__(self) -> str:
        return f"<Publisher on {self._tag.name!r}{' closed' if self.closed else ''}>"

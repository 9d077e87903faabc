"""The ring that a publisher writes, with its registration at the daemon and the stages that other sizes need.

Must not know what the application sees of it; that is `ringcast.publisher`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.registration import Publication
from ringcast.client.staging import PublisherStages
from ringcast.control.notices import StageUnwanted, StageWanted
from ringcast.errors import RingcastError
from ringcast.model.declared import Declared
from ringcast.model.profile import Profile

if TYPE_CHECKING:
    from ringcast.tag import Tag

_LOOK_FIRST_S, _LOOK_LAST_S = 0.0005, 0.02


def pauses_s() -> Iterator[float]:
    """How long to wait before looking again what was read: readers give no sign unless a sender has no room."""
    pause_s = _LOOK_FIRST_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _LOOK_LAST_S)


SENDING = ("send", "send_nowait", "send_many", "reserve")
_REFUSED = (*SENDING, "send_packet")


class PublishedRing(_core.RingWriter):
    """Raises what `Connection.call` does, NoSpace, ResourceLimit."""

    def __init__(
        self, attachment: Attachment, tag: Tag[Any], *, skip_slow: bool, encoded: bool,
        declared: Declared | None = None, offered: Profile | None = None,
    ) -> None:  # fmt: skip
        attachment.check()
        attributes = tag.attributes
        super().__init__(
            depth=attributes.depth,
            capacity_bytes=attributes.capacity_bytes,
            max_wait_s=attributes.max_wait_s,
            skip_slow=skip_slow,
            prefault=attributes.prefault,
            # What is declared is measured in bytes, so whoever keeps to it encodes.
            encode=None if encoded or declared is not None else tag.codec.encode,
        )
        self.face: weakref.ref[object] | None = None
        """The public object that shows the native methods."""
        self.tag = tag  # kept open: a restarted daemon has to make it as it was
        self._attachment = attachment
        self._stages = PublisherStages()
        self.registration = Publication(attachment.connection, tag.name, self, declared, offered)
        try:
            attachment.registry.publish(self.registration)
        except BaseException:
            super().close()
            attachment.registry.abandon(self.registration)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self.registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    def successor(self) -> _core.RingWriter:
        """Another ring like this one. Raises NoSpace, ResourceLimit."""
        return _core.RingWriter(
            depth=self.depth, capacity_bytes=self.capacity_bytes, max_wait_s=0, prefault=self.tag.attributes.prefault
        )

    def succeed(self, successor: _core.RingWriter) -> None:
        """Go on there: somebody who reads this ring lost the right to."""
        if not self.closed:
            self.take_over(successor)

    def stage(self, notice: StageWanted | StageUnwanted | None) -> None:
        """The daemon wants the stream at another size, or no longer; None: another daemon is there."""
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

        # An instance's attribute hides the native method: sending stays free of a check for the rarest case.
        face = self.face() if self.face is not None else None
        for shown in (self, face):
            for name in _REFUSED if shown is not None else ():
                setattr(shown, name, refuse)

    def drain(self, timeout: float | None) -> None:
        """Wait until reliable readers have read what was sent. Raises TimeoutError, ClosedError, ForkedError, and the
        publisher's failure."""
        incarnation, end = self.incarnation, self.next_seq
        deadline = None if timeout is None else time.monotonic() + timeout
        for pause_s in pauses_s():
            if self.drained(incarnation, end):
                return
            left_s = pause_s if deadline is None else min(pause_s, deadline - time.monotonic())
            if left_s <= 0:
                raise TimeoutError(
                    f"a reliable reader of {self.tag.name!r} has not read all that was sent after {timeout:g} s"
                )
            time.sleep(left_s)

    def drained(self, incarnation: int, end: int) -> bool:
        """Whether reliable readers have read what was sent before number `end`, in the ring that it then was. Raises as
        `drain` does."""
        self._attachment.check()
        if self.registration.failure is not None:
            raise self.registration.failure
        return self.unread >= end if self.incarnation == incarnation else self.unread_before == 0

    def close(self) -> None:
        """Give the registration back. A second call does nothing, and so does one in a forked child."""
        if self._attachment.is_forked or self.closed:
            return
        with self.registration.lock:
            super().close()
        self._stages.close()
        with self.registration.changed:
            self.registration.changed.notify_all()
        self._finalizer.detach()
        self._attachment.registry.release(self.registration)

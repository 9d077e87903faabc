"""Rights on a tag, as a session holds them: to publish one ring, to receive the rings that match a pattern.

A right knows how to register itself with a daemon, for the first time and after the daemon was restarted, by the
very same steps. It holds the publisher, subscriber or history it belongs to only weakly: dropping the last reference
to one of those is as good as closing it.

Invariant: a ring is attached under the right's lock and never after the right was closed, so that closing cannot be
overtaken by a notice.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ringcast.client.connection import Connection
from ringcast.client.descriptors import copies, out_of_descriptors
from ringcast.control.answers import Done, Published
from ringcast.control.link import Received, close_all
from ringcast.control.notices import FidelityNow, IntakeWanted, RingUp, StageUnwanted, StageWanted
from ringcast.control.requests import Attached, IntakeDown, Publish, Subscribe, Unpublish, Unsubscribe
from ringcast.errors import BadMessage, ClosedError, CorruptRing, RingcastError, TagDestroyed
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo
from ringcast.model.profile import Profile

logger = logging.getLogger("ringcast")


class Successor(Protocol):
    """A ring to publish in: a publisher's, or one that it is about to go on in."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    def attach_fanout(self, socket_fd: int) -> None: ...


class RingOwner(Successor, Protocol):
    """What a publication needs of a publisher."""

    def successor(self) -> Successor:
        """Another ring like it. Raises NoSpace, ResourceLimit."""

    def succeed(self, successor: Any) -> None:
        """Go on in that ring."""

    def fail(self, error: RingcastError) -> None: ...
    def stage(self, notice: StageWanted | StageUnwanted | None) -> None:
        """Begin a stage or end one; None ends all."""


class Publication:
    """The right to publish one ring on a tag."""

    def __init__(
        self, connection: Connection, tag: str, publisher: RingOwner, declared: Declared | None = None,
        offered: Profile | None = None,
    ) -> None:  # fmt: skip
        self.tag = tag
        self.declared = declared
        self.offered = offered
        self.info: PublisherInfo | None = None
        self.subscribers = 0
        self.lock = threading.Lock()
        """Held while the publisher's descriptors are copied, and while it closes."""
        self.changed = threading.Condition()
        self.failure: RingcastError | None = None
        self._connection = connection
        self._publisher = weakref.ref(publisher)

    def register(self, granted: Callable[[Published], None]) -> None:
        """Ask for the right; `granted` runs on the connection's thread before any notice that concerns it."""
        publisher = self._publisher()
        if publisher is None:
            return
        with _fanout_sockets() as (ours, theirs):
            with self.lock:
                request = Publish(
                    id=0, tag=self.tag, incarnation=publisher.incarnation, depth=publisher.depth,
                    capacity_bytes=publisher.capacity_bytes, declared=self.declared, offered=self.offered,
                )  # fmt: skip
                publisher.stage(None)
                # Before asking: the daemon announces mailboxes on it as soon as it has said yes.
                publisher.attach_fanout(ours.fileno())
                fds = copies((publisher.ring_fd, publisher.bell_fd, theirs.fileno()))
            try:
                self._connection.call(request, Published, fds=fds, then=granted)
            finally:
                close_all(fds)

    def renew(self, granted: Callable[[Published], None]) -> None:
        """Register another ring, and go on there once it is granted: nothing is sent before its readers are there. On
        the connection's thread, so nothing here waits. Raises ResourceLimit, NoSpace."""
        publisher = self._publisher()
        if publisher is None:
            return
        successor = publisher.successor()

        def go_on(answer: Published) -> None:
            with self.lock:
                publisher.stage(None)
                publisher.succeed(successor)
            granted(answer)

        with _fanout_sockets() as (ours, theirs):
            successor.attach_fanout(ours.fileno())
            request = Publish(
                id=0, tag=self.tag, incarnation=successor.incarnation, depth=successor.depth,
                capacity_bytes=successor.capacity_bytes, declared=self.declared, offered=self.offered,
                instead=self.info.id if self.info is not None else 0,
            )  # fmt: skip
            self._connection.post(request, (successor.ring_fd, successor.bell_fd, theirs.fileno()), go_on)

    def release_request(self) -> Unpublish | None:
        return None if self.info is None else Unpublish(id=0, publisher=self.info.id)

    def staged(self, notice: StageWanted | StageUnwanted) -> None:
        publisher = self._publisher()
        if publisher is not None:
            publisher.stage(notice)

    def counted(self, subscribers: int) -> None:
        with self.changed:
            self.subscribers = subscribers
            self.changed.notify_all()

    def fail(self, error: RingcastError) -> None:
        """From now on every send raises `error`."""
        publisher = self._publisher()
        if publisher is not None:
            publisher.fail(error)
        with self.changed:
            self.failure = error
            self.changed.notify_all()


@contextlib.contextmanager
def _fanout_sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The publisher's end and the daemon's. Raises ResourceLimit."""
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as exc:
        raise out_of_descriptors("cannot make the fan-out socket", exc) from exc
    with ours, theirs:
        yield ours, theirs


class Subscription(ABC):
    """The right to receive. Subclasses say what they ask for and what they do with a ring."""

    def __init__(self, connection: Connection, number: int, pattern: str) -> None:
        self.number = number
        self.pattern = pattern
        self.lock = threading.Lock()
        self.closed = False
        self.failure: RingcastError | None = None
        self.standing = False
        """True once a daemon has granted it. A ring not seen until then can only be younger."""
        self._connection = connection
        self._opening_error: RingcastError | None = None

    @abstractmethod
    def request(self) -> tuple[Subscribe, tuple[int, ...]]:
        """What to ask for, and the descriptors to go with it. Called under the lock."""

    @abstractmethod
    def attach(self, up: RingUp, ring_fd: int, bell_fd: int) -> None:
        """Take a ring in; the descriptors are closed afterwards. Called under the lock. Raises RingcastError."""

    @abstractmethod
    def ring_down(self, incarnation: int, end: int | None) -> None:
        """A publisher left, and what it sent ends before `end`; or, without one, a ring goes and another may follow."""

    def intake_wanted(self, notice: IntakeWanted, received: Received[Any]) -> None:
        """Receive a stream of another node in this process. Most leave it to the daemon."""
        self._connection.post(IntakeDown(id=0, intake=notice.intake, reason="not for this kind of subscription"))

    def intake_unwanted(self, number: int) -> None:  # noqa: B027 - most have none
        """Receive it no more."""

    def forget(self, ring: int) -> None:  # noqa: B027 - most need not care
        """Another tag's stream comes instead of this ring's from here on."""

    def stream_ended(self, incarnation: int, end: int) -> None:  # noqa: B027 - most need not care
        """A publisher left while none of its rings was read here."""

    def paced(self, ring: int, every: int) -> None:  # noqa: B027 - most need not care
        """For the rate that was asked for, multiples of `every` are to be read from now on."""

    def fidelity_now(self, notice: FidelityNow) -> None:  # noqa: B027 - most need not care
        """Of a range, so much is received from now on."""

    @abstractmethod
    def fail(self, error: RingcastError) -> None:
        """Nothing more will come, for this reason."""

    def register(self) -> None:
        """Ask for the right; on return every ring that is there is attached. Raises what `Connection.call` does, and
        whatever kept a ring from being attached."""
        with self.lock:
            if self.closed:
                return
            request, mailbox = self.request()
            fds = copies(mailbox)
        try:
            self._connection.call(request, Done, fds=fds, then=self._granted)
        finally:
            close_all(fds)
        if self._opening_error is not None:
            raise self._opening_error

    def release_request(self) -> Unsubscribe:
        return Unsubscribe(id=0, subscription=self.number)

    def ring_up(self, up: RingUp, received: Received[Any]) -> None:
        try:
            if received.limit is not None:
                raise received.limit
            if len(received.fds) != 2:
                raise BadMessage(f"a ring came with {len(received.fds)} descriptors, not 2")
            with self.lock:
                if not self.closed:
                    self.attach(up, *received.fds)
        except ClosedError:
            pass
        except CorruptRing as exc:
            # One bad publisher must not cost this reader the good ones.
            logger.warning("a ring on %s from %s was not taken: %s", up.info.tag, up.info, exc)
        except RingcastError as exc:
            if self.standing:
                logger.error("a ring on %s from %s cannot be read: %s", up.info.tag, up.info, exc)
                self.fail(exc)
            elif self._opening_error is None:
                self._opening_error = exc
        if up.held:  # taken or not, nobody need wait for it any longer
            self._connection.post(Attached(id=0, subscription=self.number, ring=up.ring))

    def close(self, native_close: Callable[[], None]) -> bool:
        """Close the reader unless it is closed; says whether it was this call that did."""
        with self.lock:
            if self.closed:
                return False
            self.closed = True
            native_close()
            return True

    def right_taken(self, error: RingcastError) -> None:
        """The daemon's rules changed. What is attached may be read no more."""
        self.fail(error)

    def tag_gone(self, name: str) -> None:
        self.fail(TagDestroyed(name))

    def _granted(self, answer: Done) -> None:
        for warning in answer.warnings:
            logger.warning("%s", warning)
        self.standing = True

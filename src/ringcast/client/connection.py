"""A session's control connection: one thread that reads, requests from any thread, and finding a lost daemon again.

Invariants: only the connection's thread reads; an answer's `then` and every notice run there, in the order in which
the daemon sent them; nothing that runs there waits for another request, nor for room in the socket: what the daemon
does not read at once waits in an outbox. So client and daemon never wait for each other. While the daemon is away
`call` raises DaemonUnavailable at once, and the thread looks for it without ever starting one. `post` takes no lock,
because it is called by the garbage collector, which may interrupt a thread that holds one.

Must not know what publishers, subscribers or tags are: that is its owner's business.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ringcast.client.descriptors import Waker, copies, out_of_descriptors, uid_of_peer
from ringcast.client.outbox import Outbox, OutboxFull
from ringcast.client.pending import Pending, Then, Waiting
from ringcast.control import link
from ringcast.control.answers import Answer, Done, Welcome
from ringcast.control.descriptor import Descriptor, own
from ringcast.control.notices import Notice
from ringcast.control.requests import Bye, Hello, Request
from ringcast.control.socket_path import placed_for
from ringcast.errors import BadMessage, ClosedError, DaemonUnavailable, ForeignDaemon, ForkedError, RingcastError
from ringcast.model.connection import ConnectionChange

logger = logging.getLogger("ringcast")

ANSWER_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
RETRY_FIRST_S, RETRY_LAST_S = 0.05, 1.0

_A = TypeVar("_A", bound=msgspec.Struct)


class Owner(Protocol):
    """Whom a connection works for. All methods run on the connection's thread."""

    def noticed(self, notice: Notice, received: link.Received[Any]) -> None:
        """Descriptors not taken out of `received` are closed afterwards."""

    def restore(self) -> None:
        """A daemon is there again and knows nothing; `call` works from here, for this thread only."""

    def orphaned(self, answer: Answer) -> None:
        """An answer to somebody who no longer waits: he was interrupted, or out of patience."""


class _Lost(Exception):
    """The connection broke; the argument says how."""


class Connection:
    """Open the connection and say hello.

    Raises DaemonUnavailable when nobody answers at `path`, ForeignDaemon, ResourceLimit, or what the daemon refuses
    with.
    """

    def __init__(self, path: str, owner: Owner, *, program: str, fds: Sequence[int] = ()) -> None:
        self.path = path
        self._owner = owner
        self._program = program
        self._hello_fds = tuple(fds)
        # Guards _socket's sending side, _outbox, _away and _listeners; nobody blocks under it.
        self._lock = threading.Lock()
        self._listeners: list[Callable[[ConnectionChange], None]] = []
        self._outbox = Outbox()
        self._unread: str | None = None
        """Why the connection is to be given up: the daemon does not read."""
        self._pending = Pending()
        self._posted: deque[tuple[Request, list[int], Then | None]] = deque()
        self._stop = threading.Event()
        self._closed = self._forked = False
        self._away: str | None = "not connected yet"
        self._waker = Waker()
        self._socket: socket.socket | None = None
        self._reader = threading.current_thread()
        try:
            self.welcome = self._greet()
        except BaseException:
            self._drop()
            raise
        self._away = None
        self._reader = threading.Thread(target=self._run, name="ringcast-control", daemon=True)
        self._reader.start()

    @property
    def connected(self) -> bool:
        return self._away is None and not self._closed

    def listen(self, listener: Callable[[ConnectionChange], None]) -> None:
        """Tell `listener` how the connection is now, and then of every change. It must not wait, nor call back."""
        with self._lock:
            self._listeners.append(listener)
            listener(ConnectionChange("lost", self._away) if self._away else ConnectionChange("connected"))

    def unlisten(self, listener: Callable[[ConnectionChange], None]) -> None:
        with self._lock:
            self._listeners.remove(listener)

    def check(self) -> None:
        """Raises ForkedError, ClosedError."""
        if self._forked:
            raise ForkedError("session")
        if self._closed:
            raise ClosedError("session")

    def call(
        self, request: Request, answer: type[_A], fds: Sequence[int] = (), then: Callable[[_A], None] | None = None
    ) -> _A:
        """Ask the daemon and wait. Raises DaemonUnavailable, ClosedError, ForkedError, ResourceLimit, the refusal."""
        return self.call_pages(request, answer, fds, then)[-1]

    def call_pages(
        self, request: Request, answer: type[_A], fds: Sequence[int] = (), then: Callable[[_A], None] | None = None
    ) -> list[_A]:
        """The same for an answer that may come in several packets."""
        self.check()
        return self._ask(request, answer, fds, then, ANSWER_TIMEOUT_S).answers

    def call_for_fds(self, request: Request, answer: type[_A], timeout: float) -> tuple[_A, list[Descriptor]]:
        """The same for one that comes with descriptors, and may take its time: other nodes are asked."""
        self.check()
        waiting = self._ask(request, answer, (), None, timeout)
        return waiting.answers[-1], waiting.fds

    def post(self, request: Request, fds: Sequence[int] = (), then: Then | None = None) -> None:
        """Ask without waiting; dropped when the daemon is away. Raises ResourceLimit when there are descriptors, of
        which copies are kept until they are sent."""
        if self._closed or self._forked:
            return
        self._posted.append((request, copies(fds), then))
        self._waker.wake()

    def close(self) -> None:
        """Say goodbye, end the thread, close the socket. A second call does nothing, nor does one in a forked child."""
        if self._forked:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if threading.current_thread() is not self._reader:
            try:
                self._ask(Bye(id=0), Done, (), None, CLOSE_TIMEOUT_S)
            except RingcastError:
                pass  # it hung, or left first; end of file says goodbye too
        self._stop.set()
        self._waker.wake()
        if threading.current_thread() is not self._reader:
            self._reader.join()

    def forked(self) -> None:
        """In the child after a fork: let go of what is the parent's. Takes no lock; its holder does not exist here."""
        self._forked = True
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()
        self._outbox.clear()
        self._drop_posted()

    # ---------------------------------------------------------------- asking

    def _ask(
        self, request: Request, answer: type[_A], fds: Sequence[int], then: Callable[[_A], None] | None, timeout: float
    ) -> Waiting:
        waiting = self._send(request, fds, then)
        try:
            if threading.current_thread() is self._reader:
                self._read_until(waiting, time.monotonic() + timeout)
            elif not waiting.finished.wait(timeout):
                raise DaemonUnavailable(self.path, f"no answer within {timeout:g} s")
        finally:
            waiting.orphan = True
        if waiting.error is not None:
            raise waiting.error
        for found in waiting.answers:
            if not isinstance(found, answer):
                raise DaemonUnavailable(self.path, f"it answered {type(request).__name__} with {type(found).__name__}")
        return waiting

    def _send(self, request: Request, fds: Sequence[int], then: Then | None) -> Waiting:
        with self._lock:
            if self._away is not None and threading.current_thread() is not self._reader:
                raise DaemonUnavailable(self.path, self._away)
            if self._socket is None:
                raise DaemonUnavailable(self.path, self._away or "not connected")
            number, waiting = self._pending.add(then)
            try:
                sent = self._outbox.send(self._socket, number, msgspec.structs.replace(request, id=number), fds)
            except OutboxFull as exc:
                self._pending.discard(number)
                self._unread = str(exc)
                self._waker.wake()
                raise DaemonUnavailable(self.path, str(exc)) from exc
            except OSError as exc:
                self._pending.discard(number)
                raise DaemonUnavailable(self.path, exc.strerror or str(exc)) from exc
            except RingcastError:
                self._pending.discard(number)
                raise
            if not sent and threading.current_thread() is not self._reader:
                self._waker.wake()  # the thread is to look for room
        return waiting

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._read_until(None, None)
                except _Lost as lost:
                    self._lose(str(lost))
                    logger.info("daemon at %s is away: %s", self.path, lost)
                    self._find_again()
        finally:
            self._lose("the session was closed")
            self._drop()

    def _find_again(self) -> None:
        delay_s = RETRY_FIRST_S
        while not self._stop.wait(delay_s):
            delay_s = min(2 * delay_s, RETRY_LAST_S)
            try:
                self.welcome = self._greet()
                self._owner.restore()
            except (_Lost, RingcastError) as exc:
                self._lose(str(exc))
                logger.debug("daemon at %s is still away: %s", self.path, exc)
                continue
            except Exception as exc:  # this thread is the only one that can ever find the daemon again
                self._lose(str(exc))
                logger.exception("attaching again to the daemon at %s failed", self.path)
                continue
            with self._lock:
                self._away = None
                self._tell(ConnectionChange("back"))
            logger.info("attached again to the daemon at %s", self.path)
            return

    def _greet(self) -> Welcome:
        self._drop()
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as exc:
            raise out_of_descriptors("cannot open a session", exc) from exc
        sock.settimeout(ANSWER_TIMEOUT_S)
        try:
            sock.connect(self.path)
        except OSError as exc:
            sock.close()
            raise DaemonUnavailable(self.path, exc.strerror or str(exc)) from exc
        try:
            self._check_peer(sock)
        except BaseException:
            sock.close()
            raise
        sock.setblocking(False)
        with self._lock:
            self._socket = sock
            self._unread = None
        try:
            hello = Hello(id=0, program=self._program)
            welcome: Welcome = self._ask(hello, Welcome, self._hello_fds, None, ANSWER_TIMEOUT_S).answers[0]
            return welcome
        except _Lost as lost:
            raise DaemonUnavailable(self.path, str(lost)) from lost

    def _check_peer(self, sock: socket.socket) -> None:
        """Before anything is said: rings and mailboxes are shared with whoever answers. Raises ForeignDaemon."""
        uid, own_uid = uid_of_peer(sock), os.geteuid()
        if uid not in (own_uid, 0) and not placed_for(self.path, uid):
            raise ForeignDaemon(self.path, uid, own_uid)

    def _read_until(self, waiting: Waiting | None, deadline: float | None) -> None:
        """Handle packets until `waiting` is finished, or until the connection is to be closed. Raises _Lost."""
        sock = self._socket
        if sock is None:
            raise _Lost("not connected")
        poll = select.poll()
        poll.register(self._waker.fd, select.POLLIN)
        while waiting is None or not waiting.finished.is_set():
            if self._unread is not None:
                raise _Lost(self._unread)
            poll.register(sock, select.POLLIN | (select.POLLOUT if self._outbox else 0))
            left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3
            ready = dict(poll.poll(left_ms))
            if not ready:
                raise _Lost(f"no answer within {ANSWER_TIMEOUT_S:g} s")
            if self._waker.fd in ready:
                self._waker.quiet()
                if self._stop.is_set():
                    if waiting is None:
                        return
                    raise _Lost("the session was closed")
                self._flush()
            events = ready.get(sock.fileno(), 0)
            if events & select.POLLOUT:
                self._flush_outbox(sock)
            if events & ~select.POLLOUT:
                self._handle_packet(sock)

    def _handle_packet(self, sock: socket.socket) -> None:
        try:
            received = link.receive_reply(sock)
        except BlockingIOError:
            return
        except (OSError, BadMessage) as exc:
            raise _Lost(str(exc)) from exc
        if received is None:
            raise _Lost("it closed the connection")
        try:
            message = received.message
            if isinstance(message, Notice):
                self._owner.noticed(message, received)
            else:
                fds = own(received.fds)
                received.fds.clear()
                self._pending.answered(message, self._owner.orphaned, fds, received.limit)
        except Exception:
            # Whatever is wrong with one notice must not take the others' connection with it.
            logger.exception("a control message could not be handled")
        finally:
            received.close()

    def _flush_outbox(self, sock: socket.socket) -> None:
        with self._lock:
            try:
                failed = self._outbox.flush(sock)
            except OSError as exc:
                raise _Lost(exc.strerror or str(exc)) from exc
        for number, error in failed:
            self._pending.failed(number, error)

    def _flush(self) -> None:
        while self._posted and self._unread is None:
            request, fds, then = self._posted.popleft()
            try:
                self._send(request, fds, then)
            except RingcastError as exc:
                logger.debug("%s was not sent: %s", type(request).__name__, exc)
            finally:
                link.close_all(fds)

    def _lose(self, reason: str) -> None:
        with self._lock:
            if self._away is None and not self._closed:
                self._tell(ConnectionChange("lost", reason))
            self._away = reason
        self._pending.fail(DaemonUnavailable(self.path, reason))

    def _tell(self, change: ConnectionChange) -> None:
        for listener in self._listeners:
            listener(change)

    def _drop(self) -> None:
        with self._lock:
            sock, self._socket = self._socket, None
            self._outbox.clear()
        if sock is not None:
            sock.close()
        self._drop_posted()  # it was meant for a daemon that knew what it is about

    def _drop_posted(self) -> None:
        while self._posted:
            link.close_all(self._posted.popleft()[1])

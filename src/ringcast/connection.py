"""A session's control connection: one thread that reads, requests from any thread, and finding a lost daemon again.

Invariants: only the connection's thread reads; an answer's `then` and every notice run there, in the order in which
the daemon sent them; nothing that runs there waits for another request. While the daemon is away `call` raises
DaemonUnavailable at once, and the thread looks for it without ever starting one. `post` takes no lock, because it is
called by the garbage collector, which may interrupt a thread that holds one.

Must not know what publishers, subscribers or tags are: that is its owner's business.
"""

from __future__ import annotations

import itertools
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

from ringcast.control import link
from ringcast.control.messages import Bye, Done, Hello, Notice, Refused, Request, Welcome
from ringcast.errors import BadMessage, ClosedError, DaemonUnavailable, ForkedError, RingcastError
from ringcast.refusal import refusal

logger = logging.getLogger("ringcast")

ANSWER_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
RETRY_FIRST_S, RETRY_LAST_S = 0.05, 1.0

_A = TypeVar("_A", bound=msgspec.Struct)


class Owner(Protocol):
    """Whom a connection works for. Both methods run on the connection's thread."""

    def noticed(self, notice: Notice, received: link.Received[Any]) -> None:
        """Descriptors not taken out of `received` are closed afterwards."""

    def restore(self) -> None:
        """A daemon is there again and knows nothing; `call` works from here, for this thread only."""


class _Lost(Exception):
    """The connection broke; the argument says how."""


class _Waker:
    """Gets the thread out of its poll. Closed by whoever lets go of it last, and not before: a number written to after
    its close could be somebody else's file by then."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)

    def wake(self) -> None:
        os.eventfd_write(self.fd, 1)

    def quiet(self) -> None:
        os.eventfd_read(self.fd)


class _Waiting:
    """A request under way."""

    __slots__ = ("answers", "error", "finished", "then")

    def __init__(self, then: Callable[[Any], None] | None) -> None:
        self.finished = threading.Event()
        self.answers: list[Any] = []
        self.error: Exception | None = None
        self.then = then


class Connection:
    """Open the connection and say hello.

    Raises DaemonUnavailable when nobody answers at `path`, or what the daemon refuses with.
    """

    def __init__(self, path: str, owner: Owner, *, program: str, fds: Sequence[int] = ()) -> None:
        self.path = path
        self._owner = owner
        self._program = program
        self._hello_fds = tuple(fds)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()  # guards _socket's sending side, _pending and _away
        self._pending: dict[int, _Waiting] = {}
        self._posted: deque[tuple[Request, tuple[int, ...], Callable[[Any], None] | None]] = deque()
        self._stop = threading.Event()
        self._closed = self._forked = False
        self._away: str | None = "not connected yet"
        self._waker = _Waker()
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
        return self._ask(request, answer, fds, then, ANSWER_TIMEOUT_S)

    def post(self, request: Request, fds: Sequence[int] = (), then: Callable[[Any], None] | None = None) -> None:
        """Ask without waiting; dropped when the daemon is away. Keeps copies of the descriptors until they are sent."""
        if self._closed or self._forked:
            return
        self._posted.append((request, tuple(os.dup(fd) for fd in fds), then))
        self._waker.wake()

    def close(self) -> None:
        """Say goodbye, end the thread, close the socket. A second call does nothing."""
        with self._lock:
            if self._closed or self._forked:
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
        while self._posted:
            link.close_all(self._posted.popleft()[1])

    # ---------------------------------------------------------------- asking

    def _ask(
        self, request: Request, answer: type[_A], fds: Sequence[int], then: Callable[[_A], None] | None, timeout: float
    ) -> list[_A]:
        number, waiting = self._send(request, fds, then)
        try:
            if threading.current_thread() is self._reader:
                self._read_until(waiting, time.monotonic() + timeout)
            elif not waiting.finished.wait(timeout):
                raise DaemonUnavailable(self.path, f"no answer within {timeout:g} s")
        finally:
            with self._lock:
                self._pending.pop(number, None)
        if waiting.error is not None:
            raise waiting.error
        for found in waiting.answers:
            if not isinstance(found, answer):
                raise DaemonUnavailable(self.path, f"it answered {type(request).__name__} with {type(found).__name__}")
        return waiting.answers

    def _send(self, request: Request, fds: Sequence[int], then: Callable[[Any], None] | None) -> tuple[int, _Waiting]:
        number, waiting = next(self._ids), _Waiting(then)
        with self._lock:
            if self._away is not None and threading.current_thread() is not self._reader:
                raise DaemonUnavailable(self.path, self._away)
            if self._socket is None:
                raise DaemonUnavailable(self.path, self._away or "not connected")
            self._pending[number] = waiting
            try:
                link.send(self._socket, msgspec.structs.replace(request, id=number), fds)
            except OSError as exc:
                self._pending.pop(number)
                raise DaemonUnavailable(self.path, exc.strerror or str(exc)) from exc
            except RingcastError:
                self._pending.pop(number)
                raise
        return number, waiting

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._read_until(None, None)
                except _Lost as lost:
                    self._fail_pending(str(lost))
                    logger.info("daemon at %s is away: %s", self.path, lost)
                    self._find_again()
        finally:
            self._fail_pending("the session was closed")
            self._drop()
            while self._posted:
                link.close_all(self._posted.popleft()[1])

    def _find_again(self) -> None:
        delay_s = RETRY_FIRST_S
        while not self._stop.wait(delay_s):
            delay_s = min(2 * delay_s, RETRY_LAST_S)
            try:
                self.welcome = self._greet()
                self._owner.restore()
            except (_Lost, RingcastError) as exc:
                self._fail_pending(str(exc))
                logger.debug("daemon at %s is still away: %s", self.path, exc)
                continue
            with self._lock:
                self._away = None
            logger.info("attached again to the daemon at %s", self.path)
            return

    def _greet(self) -> Welcome:
        self._drop()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(ANSWER_TIMEOUT_S)
        try:
            sock.connect(self.path)
        except OSError as exc:
            sock.close()
            raise DaemonUnavailable(self.path, exc.strerror or str(exc)) from exc
        with self._lock:
            self._socket = sock
        try:
            return self._ask(Hello(id=0, program=self._program), Welcome, self._hello_fds, None, ANSWER_TIMEOUT_S)[0]
        except _Lost as lost:
            raise DaemonUnavailable(self.path, str(lost)) from lost

    def _read_until(self, waiting: _Waiting | None, deadline: float | None) -> None:
        """Handle packets until `waiting` is finished, or until the connection is to be closed. Raises _Lost."""
        sock = self._socket
        if sock is None:
            raise _Lost("not connected")
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        poll.register(self._waker.fd, select.POLLIN)
        while waiting is None or not waiting.finished.is_set():
            left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3
            ready = {fd for fd, _ in poll.poll(left_ms)}
            if not ready:
                raise _Lost(f"no answer within {ANSWER_TIMEOUT_S:g} s")
            if self._waker.fd in ready:
                self._waker.quiet()
                if self._stop.is_set():
                    if waiting is None:
                        return
                    raise _Lost("the session was closed")
                self._flush()
            if sock.fileno() in ready:
                self._handle_packet(sock)

    def _handle_packet(self, sock: socket.socket) -> None:
        try:
            received = link.receive_reply(sock)
        except (OSError, BadMessage) as exc:
            raise _Lost(str(exc)) from exc
        if received is None:
            raise _Lost("it closed the connection")
        try:
            message = received.message
            if isinstance(message, Notice):
                self._owner.noticed(message, received)
            else:
                self._answered(message)
        except Exception:
            # Whatever is wrong with one notice must not take the others' connection with it.
            logger.exception("a control message could not be handled")
        finally:
            received.close()

    def _answered(self, message: Any) -> None:
        with self._lock:
            waiting = self._pending.get(message.id)
            if waiting is None:
                return
            if not getattr(message, "more", False):
                del self._pending[message.id]
        try:
            if isinstance(message, Refused):
                waiting.error = refusal(message)
                return
            waiting.answers.append(message)
            if waiting.then is not None:
                waiting.then(message)
        except Exception as exc:  # the asker is told, not this thread
            waiting.error = exc
        finally:
            if not getattr(message, "more", False):
                waiting.finished.set()

    def _flush(self) -> None:
        while self._posted:
            request, fds, then = self._posted.popleft()
            try:
                self._send(request, fds, then)
            except RingcastError as exc:
                logger.debug("%s was not sent: %s", type(request).__name__, exc)
            finally:
                link.close_all(fds)

    def _fail_pending(self, reason: str) -> None:
        with self._lock:
            self._away = reason
            pending, self._pending = list(self._pending.values()), {}
        for waiting in pending:
            waiting.error = DaemonUnavailable(self.path, reason)
            waiting.finished.set()

    def _drop(self) -> None:
        with self._lock:
            sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()

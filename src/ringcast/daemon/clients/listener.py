"""The listening socket: who comes in, and closing it when nobody is left.

Invariants: every accepted connection is served or told why not; without free descriptors the daemon neither spins nor
loses newcomers; a daemon that ends when idle never ends under a client that is connecting. The last holds because both
ends take the start lock: after `shutdown` the kernel refuses new connections, and those made before it are still in the
queue and are accepted.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

from ringcast.control import link
from ringcast.control.locks import FileLock
from ringcast.control.refusal import refuse
from ringcast.control.socket_path import start_lock_path
from ringcast.daemon.clients.claim import Claim
from ringcast.errors import ResourceLimit

logger = logging.getLogger("ringcast.daemon")

ACCEPTS_PER_TURN = 64
RETRY_S = 0.05
FIRST_CLIENT_S = 10.0
"""How long a daemon that ends when idle waits for the client that started it."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """`on_enter(socket)` is called for each newcomer, `on_idle` once nobody has been inside for `idle_linger_s`.

    With None it stays open. `is_empty` says whether anybody is inside now.
    """

    def __init__(
        self,
        claim: Claim,
        loop: asyncio.AbstractEventLoop,
        *,
        on_enter: Callable[[socket.socket], None],
        is_empty: Callable[[], bool],
        on_idle: Callable[[], None],
        idle_linger_s: float | None,
    ) -> None:
        self._claim = claim
        self._loop = loop
        self._on_enter = on_enter
        self._is_empty = is_empty
        self._on_idle = on_idle
        self._idle_linger_s = idle_linger_s
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False
        self._turned_away = 0
        # Given up for a moment when descriptors run out, so that a newcomer can be told why instead of left waiting.
        self._spare_fd = _spare_descriptor()

    def open(self) -> None:
        self._listen()
        if self._idle_linger_s is not None:
            self._end_after(max(FIRST_CLIENT_S, self._idle_linger_s))

    def nobody_inside(self) -> None:
        """The last client left."""
        if self._idle_linger_s is not None and not self._closed:
            self._end_after(self._idle_linger_s)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        self._loop.remove_reader(self._claim.listener.fileno())
        if self._spare_fd >= 0:
            os.close(self._spare_fd)

    def _listen(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._claim.listener.fileno(), self._accept)

    def _accept(self) -> bool:
        """Accept those who wait; returns whether there were any."""
        for count in range(ACCEPTS_PER_TURN):
            try:
                sock, _ = self._claim.listener.accept()
            except BlockingIOError:
                return count > 0
            except ConnectionAbortedError:
                continue
            except OSError as exc:
                if exc.errno not in _NO_ROOM:
                    raise
                return self._turn_away(exc) or count > 0
            self._on_enter(sock)
        return True

    def _turn_away(self, exc: OSError) -> bool:
        """Out of descriptors: tell one newcomer, then look away for a moment instead of spinning.

        Whether there was one: the kernel looks for a free descriptor before it looks for a newcomer.
        """
        try:
            os.close(self._spare_fd)
            sock, _ = self._claim.listener.accept()
            with sock:
                sock.setblocking(False)
                link.send(sock, refuse(0, no_descriptors(exc)))
        except BlockingIOError:
            return False
        except (OSError, ResourceLimit):
            pass
        finally:
            self._spare_fd = _spare_descriptor()
        self._turned_away += 1
        if self._turned_away.bit_count() == 1:  # 1st, 2nd, 4th, 8th...
            logger.warning("%d client(s) turned away: %s; raise ulimit -n", self._turned_away, exc.strerror)
        self._loop.remove_reader(self._claim.listener.fileno())
        self._loop.call_later(RETRY_S, self._listen)
        return True

    def _end_after(self, seconds: float) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(seconds, self._end)

    def _end(self) -> None:
        self._idle = None
        if not self._is_empty():
            return
        try:
            lock = FileLock.take_nowait(start_lock_path(self._claim.socket_path))
        except OSError:  # the socket's directory is gone: nobody can find this daemon any more
            self.close()
            self._on_idle()
            return
        if lock is None:  # somebody looks for a daemon right now, and shall find this one
            self._end_after(RETRY_S)
            return
        with lock:
            self._loop.remove_reader(self._claim.listener.fileno())
            self._claim.refuse_newcomers()
            if self._accept():
                self._claim.listen_again()
                self._listen()
                self._end_after(max(RETRY_S, self._idle_linger_s or 0.0))
                return
            self._claim.remove()
            lock.unlink()
        self.close()
        self._on_idle()


def no_descriptors(exc: OSError) -> ResourceLimit:
    return ResourceLimit(
        f"the daemon (process {os.getpid()}) cannot take another client ({exc.strerror})",
        "raise its limit of open files (ulimit -n), or end other clients",
    )


def _spare_descriptor() -> int:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1

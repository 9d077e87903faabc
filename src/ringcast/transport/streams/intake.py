"""The intake of tcp streams: accept them, read which channel each is, and hand it over. One thread for all newcomers.

Invariants: at most `max_newcomers` connections wait here, and when one more comes the oldest is closed, because a
correct sender names its channel at once; a newcomer that says nothing in time is closed; running out of descriptors
makes the thread pause and never ends it. What was not let in is counted by reason.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("ringcast.transport")

PREAMBLE = struct.Struct("<8sQ")
MAGIC = b"RCSTREAM"
PREAMBLE_TIMEOUT_S = 5.0
MAX_NEWCOMERS = 128
"""Connections that have not said yet which channel they are."""
ACCEPTS_PER_TURN = 64
PAUSE_S = 0.05
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Newcomer:
    __slots__ = ("deadline", "said", "stream")

    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self.stream = stream
        self.deadline = deadline
        self.said = b""


class StreamIntake:
    """`on_stream(key, fd)` is called for each stream that said its channel; it duplicates the descriptor it keeps."""

    def __init__(
        self, listener: socket.socket, on_stream: Callable[[int, int], None], *, max_newcomers: int = MAX_NEWCOMERS,
        preamble_timeout_s: float = PREAMBLE_TIMEOUT_S,
    ) -> None:  # fmt: skip
        listener.setblocking(False)
        self._listener = listener
        self._on_stream = on_stream
        self._max_newcomers = max_newcomers
        self._preamble_timeout_s = preamble_timeout_s
        self._strangers = self._crowded = self._no_room = 0
        self._newcomers: dict[int, _Newcomer] = {}  # by descriptor, oldest first
        self._closing = threading.Event()
        self._paused_until: float | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="ringcast-tcp-accept", daemon=True)
        self._thread.start()

    def counters(self) -> dict[str, int]:
        """`stranger`: said no channel in time; `crowded`: closed for a newer one; `no_room`: no descriptor was left."""
        return {"stranger": self._strangers, "crowded": self._crowded, "no_room": self._no_room}

    def close(self) -> None:
        """End the thread and close the listener. A second call does nothing."""
        self._closing.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        except OSError:
            pass
        self._thread.join()
        for newcomer in self._newcomers.values():
            newcomer.stream.close()
        self._newcomers.clear()
        self._selector.close()
        self._listener.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                for key, _ in self._selector.select(self._patience_s()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fd in self._newcomers:
                        self._hear(self._newcomers[key.fd])
                self._look_at_the_clock()
            except Exception:  # without this thread no stream would ever come in again
                logger.exception("accepting a stream failed")
                self._pause()

    def _patience_s(self) -> float | None:
        times = [newcomer.deadline for newcomer in list(self._newcomers.values())[:1]]
        if self._paused_until is not None:
            times.append(self._paused_until)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if self._paused_until is not None and now >= self._paused_until:
            self._paused_until = None
            self._selector.register(self._listener, selectors.EVENT_READ)
        for newcomer in [one for one in self._newcomers.values() if one.deadline <= now]:
            self._strangers += 1
            self._turn_out(newcomer)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                stream, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as exc:
                if not self._closing.is_set():
                    self._refuse(exc)
                return
            if len(self._newcomers) >= self._max_newcomers:
                self._crowded += 1
                self._say_seldom(self._crowded, "%d stream(s) closed: %d others say no channel", self._max_newcomers)
                self._turn_out(next(iter(self._newcomers.values())))
            stream.setblocking(False)
            self._newcomers[stream.fileno()] = _Newcomer(stream, time.monotonic() + self._preamble_timeout_s)
            self._selector.register(stream, selectors.EVENT_READ)

    def _refuse(self, exc: OSError) -> None:
        if exc.errno in _NO_ROOM:
            self._no_room += 1
            self._say_seldom(self._no_room, "%d time(s) no stream could be let in: %s; raise ulimit -n", exc.strerror)
        else:
            logger.warning("a stream could not be accepted: %s", exc)
        self._pause()

    def _pause(self) -> None:
        """The connection stays in the kernel's queue; looking at once again would spin."""
        if self._paused_until is None:
            self._selector.unregister(self._listener)
        self._paused_until = time.monotonic() + PAUSE_S

    def _hear(self, newcomer: _Newcomer) -> None:
        try:
            piece = newcomer.stream.recv(PREAMBLE.size - len(newcomer.said))
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        newcomer.said += piece
        if piece and len(newcomer.said) < PREAMBLE.size:
            return
        magic, key = PREAMBLE.unpack(newcomer.said) if piece else (b"", 0)
        self._selector.unregister(newcomer.stream)
        del self._newcomers[newcomer.stream.fileno()]
        with newcomer.stream:
            if magic != MAGIC:
                self._strangers += 1
                return
            try:
                self._on_stream(key, newcomer.stream.fileno())
            except Exception as exc:  # there was no descriptor for its copy, say: the sender opens its channel again
                self._no_room += 1
                self._say_seldom(self._no_room, "%d time(s) no stream could be let in: %s", exc)

    def _turn_out(self, newcomer: _Newcomer) -> None:
        self._selector.unregister(newcomer.stream)
        del self._newcomers[newcomer.stream.fileno()]
        newcomer.stream.close()

    @staticmethod
    def _say_seldom(count: int, what: str, why: object) -> None:
        if count.bit_count() == 1:  # 1st, 2nd, 4th, 8th...: a flood must not fill the disk
            logger.warning(what, count, why)

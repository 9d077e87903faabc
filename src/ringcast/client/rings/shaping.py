"""A declared publisher keeps to what it declared: what is too much waits or is dropped, here, before it costs anybody.

A publisher that declared nothing never comes here: its `send` is the native method itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ringcast import _core
from ringcast.errors import MessageTooLarge, WouldBlock
from ringcast.model.declared import Bucket, Declared, OnExcess

logger = logging.getLogger("ringcast")

DROPPED = -1
"""What `send` returns for a message that was dropped."""
_TELL_NS = 10_000_000_000


class Shaping:
    """`ring` takes bytes that are encoded already. Threads may share it: one message after the other is let through."""

    def __init__(
        self, ring: _core.RingWriter, name: str, of: Declared, on_excess: OnExcess, encode: Callable[[Any], Any] | None
    ) -> None:
        self.waited = 0
        self.dropped = 0
        self._ring, self._name, self._declared, self._on_excess, self._encode = ring, name, of, on_excess, encode
        self._bucket = Bucket(of)
        self._lock = threading.Lock()
        self._told_ns = -_TELL_NS

    def send(self, data: Any, *args: Any, **kwargs: Any) -> int:
        return self._through(self._ring.send, data, args, kwargs, wait=self._on_excess == "wait")

    def send_nowait(self, data: Any, *args: Any, **kwargs: Any) -> int:
        if self._on_excess == "wait" and self._bucket.wait_ns(time.monotonic_ns()):
            raise WouldBlock(f"the publisher on {self._name!r} declared a period of {self._declared.period_s:g} s")
        return self._through(self._ring.send_nowait, data, args, kwargs, wait=False)

    def send_many(self, items: Sequence[Any], event_ns: int | None = None) -> int:
        if not items:
            raise ValueError("nothing to send")
        return [self.send(item, event_ns) for item in items][-1]

    def reserve(self, length: int) -> Any:
        """Waits whatever was chosen: there is no message yet that could be dropped."""
        if length > self._declared.max_bytes:
            raise MessageTooLarge(length, self._declared.max_bytes)
        with self._in_time():
            made = self._ring.reserve(length)
            self._bucket.take(time.monotonic_ns())
            return made

    def _through(
        self, send: Callable[..., int], data: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, wait: bool
    ) -> int:
        body = data if self._encode is None else self._encode(data)
        if isinstance(body, tuple):
            body = b"".join(body)
        size = memoryview(body).nbytes
        if size > self._declared.max_bytes and self._on_excess == "wait":
            raise MessageTooLarge(size, self._declared.max_bytes)
        with self._in_time() if wait else self._lock:
            if size > self._declared.max_bytes:
                return self._drop(f"a message of {size} bytes, declared are {self._declared.max_bytes}")
            if not wait and self._bucket.wait_ns(time.monotonic_ns()):
                return self._drop(f"a message before its time, declared is one every {self._declared.period_s:g} s")
            number = send(body, *args, **kwargs)
            self._bucket.take(time.monotonic_ns())
            return number

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """With the lock, once a message may go. It sleeps without: who does not want to wait is told at once."""
        told = False
        while True:
            with self._lock:
                left = self._bucket.wait_ns(time.monotonic_ns())
                if not left:
                    yield
                    return
                if not told:
                    self.waited, told = self.waited + 1, True
                    self._tell("made to wait", f"one message every {self._declared.period_s:g} s is declared")
            time.sleep(left * 1e-9)

    def _drop(self, why: str) -> int:
        self.dropped += 1
        self._tell("dropped", why)
        return DROPPED

    def _tell(self, what: str, why: str) -> None:
        """The first one, and then once in a while with the count."""
        now = time.monotonic_ns()
        if now - self._told_ns >= _TELL_NS:
            self._told_ns = now
            logger.warning(
                "a publisher on %s sends more than it declared: %s (%s); %d dropped, %d made to wait so far",
                self._name, what, why, self.dropped, self.waited,
            )  # fmt: skip

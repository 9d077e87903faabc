"""Asking who serves a tag: a question is a message on one ring, its answer one on another (LabMap's commands and
queries).

The question's sequence number is what the answer repeats. Whoever waits receives: with one call under way no other
thread is woken, and of several the first takes answers in for all. Invariants: every call ends with an answer, with the
server's error, with ServerGone as soon as the server is known to be gone, or with TimeoutError; an answer that nobody
waits for any more is dropped.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

import msgspec

from ringcast.codec.prepared import decoder_of
from ringcast.errors import AskFailed, NobodyServes, ResourceLimit, RingcastError, ServerGone
from ringcast.message import Message, T
from ringcast.model.closing import Closing
from ringcast.model.identity import Presence
from ringcast.publisher import Publisher
from ringcast.subscriber import Subscriber
from ringcast.watch import Watch

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.codec import Codec
    from ringcast.tag import Tag

DEFAULT_TIMEOUT_S = 10.0
HEADER = struct.Struct("<QB")
"""The question's number, and what follows."""
VALUE, NOTHING, ERROR = 0, 1, 2
MOST_CALLS = 200
"""At a time: the ring that questions are on holds more."""
DEPTH = 256


def asking_name(tag: str) -> str:
    return f"@ask/{tag}"


def answering_name(tag: str, incarnation: int) -> str:
    """Where who asks on that ring is answered."""
    return f"@reply/{tag}/{incarnation:016x}"


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """What a server raised, as an answer carries it."""

    kind: str
    text: str


class Woken(RingcastError):
    """Ends a receive because a server went away; never seen by an application."""


class _Call:
    __slots__ = ("answer", "error", "server", "sign")

    def __init__(self, server: str) -> None:
        self.server = server
        self.answer: bytes | None = None
        self.error: RingcastError | None = None
        self.sign: threading.Event | None = None  # set for one whose answer another thread takes in


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class Asker(Closing, Generic[T]):
    """Made by the first `tag.ask` of a tag."""

    def __init__(self, attachment: Attachment, tag: Tag[T]) -> None:
        self.name = tag.name
        self._codec: Codec = tag.codec
        questions = tag.beside(asking_name(tag.name), DEPTH)
        self.publisher: Publisher[Any] = questions.publisher()
        self._answers_tag = tag.beside(answering_name(tag.name, self.publisher.incarnation), DEPTH)
        self.answers: Subscriber[bytes] = self._answers_tag.subscribe()
        self._rings = self.answers._rings
        self._servers: dict[str, None] = {}
        # Every call takes the lock; `Condition` would add two Python frames to each taking.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._calls: dict[int, _Call] = {}
        self._gone: set[str] = set()
        self._receiving = False
        self.on_gone: Callable[[], None] = self._wake
        """A server went away; called on the watch's thread."""
        self._watch = Watch(attachment, questions.name, ("subscriber",))
        self._watch.on_change(self._presence)
        attachment.owns(self)

    @property
    def closed(self) -> bool:
        return self.publisher.closed

    def close(self) -> None:
        self._watch.close()
        self.publisher.close()
        self.answers.close()
        try:
            self._answers_tag.destroy()
        except RingcastError:
            pass  # the server still holds its end, and removes it when it sees that nobody listens

    # ------------------------------------------------------------------ servers

    def await_server(self, timeout: float | None) -> str:
        """Who serves. Raises NobodyServes."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._servers, timeout):
                raise NobodyServes(self.name, timeout or 0.0)
            return next(iter(self._servers))

    @property
    def server(self) -> str:
        """Who serves, as far as is known; '' when nobody does."""
        return next(iter(self._servers), "")

    def _presence(self, presence: Presence) -> None:
        info = presence.subscriber
        if info is None or info.pattern != asking_name(self.name):
            return
        server = f"{info.node}/{info.pid}/{info.id}"
        with self._changed:
            if presence.came:
                self._servers[server] = None
                self._changed.notify_all()
                return
            self._servers.pop(server, None)
            self._gone.add(server)
        self.on_gone()

    def _wake(self) -> None:
        # After what is in the rings already: the server may have answered and then left.
        self._rings.fail(Woken())

    # ------------------------------------------------------------------ asking

    @property
    def under_way(self) -> int:
        """Calls without an answer so far."""
        return len(self._calls)

    def ask(self, data: T, timeout: float | None) -> Any:
        deadline = None if timeout is None else time.monotonic() + timeout
        payload = data if self._codec.encode is None else self.encoded(data)
        call = _Call(next(iter(self._servers), "") or self.await_server(timeout))
        with self._lock:
            if len(self._calls) >= MOST_CALLS:
                said = f"{MOST_CALLS} questions to the server of {self.name!r} are under way"
                raise ResourceLimit(said, "ask again when some are answered")
            number = self.publisher.send(payload)
            self._calls[number] = call
            leads = not self._receiving
            self._receiving = True
            if not leads:
                call.sign = threading.Event()
        try:
            if leads:
                self._lead(call, timeout, deadline)
            else:
                self._wait(call, deadline)
        except TimeoutError:
            raise TimeoutError(f"no answer from the server of {self.name!r} within {timeout:g} s") from None
        finally:
            if number in self._calls:
                with self._lock:
                    self._calls.pop(number, None)
                    self._let_lead()
        if call.error is not None:
            raise call.error
        return self.decoded(cast(bytes, call.answer))

    def _wait(self, call: _Call, deadline: float | None) -> None:
        """For the thread that takes answers in, or until this one is to."""
        assert call.sign is not None
        while call.answer is None and call.error is None:
            left = _left(deadline)
            if not call.sign.wait(left):
                raise TimeoutError
            with self._lock:
                call.sign.clear()
                if call.answer is not None or call.error is not None or self._receiving:
                    continue
                self._receiving = True
            self._lead(call, _left(deadline), deadline)

    def _lead(self, call: _Call, left: float | None, deadline: float | None) -> None:
        """Take in what comes until one's own answer is there; then somebody else does."""
        try:
            while True:
                try:
                    self.settle(self._rings.recv(left))
                except Woken:
                    self._end_calls_of_gone()
                if call.answer is not None or call.error is not None:
                    return
                left = _left(deadline)
        finally:
            with self._lock:
                self._receiving = False
                if self._calls:
                    self._let_lead(call)

    def _let_lead(self, but: _Call | None = None) -> None:
        """Have another call's thread take answers in, if nobody does. With the lock held."""
        if self._receiving:
            return
        for call in self._calls.values():
            if call is not but and call.sign is not None:
                call.sign.set()
                return

    def settle(self, message: Message[bytes]) -> None:
        """An answer came: give it to whoever asked."""
        data = message.data
        if len(data) < HEADER.size:
            return
        call = self._calls.pop(HEADER.unpack_from(data)[0], None)
        if call is not None:
            call.answer = data
            if call.sign is not None:
                call.sign.set()

    def take_gone(self) -> set[str]:
        """Servers that went away since the last call; receiving goes on."""
        self._rings.fail(self._rings.registration.failure)
        gone, self._gone = self._gone, set()
        return gone

    def _end_calls_of_gone(self) -> None:
        with self._changed:
            gone = self.take_gone()
            for number in [number for number, call in self._calls.items() if call.server in gone]:
                call = self._calls.pop(number)
                call.error = ServerGone(self.name, call.server)
                if call.sign is not None:
                    call.sign.set()

    # ------------------------------------------------------------------ values

    def encoded(self, data: T) -> Any:
        """Raises EncodeError."""
        encoded = data if self._codec.encode is None else self._codec.encode(data)
        return b"".join(encoded) if isinstance(encoded, tuple) else encoded

    def decoded(self, answer: bytes) -> Any:
        """Raises AskFailed, DecodeError."""
        kind = answer[HEADER.size - 1]
        if kind == NOTHING:
            return None
        payload = answer[HEADER.size :]
        if kind == ERROR:
            failure = decoder_of(Failure).decode(payload)
            raise AskFailed(self.name, failure.kind, failure.text)
        return payload if self._codec.decode is None else self._codec.decode(payload)

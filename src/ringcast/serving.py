"""Serving a tag: a function answers what others ask on it, on a thread of its own (LabMap's commands and queries).

Questions of all who ask come on one subscription; each of them is answered on a ring of its own, so nobody sees or
waits for another's answers. Invariants: every question that was read gets one answer, a value or an error; nothing that
the function raises ends the thread; a tag has one server.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from ringcast.asking import DEPTH, ERROR, HEADER, NOTHING, VALUE, Failure, answering_name, asking_name
from ringcast.client.decoding import Undecoded
from ringcast.client.rings.subscribed import SubscribedRings
from ringcast.errors import AlreadyServed, RingcastError
from ringcast.message import Message, T
from ringcast.notify import Interrupted, OnError, Service
from ringcast.publisher import Publisher

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.tag import Tag

PATIENCE_S = 2.0
"""How long a server that is about to go is waited for: one that was killed may be listed for a moment."""
POLL_S = 0.05


def check_alone(questions: Tag[bytes]) -> None:
    """Raises AlreadyServed when somebody serves, and goes on doing so."""
    deadline = time.monotonic() + PATIENCE_S
    while others := [row.info for row in questions.subscribers() if row.info.pattern == questions.name]:
        if time.monotonic() >= deadline:
            other = others[0]
            raise AlreadyServed(questions.name.removeprefix("@ask/"), other.node, other.pid, other.program)
        time.sleep(POLL_S)


class Answers(Generic[T]):
    """The rings that answers go out on, one for each who asks."""

    def __init__(self, tag: Tag[T], questions: Tag[Any]) -> None:
        self._tag = tag
        self._questions = questions
        self._encode = tag.codec.encode
        self._decode = tag.codec.decode
        self._publishers: dict[int, Publisher[Any]] = {}

    def question(self, message: Message[bytes]) -> Any:
        """Raises DecodeError."""
        return message.data if self._decode is None else self._decode(message.data)

    def knows(self, message: Message[bytes]) -> bool:
        """Whether answering needs nobody's help."""
        return message.publisher.incarnation in self._publishers

    def prepare(self, message: Message[bytes]) -> None:
        """Make the ring on which its asker is answered. Raises RingcastError."""
        incarnation = message.publisher.incarnation
        if incarnation in self._publishers:
            return
        self._sweep()
        answers = self._tag.beside(answering_name(self._tag.name, incarnation), DEPTH)
        self._publishers[incarnation] = answers.publisher()

    def send(self, message: Message[bytes], value: Any) -> None:
        """Raises EncodeError, MessageTooLarge, RingcastError."""
        if value is None:
            self._put(message, NOTHING, b"")
            return
        encoded = value if self._encode is None else self._encode(value)
        self._put(message, VALUE, b"".join(encoded) if isinstance(encoded, tuple) else encoded)

    def send_error(self, message: Message[bytes], error: BaseException) -> None:
        """Raises RingcastError."""
        failure = Failure(type(error).__name__, str(error)[:4096])
        self._put(message, ERROR, msgspec.msgpack.encode(failure))

    def close(self) -> None:
        for publisher in self._publishers.values():
            publisher.close()

    def _put(self, message: Message[bytes], kind: int, payload: Any) -> None:
        publisher = self._publishers[message.publisher.incarnation]
        publisher.send(b"".join((HEADER.pack(message.seq, kind), payload)))

    def _sweep(self) -> None:
        """Let go of rings whose asker has left."""
        # By who asks and not by who listens: of another node the question may be here before its subscription is known.
        asking = {row.info.incarnation for row in self._questions.publishers()} if self._publishers else set()
        for incarnation, publisher in list(self._publishers.items()):
            if incarnation not in asking:
                del self._publishers[incarnation]
                with contextlib.suppress(RingcastError):
                    publisher.close()
                    publisher.tag.destroy()


class Server(Service, Generic[T]):
    """Made by `tag.serve`. `delivered` counts questions that were answered, `failed` those answered with an error."""

    def __init__(
        self, attachment: Attachment, tag: Tag[T], function: Callable[[T], Any], on_error: OnError | None
    ) -> None:
        questions = tag.beside(asking_name(tag.name), DEPTH)
        check_alone(questions)
        self._attachment = attachment
        self._function = function
        self._answers = Answers(tag, questions)
        self._rings = SubscribedRings(attachment, questions.name, Undecoded(), tag=questions)
        super().__init__(self._rings, self._rings.registration, on_error)
        self._rings.registration.consumed_by(self)

    @property
    def closed(self) -> bool:
        return self._rings.closed

    def wait(self, timeout: float | None = None) -> None:
        """Until somebody closes it. Raises TimeoutError."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"still serving after {timeout:g} s")

    def close(self) -> None:
        """Serve no more: who waits for an answer gets ServerGone. A second call does nothing."""
        super().close()
        self._rings.close()
        self._answers.close()

    def _turn(self) -> None:
        message: Message[bytes] = self._rings.recv()
        try:
            self._answers.prepare(message)
            self._answer(message)
        except RingcastError as exc:  # no ring for the answer: its asker learns it by the time that passes
            self._report(exc, message)

    def _answer(self, message: Message[bytes]) -> None:
        try:
            self._answers.send(message, self._function(self._answers.question(message)))
            self.delivered += 1
        except Exception as exc:
            self._answers.send_error(message, exc)
            self._report(exc, message)

    def _wake(self) -> None:
        self._rings.registration.interrupt(self, Interrupted())

    def _ended(self) -> None:
        self._rings.registration.consumer_left(self)

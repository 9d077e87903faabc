"""What owners of variables are asked: what a variable is now, and to change it. On demand, whatever the mirror has.

A question goes out on `<tag>/@ask` and its answer comes on `<tag>/@answer`; a number brings them together. Invariants:
only the owner that is named answers; a question is over when it was answered, when its time is up or when the owner is
gone, and whoever asked learns which; nothing that comes in is believed before it was checked.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ringcast.control.answers import TagOpened
from ringcast.control.requests import OpenTag
from ringcast.errors import BrokenError
from ringcast.tag import Tag

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.message import Message
    from ringcast.publisher import Publisher
    from ringcast.subscriber import Subscriber
    from ringcast.variables.mapping import Variables

logger = logging.getLogger("ringcast")

LOOK_S = 0.1
"""How often whoever waits looks whether the owner is still there."""
MOST_NAMES = 10_000


class Array(msgspec.Struct, frozen=True):
    dtype: str
    data: bytes


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    number: int
    owner: int
    get: list[str] = []
    set: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    number: int
    values: dict[str, Any] = {}
    error: str = ""
    what: str = ""
    """The kind of error: key, type or value."""


_ERRORS: dict[str, type[Exception]] = {"key": KeyError, "type": TypeError, "value": ValueError}
_questions = msgspec.msgpack.Decoder(Question)
_answers = msgspec.msgpack.Decoder(Answer)
_DTYPES = ("<f8", "<f4", "<i8", "<i4")


def packed(value: Any) -> Any:
    """A value as msgpack carries it."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.newbyteorder("<").str, "data": value.tobytes()}
    return value.item() if isinstance(value, np.generic) else value


def unpacked_untrusted(value: Any) -> Any:
    """Raises ValueError."""
    if not isinstance(value, dict):
        return value
    try:
        array = msgspec.convert(value, Array)
    except msgspec.ValidationError as exc:
        raise ValueError(f"no value of a variable: {exc}") from exc
    if array.dtype not in _DTYPES or len(array.data) % np.dtype(array.dtype).itemsize:
        raise ValueError(f"an array of {array.dtype!r} with {len(array.data)} bytes is no value of a variable")
    return np.frombuffer(array.data, dtype=array.dtype)


class Requests:
    """Opens its tags when they are first needed."""

    def __init__(self, attachment: Attachment, variables: Variables) -> None:
        self._attachment = attachment
        self._variables = variables
        self._lock = threading.Lock()
        self._answering: tuple[Subscriber[Any], Publisher[Any]] | None = None
        self._asking: tuple[Subscriber[Any], Publisher[Any]] | None = None
        self._open: dict[int, _Pending] = {}

    # ---------------------------------------------------------------- the owner

    def serve(self) -> None:
        """Answer from now on. Raises what `tag.subscribe` does."""
        if self._answering is None:
            publisher = self._tag("@answer").publisher("skip")
            subscriber = self._tag("@ask").subscribe()
            subscriber.on_message(self._asked)
            self._answering = (subscriber, publisher)

    def _asked(self, message: Message[Any]) -> None:
        owner = self._variables.owned()
        try:
            question = _questions.decode(message.data)
        except msgspec.MsgspecError as exc:
            logger.warning("a question on variables of %r makes no sense: %s", self._variables.tag.name, exc)
            return
        if question.owner != owner.publisher.incarnation or self._answering is None:
            return
        self._answering[1].send(msgspec.msgpack.encode(self._answer(question)))

    def _answer(self, question: Question) -> Answer:
        table = self._variables.owned().table
        try:
            for name in (*question.get, *question.set):
                if table.index(name) is None:
                    raise KeyError(f"its owner has no variable {name!r} any more")
            for name, value in question.set.items():
                table.set(name, unpacked_untrusted(value))
            return Answer(question.number, {name: packed(table.get(name)) for name in question.get[:MOST_NAMES]})
        except (KeyError, TypeError, ValueError, OverflowError) as exc:
            what = next((what for what, kind in _ERRORS.items() if isinstance(exc, kind)), "value")
            return Answer(question.number, error=str(exc.args[0] if exc.args else exc), what=what)

    # ---------------------------------------------------------------- whoever asks

    def get(self, names: Iterable[str], timeout: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        deadline = time.monotonic() + timeout
        for owner, some in self._by_owner(names).items():
            found |= self._ask(Question(secrets.randbits(63), owner, get=some), deadline)
        return {name: found[name] for name in names}

    def set(self, values: Mapping[str, Any], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for owner, names in self._by_owner(values).items():
            change = {name: packed(values[name]) for name in names}
            self._ask(Question(secrets.randbits(63), owner, set=change), deadline)

    def _by_owner(self, names: Iterable[str]) -> dict[int, list[str]]:
        """Raises KeyError."""
        mirror = self._variables.settled()
        found: dict[int, list[str]] = {}
        for name in names:
            found.setdefault(mirror.owner_of(name).incarnation, []).append(name)
        return found

    def _ask(self, question: Question, deadline: float) -> dict[str, Any]:
        publisher = self._ready(max(0.0, deadline - time.monotonic()))
        pending = self._open[question.number] = _Pending()
        try:
            publisher.send(msgspec.msgpack.encode(question))
            while not pending.done.wait(min(LOOK_S, max(0.0, deadline - time.monotonic()))):
                alive = {row.info.incarnation for row in self._variables.tag.publishers() if row.alive}
                if question.owner not in alive:
                    raise BrokenError(
                        f"the owner of {', '.join([*question.get, *question.set][:3])} ended while it was asked; "
                        "the last value that it sent is in the mirror"
                    )
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"the owner of {', '.join([*question.get, *question.set][:3])} did not answer")
        finally:
            del self._open[question.number]
        answer = pending.answer
        assert answer is not None
        if answer.error:
            raise _ERRORS.get(answer.what, ValueError)(answer.error)
        return {name: unpacked_untrusted(value) for name, value in answer.values.items()}

    def _ready(self, timeout: float) -> Publisher[Any]:
        with self._lock:
            if self._asking is None:
                subscriber = self._tag("@answer").subscribe()
                subscriber.on_message(self._answered)
                self._asking = (subscriber, self._tag("@ask").publisher("skip"))
            publisher = self._asking[1]
        publisher.wait_for_subscribers(1, timeout)
        return publisher

    def _answered(self, message: Message[Any]) -> None:
        try:
            answer = _answers.decode(message.data)
        except msgspec.MsgspecError:
            return
        pending = self._open.get(answer.number)
        if pending is not None:
            pending.answer = answer
            pending.done.set()

    def _tag(self, which: str) -> Tag[Any]:
        name = f"{self._variables.tag.name}/{which}"
        opened = self._attachment.connection.call(OpenTag(id=0, name=name, requested={"codec": "bytes"}), TagOpened)
        return Tag(self._attachment, opened, None)

    def close(self) -> None:
        for pair in (self._answering, self._asking):
            for end in pair or ():
                end.close()


class _Pending:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: Answer | None = None

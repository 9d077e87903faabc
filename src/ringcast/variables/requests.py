"""What owners of variables are asked: what a variable is now, to change it, which ones there are, and how they are
sent. On demand, whatever the mirror has.

Each owner serves a tag of its own, `@variables/<tag>/<incarnation>`, by the machinery of `tag.ask`: whoever asks names
the owner by asking there, and learns at once when it is gone. Invariants: an owner's refusal is an answer; nothing that
comes in is believed before it was checked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ringcast.control.answers import TagOpened
from ringcast.control.requests import OpenTag
from ringcast.errors import BrokenError, NobodyServes, ServerGone
from ringcast.tag import Tag
from ringcast.variables.values import packed, unpacked_untrusted

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.model.identity import PublisherInfo
    from ringcast.serving import Server
    from ringcast.variables.mapping import Variables

PAGE = 500
"""Variables in one answer to who browses: it has to fit into a message."""
MOST_NAMES = 10_000


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    get: list[str] = []
    set: dict[str, Any] = {}
    browse: list[str] | None = None
    """Names and wildcards; `first` is how many to leave out."""
    first: int = 0
    info: bool = False


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    values: dict[str, Any] = {}
    types: dict[str, str] = {}
    total: int = 0
    info: dict[str, float] = {}
    error: str = ""
    what: str = ""
    """The kind of error: key, type or value."""


class Browsed(msgspec.Struct, frozen=True):
    """A variable as its owner has it."""

    name: str
    type: str
    value: Any
    owner: PublisherInfo


class OwnerInfo(msgspec.Struct, frozen=True):
    """How one owner sends."""

    owner: PublisherInfo
    variables: int
    period_s: float
    frame_s: float
    late: int


_ERRORS: dict[str, type[Exception]] = {"key": KeyError, "type": TypeError, "value": ValueError}
_questions = msgspec.msgpack.Decoder(Question)
_answers = msgspec.msgpack.Decoder(Answer)


def serving_name(tag: str, incarnation: int) -> str:
    """Where the owner with that stream is asked."""
    return f"@variables/{tag}/{incarnation:016x}"


class Requests:
    """Opens its tags when they are first needed."""

    def __init__(self, attachment: Attachment, variables: Variables) -> None:
        self._attachment = attachment
        self._variables = variables
        self._lock = threading.Lock()
        self._server: Server[Any] | None = None
        self._askers: dict[int, Tag[Any]] = {}

    # ---------------------------------------------------------------- the owner

    def serve(self, incarnation: int) -> None:
        """Answer from now on. Raises what `tag.serve` does."""
        if self._server is None:
            self._server = self._tag(incarnation).serve(self._answered)

    def _answered(self, data: bytes) -> bytes:
        try:
            answer = self._answer(_questions.decode(data))
        except (KeyError, TypeError, ValueError, OverflowError, msgspec.MsgspecError) as exc:
            what = next((what for what, kind in _ERRORS.items() if isinstance(exc, kind)), "value")
            answer = Answer(error=str(exc.args[0] if exc.args else exc), what=what)
        return msgspec.msgpack.encode(answer)

    def _answer(self, question: Question) -> Answer:
        owner = self._variables.owned()
        table = owner.table
        if question.info:
            told = {"variables": len(table), "period_s": owner.period_s, "frame_s": owner.frame_s, "late": owner.late}
            return Answer(info=told)
        if question.browse is not None:
            chosen = table.select(question.browse)
            names = [name for index in chosen[question.first :][:PAGE].tolist() if (name := table.name(index))]
            return Answer(
                {name: packed(table.get(name)) for name in names}, {name: table.type(name) or "" for name in names},
                len(chosen),
            )  # fmt: skip
        for name in (*question.get, *question.set):
            if table.index(name) is None:
                raise KeyError(f"its owner has no variable {name!r} any more")
        for name, value in question.set.items():
            table.set(name, unpacked_untrusted(value))
        return Answer({name: packed(table.get(name)) for name in question.get[:MOST_NAMES]})

    # ---------------------------------------------------------------- whoever asks

    @property
    def under_way(self) -> int:
        """Questions without an answer so far."""
        return sum(tag.asker().under_way for tag in list(self._askers.values()))

    def get(self, names: Iterable[str], timeout: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        deadline = time.monotonic() + timeout
        for owner, some in self._by_owner(names).items():
            found |= self._ask(owner, Question(get=some), deadline).values
        return {name: unpacked_untrusted(found[name]) for name in names}

    def set(self, values: Mapping[str, Any], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for owner, names in self._by_owner(values).items():
            self._ask(owner, Question(set={name: packed(values[name]) for name in names}), deadline)

    def browse(self, patterns: list[str], timeout: float) -> list[Browsed]:
        found = []
        deadline = time.monotonic() + timeout
        for owner in self._owners():
            first, total = 0, 1
            while first < total:
                page = self._ask(owner.incarnation, Question(browse=patterns, first=first), deadline)
                found += [
                    Browsed(name, page.types.get(name, ""), unpacked_untrusted(value), owner)
                    for name, value in page.values.items()
                ]
                first, total = first + PAGE, page.total
        return found

    def info(self, timeout: float) -> list[OwnerInfo]:
        deadline = time.monotonic() + timeout
        told = [(owner, self._ask(owner.incarnation, Question(info=True), deadline).info) for owner in self._owners()]
        return [
            OwnerInfo(owner, int(info.get("variables", 0)), info.get("period_s", 0.0), info.get("frame_s", 0.0),
                      int(info.get("late", 0)))
            for owner, info in told
        ]  # fmt: skip

    def _owners(self) -> list[PublisherInfo]:
        return [row.info for row in self._variables.tag.publishers() if row.alive]

    def _by_owner(self, names: Iterable[str]) -> dict[int, list[str]]:
        """Raises KeyError."""
        mirror = self._variables.settled()
        found: dict[int, list[str]] = {}
        for name in names:
            found.setdefault(mirror.owner_of(name).incarnation, []).append(name)
        return found

    def _ask(self, incarnation: int, question: Question, deadline: float) -> Answer:
        said = f"the owner of {', '.join([*question.get, *question.set][:3]) or repr(self._variables.tag.name)}"
        gone = BrokenError(f"{said} ended while it was asked; the last value that it sent is in the mirror")
        tag = self._asker(incarnation)
        # Of one that has ended nobody would hear again: only a living one is waited for.
        if not tag.asker().server and incarnation not in {owner.incarnation for owner in self._owners()}:
            self._forget(incarnation)
            raise gone
        try:
            data = tag.ask(msgspec.msgpack.encode(question), max(0.0, deadline - time.monotonic()))
        except ServerGone:
            self._forget(incarnation)
            raise gone from None
        except (TimeoutError, NobodyServes):
            raise TimeoutError(f"{said} did not answer") from None
        try:
            answer = _answers.decode(data)
        except msgspec.MsgspecError as exc:
            raise BrokenError(f"{said} gave an answer that is none: {exc}") from exc
        if answer.error:
            raise _ERRORS.get(answer.what, ValueError)(answer.error)
        return answer

    def _asker(self, incarnation: int) -> Tag[Any]:
        with self._lock:
            if incarnation not in self._askers:
                self._askers[incarnation] = self._tag(incarnation)
            return self._askers[incarnation]

    def _forget(self, incarnation: int) -> None:
        with self._lock:
            tag = self._askers.pop(incarnation, None)
        if tag is not None:
            tag.asker().close()

    def _tag(self, incarnation: int) -> Tag[Any]:
        name = serving_name(self._variables.tag.name, incarnation)
        opened = self._attachment.connection.call(OpenTag(id=0, name=name, requested={"codec": "bytes"}), TagOpened)
        return Tag(self._attachment, opened, None)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for incarnation in list(self._askers):
            self._forget(incarnation)

"""Subscriptions and histories whose messages are bytes as their codec wrote them: pages decode for themselves."""

from __future__ import annotations

from typing import Any

from ringcast.client.decoding import Undecoded, scaled
from ringcast.client.ring_following import Scaling, check_reliable
from ringcast.errors import HistoryError
from ringcast.gateway import requests
from ringcast.history import History
from ringcast.message import Message
from ringcast.model.tag import TagAttributes, check_pattern, is_pattern
from ringcast.session import Session
from ringcast.subscriber import Subscriber
from ringcast.tag import Tag


def subscribe(session: Session, asked: requests.Subscribe) -> Subscriber[bytes]:
    """Raises as `session.subscribe` does."""
    options = Scaling(
        asked.every, asked.at, asked.transport, asked.size, asked.rate_hz, asked.ordered, asked.urgency
    ).check()
    tag: Tag[Any] | None = None
    known: list[TagAttributes] = []
    if is_pattern(asked.pattern):
        if asked.size is not None:
            known = [row.attributes for row in session.tags(asked.pattern)]
    else:
        tag = session.tag(asked.pattern)
        known = [tag.attributes]
        if asked.reliable:
            check_reliable(tag.name, tag.attributes)
    if asked.size is not None:
        for attributes in known:
            scaled(attributes, asked.size)
    subscriber: Subscriber[bytes] = Subscriber(
        session._attachment, check_pattern(asked.pattern), Undecoded(size=asked.size), start=asked.begins(),
        reliable=asked.reliable, scaling=options, tag=tag,
    )  # fmt: skip
    try:
        subscriber.fileno()  # asks the daemon, and so not in the event loop
    except BaseException:
        subscriber.close()
        raise
    return subscriber


def attributes_of(session: Session, tag: str, size: tuple[int, int] | None) -> TagAttributes:
    """How a tag's messages are to be read, at the size they come in. Raises as `session.tags` does."""
    rows = session.tags(tag)
    attributes = rows[0].attributes if rows else TagAttributes()
    return attributes if size is None else scaled(attributes, size)


_ARGUMENTS = {"latest": (0, 1), "at": (1, 1), "range": (2, 2), "since": (1, 1), "before": (1, 1), "between": (2, 2)}


class Pulled:
    """What one pull found."""

    def __init__(self) -> None:
        self.messages: list[Message[bytes]] = []
        self.bounds: tuple[int, int] | None = None
        self.unanswered: tuple[str, ...] = ()
        self.attributes = TagAttributes()


def pull(session: Session, asked: requests.Pull, most: int) -> Pulled:
    """Raises as `History` does, and UnknownTag: looking never creates a tag."""
    tag: Tag[Any] = session.tag(asked.tag, create=False)
    numbers = [int(argument) for argument in asked.arguments]
    found = Pulled()
    found.attributes = tag.attributes if asked.size is None else scaled(tag.attributes, asked.size)
    publisher = None if asked.publisher is None else int(asked.publisher)
    with tag.history(
        asked.depth, publisher, at=asked.at, every=asked.every, size=asked.size, encoded=True
    ) as history:  # fmt: skip
        _look(history, asked.what, numbers, most, found)
        found.unanswered = history.unanswered
    return found


def _look(history: History[bytes], what: str, numbers: list[int], most: int, found: Pulled) -> None:
    if what == "bounds":
        found.bounds = history.bounds()
        return
    least, most_arguments = _ARGUMENTS[what]
    if not least <= len(numbers) <= most_arguments:
        raise ValueError(f"{what} takes {least} to {most_arguments} numbers, not {len(numbers)}")
    given = getattr(history, what)(*numbers)
    found.messages = given if isinstance(given, list) else [given]
    if len(found.messages) > most:
        raise HistoryError(
            f"{len(found.messages)} messages were found, and one pull returns at most {most}; ask for a shorter range"
        )

"""Who sends and who receives, as the tag table and every message show it. Pure values."""

from __future__ import annotations

from typing import Literal

import msgspec


class PublisherInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent a message. A stream is (node, id, incarnation): a publisher that restarts is another one."""

    id: int
    node: str
    tag: str
    incarnation: int
    pid: int
    user: str
    program: str = ""

    def __str__(self) -> str:
        return f"{self.node}/{self.pid}/{self.id}"


class SubscriberInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who receives. `pattern` is what was asked for: a tag's name, or a wildcard. `id` is what its daemon calls it;
    `incarnation` stays the same when the daemon is restarted."""

    id: int
    node: str
    pattern: str
    pid: int
    user: str
    reliable: bool = False
    program: str = ""
    incarnation: int = 0


PresenceKind = Literal["node", "publisher", "subscriber"]


class Presence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something came or went: a node, or with what is known of it a publisher or a subscriber."""

    kind: PresenceKind
    came: bool
    node: str
    publisher: PublisherInfo | None = None
    subscriber: SubscriberInfo | None = None

    @property
    def info(self) -> PublisherInfo | SubscriberInfo | None:
        """Of whichever of the two it is; None of a node."""
        return self.publisher or self.subscriber

    @property
    def topic(self) -> str:
        """The tag of a publisher, the pattern of a subscriber, '' of a node."""
        if self.publisher is not None:
            return self.publisher.tag
        return self.subscriber.pattern if self.subscriber is not None else ""

    def __str__(self) -> str:
        verb = "came" if self.came else "went"
        if self.info is None:
            return f"{self.kind} {self.node} {verb}"
        return f"{self.kind} {self.node}/{self.info.pid}/{self.info.id} of {self.topic} {verb}"

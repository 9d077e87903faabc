"""Who sends and who receives, as the tag table and every message show it. Pure values."""

from __future__ import annotations

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
    """Who receives. `pattern` is what was asked for: a tag's name, or a wildcard."""

    id: int
    node: str
    pattern: str
    pid: int
    user: str
    reliable: bool = False
    program: str = ""

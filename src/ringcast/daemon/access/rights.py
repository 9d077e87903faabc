"""Which rights a request needs, and whether whoever asks has them. Pure.

Invariant: a request that is let through asks for nothing that its client has no right to; what is refused is told with
the rule that would allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ringcast.control.requests import (
    DestroyTag,
    GetSettings,
    HoldBuffer,
    ListChannels,
    ListHistories,
    ListPublishers,
    ListSubscribers,
    LoadModel,
    ObserveMesh,
    OpenTag,
    Publish,
    PullHistory,
    Request,
    SetChannel,
    Subscribe,
    Watch,
)
from ringcast.errors import NotAllowed
from ringcast.security.rules import EVERYTHING, Rules, Who, missing


class Need(NamedTuple):
    """One action on the tags of a pattern; with `or_other`, any other right on them does as well."""

    action: str
    pattern: str
    or_other: bool = False


class Rights:
    """`rules` are exchanged when the configuration is read again."""

    def __init__(self, node: str, rules: Rules) -> None:
        self.rules = rules
        self._node = node

    def check(self, who: Who | None, request: Request, exists: Callable[[str], bool]) -> None:
        """`exists` knows tags. Raises NotAllowed."""
        if who is None or self.rules.is_owner(who):
            return
        for need in needs(request, exists):
            if not self.rules.allows(who, need.action, need.pattern) and not (
                need.or_other and self.rules.allows_any(who, need.pattern)
            ):
                raise self.refusal(who, need.action, need.pattern)

    def check_known(self, who: Who) -> None:
        """Whether it may connect at all. Raises NotAllowed."""
        if not self.rules.is_known(who):
            raise self.refusal(who, "subscribe", EVERYTHING)

    def sees(self, who: Who | None, tag: str) -> bool:
        """Whether it may know of a tag."""
        return who is None or self.rules.allows_any(who, tag)

    def may_read(self, who: Who, tag: str) -> bool:
        return self.rules.allows(who, "subscribe", tag) or self.rules.allows(who, "pull", tag)

    def refusal(self, who: Who, action: str, pattern: str) -> NotAllowed:
        rule = missing("user", who.user or str(who.uid), action, pattern)
        remedy = f"the administrator of the node can allow it in ringcast.toml: {rule}"
        return NotAllowed(str(who), action, pattern, self._node, remedy)


def needs(request: Request, exists: Callable[[str], bool]) -> Iterator[Need]:
    match request:
        case OpenTag(name=name, create=create):
            yield Need("create" if create and not exists(name) else "subscribe", name, or_other=exists(name))
        case DestroyTag(name=name):
            yield Need("destroy", name)
        case Publish(tag=tag):
            yield Need("publish", tag)
        case Subscribe(pattern=pattern, role=role):
            yield Need("subscribe" if role == "subscriber" else "pull", pattern)
        case PullHistory(query=query):
            yield Need("pull", query.tag)
        case HoldBuffer(tag=tag) | ListHistories(tag=tag):
            yield Need("pull", tag)
        case SetChannel(tag=tag):
            yield Need("set", tag)
        case ListPublishers(tag=tag) | ListSubscribers(tag=tag):
            yield Need("subscribe", tag, or_other=True)
        case Watch(pattern=pattern, kinds=kinds):
            if any(kind != "node" for kind in kinds):
                yield Need("subscribe", pattern, or_other=True)
        case ListChannels() | GetSettings() | ObserveMesh() | LoadModel():
            yield Need("set", EVERYTHING)
        case _:
            pass  # about what the client has already, or open to everybody who may connect

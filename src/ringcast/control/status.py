"""Rows of what a daemon lists: tags, publishers, subscribers, nodes, channels. Values; messages carry pages of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Setting
from ringcast.model.tag import TagAttributes


class TagStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast tags`. Counters are sums over the publishers on this node."""

    name: str
    id: int
    attributes: TagAttributes
    publishers: int
    subscribers: int
    sent: int
    bytes: int
    last_sent_ns: int
    settings: dict[str, Setting] = {}
    """Administrative overrides by receiving node; '' is every node."""


class PublisherStatus(msgspec.Struct, frozen=True, kw_only=True):
    info: PublisherInfo
    alive: bool
    counters: dict[str, int]
    last_sent_ns: int


class SubscriberStatus(msgspec.Struct, frozen=True, kw_only=True):
    info: SubscriberInfo
    counters: dict[str, int]
    latency: list[int]


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast nodes`."""

    name: str
    state: str
    """'here', 'suspect', 'gone', or 'conflict' of a daemon whose name is another's."""
    me: bool
    linked: bool
    incarnation: int
    control: tuple[str, ...]
    data: tuple[str, ...]


class ChannelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast channels`, as the node at one end of it counts. `node` is the other end.

    What a publisher pushes by itself is counted where it arrives; there `messages`, `bytes` and `lost` of the outgoing
    channel are None.
    """

    direction: Literal["in", "out"]
    node: str
    tag: str
    incarnation: int
    """The publisher's."""
    transport: str
    every: int
    reliable: bool
    messages: int | None
    bytes: int | None
    lost: int | None
    counters: dict[str, int]
    """Everything else that this end counts: duplicates, late, and more."""
    size: tuple[int, int] | None = None
    rate_hz: float = 0.0
    """What `every` follows; 0 when it is fixed."""


class SettingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ringcast config show`. `origin` is 'default', 'flag', 'environment', or the file and its line."""

    key: str
    value: str
    origin: str

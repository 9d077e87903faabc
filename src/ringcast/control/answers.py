"""What a daemon answers a client. An answer repeats the `id` of its request."""

from __future__ import annotations

from typing import Any

from ringcast.control.status import (
    ChannelStatus,
    NodeStatus,
    PublisherStatus,
    SettingStatus,
    SubscriberStatus,
    TagStatus,
)
from ringcast.control.wire import PROTOCOL_VERSION, ControlMessage
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes


class Welcome(ControlMessage, frozen=True, tag="welcome"):
    id: int
    node: str
    daemon_pid: int
    version: int = PROTOCOL_VERSION


class TagOpened(ControlMessage, frozen=True, tag="opened"):
    id: int
    name: str
    tag_id: int
    attributes: TagAttributes


class Published(ControlMessage, frozen=True, tag="published"):
    id: int
    info: PublisherInfo
    subscribers: int


class Done(ControlMessage, frozen=True, tag="done", omit_defaults=True):
    """`warnings` are for whoever asked, in words."""

    id: int
    warnings: list[str] = []


class TagListing(ControlMessage, frozen=True, tag="tags"):
    """`more` says that another packet with the same id follows."""

    id: int
    rows: list[TagStatus]
    more: bool = False


class PublisherListing(ControlMessage, frozen=True, tag="publishers"):
    id: int
    rows: list[PublisherStatus]
    more: bool = False


class SubscriberListing(ControlMessage, frozen=True, tag="subscribers"):
    id: int
    rows: list[SubscriberStatus]
    more: bool = False


class NodeListing(ControlMessage, frozen=True, tag="nodes"):
    id: int
    rows: list[NodeStatus]
    more: bool = False


class MeshObserved(ControlMessage, frozen=True, tag="mesh_observed"):
    """A piece of an encoded `ringcast.control.placing.Observation`."""

    id: int
    piece: bytes
    more: bool = False


class ChannelListing(ControlMessage, frozen=True, tag="channels"):
    """`dropped` is {transport: {reason: how much came that nobody asked for}}, on every page the same."""

    id: int
    rows: list[ChannelStatus]
    dropped: dict[str, dict[str, int]]
    more: bool = False


class HistoryPulled(ControlMessage, frozen=True, tag="pulled"):
    """A `service.PullAnswer` of `size` bytes, encoded: in `answer`, or, when that is empty, in sealed memory.
    Descriptors: that memory, if so."""

    id: int
    size: int
    answer: bytes = b""


class Status(ControlMessage, frozen=True, tag="daemon"):
    id: int
    node: str
    pid: int
    version: str
    uptime_s: float
    clients: int
    tags: int
    rings: int
    budget_bytes: int
    used_bytes: int
    bad_messages: int
    until_idle: bool
    slow_clients: int = 0
    """Disconnected because they did not read their notices."""
    lingering: int = 0
    """Of `rings`, those that outlived their publishers."""
    refusals: dict[str, str] = {}
    """{address: why this daemon and the one there have no link}"""
    mesh: str = ""
    config: str = ""
    """The configuration file that was read."""
    clocks: list[str] = []
    """Clocks that disagree though a common source is set, in words."""
    metrics: str = ""
    """Where metrics are served."""
    mistakes: int = 0
    """Requests that failed by an error of the daemon; each is in its log."""
    identity: str = ""
    """The folder of the certificate by which this node proves its name."""
    exposed: bool = False
    """Others can reach this daemon, and it asks nobody who they are."""


class SettingListing(ControlMessage, frozen=True, tag="setting_rows"):
    id: int
    rows: list[SettingStatus]
    more: bool = False


class Refused(ControlMessage, frozen=True, tag="refused"):
    """`error` names a class of ringcast.errors, `fields` its arguments."""

    id: int
    error: str
    fields: dict[str, Any]


Answer = (
    Welcome | TagOpened | Published | Done | TagListing | PublisherListing | SubscriberListing | NodeListing
    | ChannelListing | MeshObserved | HistoryPulled | Status | SettingListing | Refused
)  # fmt: skip

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
from ringcast.control.wire import PROTOCOL_VERSION, Numbered
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes


class Welcome(Numbered, frozen=True, tag="welcome"):
    node: str
    daemon_pid: int
    version: int = PROTOCOL_VERSION


class TagOpened(Numbered, frozen=True, tag="opened"):
    name: str
    tag_id: int
    attributes: TagAttributes


class Published(Numbered, frozen=True, tag="published"):
    """`warnings` are for whoever asked, in words."""

    info: PublisherInfo
    subscribers: int
    warnings: list[str] = []


class Done(Numbered, frozen=True, tag="done", omit_defaults=True):
    """`warnings` are for whoever asked, in words."""

    warnings: list[str] = []


class TagListing(Numbered, frozen=True, tag="tags"):
    """`more` says that another packet with the same id follows."""

    rows: list[TagStatus]
    more: bool = False


class PublisherListing(Numbered, frozen=True, tag="publishers"):
    rows: list[PublisherStatus]
    more: bool = False


class SubscriberListing(Numbered, frozen=True, tag="subscribers"):
    rows: list[SubscriberStatus]
    more: bool = False


class NodeListing(Numbered, frozen=True, tag="nodes"):
    rows: list[NodeStatus]
    more: bool = False


class MeshObserved(Numbered, frozen=True, tag="mesh_observed"):
    """A piece of an encoded `ringcast.control.placing.Observation`."""

    piece: bytes
    more: bool = False


class ChannelListing(Numbered, frozen=True, tag="channels"):
    """`dropped` is {transport: {reason: how much came that nobody asked for}}, on every page the same."""

    rows: list[ChannelStatus]
    dropped: dict[str, dict[str, int]]
    more: bool = False


class HistoryPulled(Numbered, frozen=True, tag="pulled"):
    """A `service.PullAnswer` of `size` bytes, encoded: in `answer`, or, when that is empty, in sealed memory.
    Descriptors: that memory, if so."""

    size: int
    answer: bytes = b""


class Status(Numbered, frozen=True, tag="daemon"):
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


class SettingListing(Numbered, frozen=True, tag="setting_rows"):
    rows: list[SettingStatus]
    more: bool = False


class Refused(Numbered, frozen=True, tag="refused"):
    """`error` names a class of ringcast.errors, `fields` its arguments."""

    error: str
    fields: dict[str, Any]


Answer = (
    Welcome | TagOpened | Published | Done | TagListing | PublisherListing | SubscriberListing | NodeListing
    | ChannelListing | MeshObserved | HistoryPulled | Status | SettingListing | Refused
)  # fmt: skip

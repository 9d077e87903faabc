"""Every control message, as a value. Each request carries an `id`, which its answer repeats; notices carry none.

One packet of a SOCK_SEQPACKET Unix socket is one message: MessagePack of a tagged struct, with the descriptors
named in a struct's docstring travelling beside it (SCM_RIGHTS), in that order.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ringcast.control.service import Extent, Pull, Rate
from ringcast.control.status import (
    ChannelStatus,
    NodeStatus,
    PublisherStatus,
    SettingStatus,
    SubscriberStatus,
    TagStatus,
)
from ringcast.model.identity import Presence, PresenceKind, PublisherInfo
from ringcast.model.tag import TagAttributes

PROTOCOL_VERSION = 1

Place = Annotated[str, msgspec.Meta(max_length=255)]
TransportName = Annotated[str, msgspec.Meta(max_length=255)]


class _Wire(msgspec.Struct, frozen=True, kw_only=True, tag_field="t"):
    pass


# ------------------------------------------------------------------ requests: client to daemon


class Hello(_Wire, frozen=True, tag="hello"):
    """First message of a session. Descriptors: the session's counter page (optional)."""

    id: int
    version: int = PROTOCOL_VERSION
    program: str = ""


class OpenTag(_Wire, frozen=True, tag="open"):
    """Create or join. `requested` holds only the attributes that the caller named."""

    id: int
    name: str
    requested: dict[str, Any] = {}
    create: bool = True


class DestroyTag(_Wire, frozen=True, tag="destroy"):
    id: int
    name: str
    force: bool = False


class Publish(_Wire, frozen=True, tag="publish"):
    """Ask for the publication right. Descriptors: ring, bell, the daemon's end of the fan-out socket."""

    id: int
    tag: str
    incarnation: int
    depth: int
    capacity_bytes: int


class Unpublish(_Wire, frozen=True, tag="unpublish"):
    id: int
    publisher: int


class Subscribe(_Wire, frozen=True, tag="subscribe"):
    """Ask for the subscription right. Descriptors: a mailbox (when `mailbox`).

    A `RingUp` notice for each ring that is there comes before the answer. A history sees rings that outlived their
    publishers too, and is nobody's subscriber.
    """

    id: int
    pattern: str
    subscription: int
    role: Literal["subscriber", "history"] = "subscriber"
    reliable: bool = False
    mailbox: bool = False
    counter_index: int = -1
    every: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1
    at: Place = "auto"
    transport: TransportName = ""
    start: Literal["new", "latest", "earliest"] | Annotated[int, msgspec.Meta(ge=0)] = "new"
    size: tuple[Extent, Extent] | None = None
    rate_hz: Rate = 0.0
    ordered: bool = True


class StageUp(_Wire, frozen=True, tag="stage_up"):
    """The stage that was wanted runs. Descriptors: its ring, its bell, the daemon's end of its fan-out socket."""

    id: int
    stage: int
    incarnation: int
    depth: int
    capacity_bytes: int


class StageDown(_Wire, frozen=True, tag="stage_down"):
    """The stage ended, or cannot be: no scaler is installed here, say."""

    id: int
    stage: int
    reason: str = ""


class Attached(_Wire, frozen=True, tag="attached"):
    """A ring that came with `held` has a reader now, for whose place the daemon has been waiting."""

    id: int
    subscription: int
    ring: int


class Move(_Wire, frozen=True, tag="move"):
    """Have the streams of a subscription scaled elsewhere, and carried by another transport; None leaves one as it is.
    Answered when they come that way, or after a moment if they do not yet."""

    id: int
    subscription: int
    at: Place | None = None
    transport: TransportName | None = None


class SetChannel(_Wire, frozen=True, tag="set"):
    """An administrator's word on the channels of a tag to a node ('' is every node): None leaves one as it is, '' takes
    it back."""

    id: int
    tag: str
    node: Annotated[str, msgspec.Meta(max_length=255)] = ""
    at: Place | None = None
    transport: TransportName | None = None


class UseMailbox(_Wire, frozen=True, tag="mailbox"):
    """From now on publishers ring this mailbox for the subscription. Descriptors: the mailbox."""

    id: int
    subscription: int


class Unsubscribe(_Wire, frozen=True, tag="unsubscribe"):
    id: int
    subscription: int


class Watch(_Wire, frozen=True, tag="watch"):
    """Be told what comes and goes. `Presences` with all that is there come before the answer; a second request with
    the same number is given all again. A node matches any pattern."""

    id: int
    watch: int
    kinds: Annotated[list[PresenceKind], msgspec.Meta(max_length=3)]
    pattern: str = "**"


class Unwatch(_Wire, frozen=True, tag="unwatch"):
    id: int
    watch: int


class ListTags(_Wire, frozen=True, tag="list_tags"):
    id: int
    pattern: str = "**"
    local: bool = False


class ListPublishers(_Wire, frozen=True, tag="list_publishers"):
    id: int
    tag: str


class ListSubscribers(_Wire, frozen=True, tag="list_subscribers"):
    """Of every node; with `local`, of this one only."""

    id: int
    tag: str
    local: bool = False


class ListNodes(_Wire, frozen=True, tag="list_nodes"):
    id: int


class ListChannels(_Wire, frozen=True, tag="list_channels"):
    id: int


class ObserveMesh(_Wire, frozen=True, tag="observe_mesh"):
    """What does the mesh look like to one who places proxies? `measured`: ask the other nodes too, for rates and
    distances; without, only who subscribes to what and where proxies sit."""

    id: int
    measured: bool = True


class ListHistories(_Wire, frozen=True, tag="list_histories"):
    """Whose messages of a tag can be pulled, on whichever node; answered with a PublisherListing."""

    id: int
    tag: str


class PullHistory(_Wire, frozen=True, tag="pull"):
    """Read rings that may be another node's. `at` is "publisher", "subscriber" or "node:NAME"."""

    id: int
    at: Annotated[str, msgspec.Meta(max_length=255)]
    query: Pull


class HoldBuffer(_Wire, frozen=True, tag="hold"):
    """Hold so many messages of a tag's publishers for a history, on this node (`at` "subscriber") or a named one.
    `buffer` is the client's own number for it."""

    id: int
    buffer: int
    tag: str
    at: Place
    depth: Annotated[int, msgspec.Meta(ge=1, le=2**24)]
    every: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1


class DropBuffer(_Wire, frozen=True, tag="drop"):
    id: int
    buffer: int


class GetStatus(_Wire, frozen=True, tag="status"):
    id: int


class GetSettings(_Wire, frozen=True, tag="settings"):
    id: int


class Bye(_Wire, frozen=True, tag="bye"):
    id: int


Request = (
    Hello | OpenTag | DestroyTag | Publish | Unpublish | Subscribe | UseMailbox | Unsubscribe | Attached | Move
    | SetChannel | Watch | Unwatch | StageUp | StageDown
    | ListTags | ListPublishers | ListSubscribers | ListNodes | ListChannels | ListHistories
    | PullHistory | HoldBuffer | DropBuffer | ObserveMesh | GetStatus | GetSettings | Bye
)  # fmt: skip


# ------------------------------------------------------------------ answers: daemon to client


class Welcome(_Wire, frozen=True, tag="welcome"):
    id: int
    node: str
    daemon_pid: int
    version: int = PROTOCOL_VERSION


class TagOpened(_Wire, frozen=True, tag="opened"):
    id: int
    name: str
    tag_id: int
    attributes: TagAttributes


class Published(_Wire, frozen=True, tag="published"):
    id: int
    info: PublisherInfo
    subscribers: int


class Done(_Wire, frozen=True, tag="done"):
    id: int


class TagListing(_Wire, frozen=True, tag="tags"):
    """`more` says that another packet with the same id follows."""

    id: int
    rows: list[TagStatus]
    more: bool = False


class PublisherListing(_Wire, frozen=True, tag="publishers"):
    id: int
    rows: list[PublisherStatus]
    more: bool = False


class SubscriberListing(_Wire, frozen=True, tag="subscribers"):
    id: int
    rows: list[SubscriberStatus]
    more: bool = False


class NodeListing(_Wire, frozen=True, tag="nodes"):
    id: int
    rows: list[NodeStatus]
    more: bool = False


class MeshObserved(_Wire, frozen=True, tag="mesh_observed"):
    """A piece of an encoded `ringcast.control.placing.Observation`."""

    id: int
    piece: bytes
    more: bool = False


class ChannelListing(_Wire, frozen=True, tag="channels"):
    """`dropped` is {transport: {reason: how much came that nobody asked for}}, on every page the same."""

    id: int
    rows: list[ChannelStatus]
    dropped: dict[str, dict[str, int]]
    more: bool = False


class HistoryPulled(_Wire, frozen=True, tag="pulled"):
    """A `service.PullAnswer` of `size` bytes, encoded: in `answer`, or, when that is empty, in sealed memory.
    Descriptors: that memory, if so."""

    id: int
    size: int
    answer: bytes = b""


class Status(_Wire, frozen=True, tag="daemon"):
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
    """{address: why this daemon and the one there do not get along}"""
    mesh: str = ""
    config: str = ""
    """The configuration file that was read."""
    metrics: str = ""
    """Where metrics are served."""
    mistakes: int = 0
    """What the daemon failed to do by an error of its own; its log has each."""


class SettingListing(_Wire, frozen=True, tag="setting_rows"):
    id: int
    rows: list[SettingStatus]
    more: bool = False


class Refused(_Wire, frozen=True, tag="refused"):
    """`error` names a class of ringcast.errors, `fields` its arguments."""

    id: int
    error: str
    fields: dict[str, Any]


# ------------------------------------------------------------------ notices: daemon to client


class RingUp(_Wire, frozen=True, tag="ring_up"):
    """A ring to read. Descriptors: ring, bell. `born_after`: it is younger than the subscription.

    `ring` is the ring's own incarnation, which on a mirror is not its publisher's; `every` is what the ring has left of
    the stream: its messages are those whose number is a multiple of it. `size` is what they were scaled to on the way.
    With `pace`, read multiples of that, until `RingPaced` says otherwise. `next_seq` is the first number that was not
    sent yet when the subscription was granted, before anybody was told of it.
    """

    subscription: int
    info: PublisherInfo
    attributes: TagAttributes
    depth: int
    capacity_bytes: int
    born_after: bool
    ring: int
    next_seq: int
    every: int = 1
    size: tuple[int, int] | None = None
    pace: int = 0
    alive: bool = True
    held: bool = False
    """Say when it is attached: its writer waits for that."""
    unordered: bool = False
    """Its numbers are not ascending: messages are in it as they came."""
    first_seq: int = 0
    """The publisher's number with which the ring begins."""
    age_ns: int | None = None
    """How long ago its publisher came, if anybody knows: of one that is younger than the subscription, the reader
    should have had everything."""


class RingPaced(_Wire, frozen=True, tag="ring_paced"):
    """From now on read multiples of `pace` on this ring, for the rate you asked for."""

    subscription: int
    ring: int
    pace: int


class StageWanted(_Wire, frozen=True, tag="stage_wanted"):
    """Run a stage: read the ring from `first_seq` on, multiples of `every`, scale to `size`, write a ring of your own
    and answer with `StageUp` or `StageDown`. Descriptors: ring, bell; none for the publisher itself, who has them."""

    publisher: int
    stage: int
    attributes: TagAttributes
    size: tuple[int, int]
    every: int
    first_seq: int
    passed: int
    """How many that were due before it are lost: the stage before this one could not get past them."""
    reliable: bool
    ring: int
    depth: int
    capacity_bytes: int


class StageUnwanted(_Wire, frozen=True, tag="stage_unwanted"):
    """End the stage, when it has scaled what there is, and say so."""

    publisher: int
    stage: int


class RingDown(_Wire, frozen=True, tag="ring_down"):
    """A publisher left, or a mirror is filled no more; what the ring still holds may be read to the end. `end`: all
    that the publisher sent ends before this number, and no other ring will bring it."""

    subscription: int
    incarnation: int
    end: int | None = None


class StreamEnded(_Wire, frozen=True, tag="stream_ended"):
    """A publisher, by its own incarnation, left while nothing carried its stream here; what it sent ends before
    `end`."""

    subscription: int
    incarnation: int
    end: int


class TagGone(_Wire, frozen=True, tag="tag_gone"):
    """The tag was destroyed by force while you held rights on it."""

    name: str


class SubscriberCount(_Wire, frozen=True, tag="subscriber_count"):
    publisher: int
    count: int


class Presences(_Wire, frozen=True, tag="presences"):
    """What came and went, in that order. `anew`: this is the first of all that is there."""

    watch: int
    rows: list[Presence]
    anew: bool = False


Answer = (
    Welcome | TagOpened | Published | Done | TagListing | PublisherListing | SubscriberListing | NodeListing
    | ChannelListing | MeshObserved | HistoryPulled | Status | SettingListing | Refused
)  # fmt: skip
Notice = (
    RingUp | RingDown | StreamEnded | RingPaced | StageWanted | StageUnwanted | TagGone | SubscriberCount | Presences
)

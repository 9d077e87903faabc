"""Every control message, as a value. Each request carries an `id`, which its answer repeats; notices carry none.

One packet of a SOCK_SEQPACKET Unix socket is one message: MessagePack of a tagged struct, with the descriptors
named in a struct's docstring travelling beside it (SCM_RIGHTS), in that order.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ringcast.control.service import Pull
from ringcast.identity import PublisherInfo, SubscriberInfo
from ringcast.place import Setting
from ringcast.tag import TagAttributes

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


class ListTags(_Wire, frozen=True, tag="list_tags"):
    id: int
    pattern: str = "**"
    local: bool = False


class ListPublishers(_Wire, frozen=True, tag="list_publishers"):
    id: int
    tag: str


class ListSubscribers(_Wire, frozen=True, tag="list_subscribers"):
    id: int
    tag: str


class ListNodes(_Wire, frozen=True, tag="list_nodes"):
    id: int


class ListChannels(_Wire, frozen=True, tag="list_channels"):
    id: int


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


class Bye(_Wire, frozen=True, tag="bye"):
    id: int


Request = (
    Hello | OpenTag | DestroyTag | Publish | Unpublish | Subscribe | UseMailbox | Unsubscribe | Attached | Move
    | SetChannel
    | ListTags | ListPublishers | ListSubscribers | ListNodes | ListChannels | ListHistories
    | PullHistory | HoldBuffer | DropBuffer | GetStatus | Bye
)  # fmt: skip


# ------------------------------------------------------------------ what listings hold


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
    """What an administrator decided, by the node that receives; '' is every node."""


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


class Refused(_Wire, frozen=True, tag="refused"):
    """`error` names a class of ringcast.errors, `fields` its arguments."""

    id: int
    error: str
    fields: dict[str, Any]


# ------------------------------------------------------------------ notices: daemon to client


class RingUp(_Wire, frozen=True, tag="ring_up"):
    """A ring to read. Descriptors: ring, bell. `born_after`: it is younger than the subscription.

    `ring` is the ring's own incarnation, which on a mirror is not its publisher's; `every` is what the ring has left of
    the stream: its messages are those whose number is a multiple of it. `next_seq` is the first number that was not
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
    alive: bool = True
    held: bool = False
    """Say when it is attached: its writer waits for that."""


class RingDown(_Wire, frozen=True, tag="ring_down"):
    """A publisher left; what its ring still holds may be read to the end."""

    subscription: int
    incarnation: int


class TagGone(_Wire, frozen=True, tag="tag_gone"):
    """The tag was destroyed by force while you held rights on it."""

    name: str


class SubscriberCount(_Wire, frozen=True, tag="subscriber_count"):
    publisher: int
    count: int


Answer = (
    Welcome | TagOpened | Published | Done | TagListing | PublisherListing | SubscriberListing | NodeListing
    | ChannelListing | HistoryPulled | Status | Refused
)  # fmt: skip
Notice = RingUp | RingDown | TagGone | SubscriberCount

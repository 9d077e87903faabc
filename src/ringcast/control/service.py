"""What one daemon asks of another beyond the tag table: data channels and pulls. Values, carried by the mesh.

A channel is opened in two steps, so that nothing is lost while joining. `OpenChannel` fixes where the stream begins;
then the receiver makes its mirror ring, which knows the first sequence number it is due; then `StartChannel` lets the
sender go, which catches up from its ring with whatever was sent in between.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from ringcast.codec.prepared import decoder_of
from ringcast.errors import BadMessage
from ringcast.model.identity import PublisherInfo

_T = TypeVar("_T")

KNOWN_HEADS = 2
"""Short headers of frames and of runs of them (`native/wire/frame.hpp`: Heads)."""
Word = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=2**40)]
Extent = Annotated[int, Meta(ge=1, le=2**20)]
Rate = Annotated[float, Meta(ge=0.0, le=1e9)]
"""Messages a second; 0 is as many as there are."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Secret = Annotated[bytes, Meta(min_length=32, max_length=32)]
ShortText = Annotated[str, Meta(max_length=255)]
Urgency = Annotated[str, Meta(max_length=128)]
"""Class, DSCP and schedule as words (`ringcast.model.priority`)."""

Start = Literal["new", "latest", "earliest"] | Word

OPEN = "channel.open"
START = "channel.start"
CLOSE = "channel.close"
AGAIN = "channel.again"
REGROUP = "channel.regroup"
RETUNE = "channel.retune"
DIRECT = "channel.direct"
SENT = "channel.sent"
TAKEN = "ring.taken"
PULL = "pull"
SET = "tag.set"
HOLD = "buffer.hold"
RELEASE = "buffer.release"
DESTROY = "tag.destroy"
CLOCK = "clock.open"
GRANT = "priority.grant"
SETTLE = "priority.settle"


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel's packets are sealed with. It is told to the node that opens the channel, over a link between
    daemons that is encrypted itself, and kept nowhere else."""

    secret: Secret
    epoch: Annotated[int, Meta(ge=0, lt=2**32)] = 0
    algorithm: Annotated[int, Meta(ge=1, le=2)]
    sender: Annotated[int, Meta(ge=0, lt=2**24)] = 0
    """The receiver's own number among those who seal packets of this channel."""

    def __repr__(self) -> str:
        return f"Seal(epoch={self.epoch}, sender={self.sender:x})"  # whoever prints or logs it sees no secret


class OpenChannel(msgspec.Struct, frozen=True, kw_only=True):
    """I want the stream of publisher `incarnation`, every n-th message of it, from `start` on; scaled to `size`, in the
    publisher's own process or, with `here`, by a stage of your node. With `rate_hz` you choose n."""

    incarnation: Word
    every: Positive = 1
    start: Start = "new"
    transport: ShortText = "udp"
    size: tuple[Extent, Extent] | None = None
    rate_hz: Rate = 0.0
    here: bool = False
    key: Word = 0
    address: ShortText = ""
    """Where it is going to be received, as in `StartChannel`: those who share a stream are told of each other."""
    reliable: bool = False
    priority: Urgency = ""


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver's place in the group of those who share one stream: what is sent to all carries the group's key."""

    key: Word
    number: Word
    """The receiver's own among `peers`."""
    feedback: Port
    """Port on the sender's node for the receivers' feedback."""
    chunk: Positive
    multicast: ShortText = ""
    """Address and port of the group; empty when each receiver is sent to by itself."""
    next_seq: Word = 0
    """The sequence number that the stream had reached: older messages come as history."""
    peers: list[ShortText] = []
    """Addresses of the receivers by number; '' where one left."""
    seal: Seal | None = None
    """The group's, in a mesh with identities."""


class ChannelOpened(msgspec.Struct, frozen=True, kw_only=True):
    """The stream begins with `first_seq`, the first message due at or after the requested start, and has every n-th."""

    first_seq: Word
    depth: Positive
    capacity_bytes: Positive
    every: Positive = 1
    seat: Seat | None = None
    age_ns: Word | None = None
    """The publisher's age."""
    seal: Seal | None = None
    """In a mesh with identities, and where no group has one."""


class StartChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Send it to `address`, under `key`; `direct`: multicast does not reach me."""

    key: Word
    incarnation: Word
    first_seq: Word
    address: ShortText
    every: Positive = 1
    transport: ShortText = "udp"
    reliable: bool = False
    size: tuple[Extent, Extent] | None = None
    rate_hz: Rate = 0.0
    here: bool = False
    direct: bool = False
    priority: Urgency = ""
    heads: Annotated[int, Meta(ge=0, le=255)] = 0
    """Which short headers of frames I know: `KNOWN_HEADS`, or fewer."""


class RegroupChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Others share the stream of your channel now; `peers` as in a seat."""

    key: Word
    peers: list[ShortText]


class DirectChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Multicast does not reach me any more: send it to me by itself."""

    key: Word


MOST_KEYS = 256
"""Channels that one question is about."""


class AskSent(msgspec.Struct, frozen=True, kw_only=True):
    """How far are these channels to me, of which nothing comes?"""

    keys: Annotated[list[Word], Meta(max_length=MOST_KEYS)]


class SentSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """The number of the next message of each; None of what is no channel to you."""

    next_seqs: Annotated[list[Word | None], Meta(max_length=MOST_KEYS)]


class RetuneChannel(msgspec.Struct, frozen=True, kw_only=True):
    """The channel goes on with other parameters: `transport` has the same stages."""

    key: Word
    transport: ShortText


class RingTaken(msgspec.Struct, frozen=True, kw_only=True):
    """All my subscribers that want everything from this publisher of yours have channels from it."""

    incarnation: Word


class CloseChannel(msgspec.Struct, frozen=True, kw_only=True):
    key: Word


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """Hold the newest `depth` messages of every publisher of a tag, every n-th of them, until I release `number`."""

    number: Word
    tag: ShortText
    depth: Positive
    every: Positive = 1


class ReleaseBuffer(msgspec.Struct, frozen=True, kw_only=True):
    number: Word


class DestroyTag(msgspec.Struct, frozen=True, kw_only=True):
    """Remove a tag that your node keeps. `rights` are my client's own publishers and subscribers, which do not keep the
    tag."""

    name: ShortText
    rights: Annotated[list[Word], Meta(max_length=65536)] = []
    force: bool = False


class OpenAgain(msgspec.Struct, frozen=True, kw_only=True):
    """I closed this channel: its factor changed, or its stage ended. Open it again where it ended."""

    key: Word


class OpenClock(msgspec.Struct, frozen=True, kw_only=True):
    """I want to probe your clock."""


class ClockOpened(msgspec.Struct, frozen=True, kw_only=True):
    """Send probes to this UDP port, with this key and the proof that you know the secret."""

    port: Port
    key: Word
    secret: Secret
    clock: ShortText
    """Which clock it is: nodes of one running kernel have the same. '' when that is not known."""

    def __repr__(self) -> str:
        return f"ClockOpened(port={self.port}, key={self.key}, clock={self.clock!r})"


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Would your kernel give threads this schedule? And with `to`, would your links to these nodes have room for what
    the priority reserves? What the tag's channels have now is not counted: others take their place."""

    tag: ShortText = ""
    sched: ShortText = ""
    priority: Urgency = ""
    to: list[ShortText] = []


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """Yes. `warnings` say what such threads would hold up."""

    warnings: list[ShortText] = []


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """Answer when you know this setting of a tag, and its streams to you come that way, or after a moment."""

    tag: ShortText
    key: ShortText
    priority: Urgency
    checked: Urgency = ""
    """Say why channels do not have these parts of it."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """They come that way, as far as my kernel lets them: `refused` says why it does not."""

    refused: list[ShortText] = []


class Nothing(msgspec.Struct, frozen=True):
    """Done."""


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Read the rings of a tag on your node: those of its publishers (`own`; also of publishers that left), mirrors, or
    both; `publisher` 0 is everybody. Of each, every n-th message and no more than the newest `depth` (0: all) are seen,
    and what is answered is scaled to `size`.

    | kind     | first          | last  | answered with                                                       |
    |----------|----------------|-------|---------------------------------------------------------------------|
    | latest   | how many back  |       | one message                                                         |
    | before   |                | time  | the newest message sent by then                                     |
    | at       | number         |       | one message                                                         |
    | range    | number         | number| messages, and what to ask for next when there are too many          |
    | bounds   |                |       | the oldest and the newest number of one publisher                   |
    | span     | time           | time  | per publisher, the first and the last number sent in between        |
    | heads    | how many       | time  | per publisher, the newest ones (0 or sent by then) without payloads |
    """

    tag: ShortText
    kind: Literal["latest", "before", "at", "range", "bounds", "span", "heads"]
    publisher: Word = 0
    first: Word = 0
    last: Word = 0
    every: Positive = 1
    size: tuple[Extent, Extent] | None = None
    depth: Word = 0
    held: Literal["own", "mirrors", "all"] = "all"
    whole: bool = False
    """I scale what is not scaled yet."""


class Pulled(msgspec.Struct, frozen=True, array_like=True):
    """One message; `payload` as its publisher's codec wrote it."""

    incarnation: Word
    seq: Word
    event_ns: int
    sent_ns: int
    discardable: bool
    lost: Word
    payload: bytes


class Head(msgspec.Struct, frozen=True, array_like=True):
    """A message without its payload."""

    incarnation: Word
    seq: Word
    sent_ns: int


class Bounds(msgspec.Struct, frozen=True, array_like=True):
    """The oldest and the newest number; (n, n - 1) when there is nothing."""

    incarnation: Word
    oldest: int
    newest: int


class PullAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`publishers` are those of everything named here."""

    publishers: list[PublisherInfo] = []
    messages: list[Pulled] = []
    heads: list[Head] = []
    bounds: list[Bounds] = []
    following: Word | None = None
    """Of a range that was too long for one answer, where to go on."""
    size: tuple[Extent, Extent] | None = None
    """What the messages were scaled to."""
    period_ns: Word = 0
    """The longest of the last gaps between messages of the publisher; 0 when it left or is not known."""
    way_ns: Word = 0
    """Of a mirror: how long messages took from the publisher's node, the longest of late."""
    unanswered: list[ShortText] = []
    """Nodes with publishers of the tag that were asked and did not answer; what they hold is not in here."""


def encode(message: msgspec.Struct) -> bytes:
    return msgspec.msgpack.encode(message)


def decode_untrusted(payload: bytes, kind: type[_T]) -> _T:
    """Raises BadMessage."""
    try:
        return decoder_of(kind).decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError) as exc:
        raise BadMessage(str(exc)) from exc

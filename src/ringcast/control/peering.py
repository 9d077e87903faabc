"""What daemons say to each other: every message as a value, and how it becomes a frame of a TCP link or a datagram.

A frame is its length (4 bytes, big-endian) and MessagePack of a tagged struct. The first frame each way is a `Hello`.
What came off the network is untrusted: decoding raises BadMessage and nothing else, sizes are bounded before anything
is kept, and numbers are bounded so that adding one to them still fits a message. Knows no socket, and not what a page
of the tag table holds.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ringcast.control.limits import MAX_AGE_NS, MAX_COUNTER, MAX_LIFE
from ringcast.errors import BadMessage

PROTOCOL_VERSION = 2
"""Of what daemons say to each other, datagrams of channels included: 2 has probes and answers in them."""
MAX_HELLO_BYTES = 8 * 1024
MAX_FRAME_BYTES = 1024 * 1024
MAX_SCOUT_BYTES = 512
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 128 * 1024
MAX_ADDRESSES = 8
MAX_RUMOURS = 256
LENGTH_BYTES = 4

_T = TypeVar("_T")

NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,64}\Z"
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Address = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-~]+\Z")]
"""`host:port`, or `[host]:port` for IPv6."""
Addresses = Annotated[tuple[Address, ...], Meta(max_length=MAX_ADDRESSES)]
Incarnation = Annotated[int, Meta(ge=1)]
"""64 random bits, never 0: one life of one daemon."""
Count = Annotated[int, Meta(ge=0, le=2**62)]
Counter = Annotated[int, Meta(ge=0, le=MAX_COUNTER)]
Life = Annotated[int, Meta(ge=0, le=MAX_LIFE)]
Age = Annotated[int, Meta(ge=0, le=MAX_AGE_NS)]
MeshName = Annotated[str, Meta(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Word = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=1024)]
Piece = Annotated[bytes, Meta(max_length=CHUNK_BYTES)]


# ------------------------------------------------------------------ who is there


class NodeRecord(msgspec.Struct, frozen=True, array_like=True):
    """A node as it describes itself; only it writes its record, and raises `counter` each time.

    `life` is the incarnation of its rows in the tag table. With `yields` it does not serve, because an older daemon has
    its name.
    """

    name: Name
    incarnation: Incarnation
    counter: Counter = 0
    life: Life = 0
    control: Addresses = ()
    data: Addresses = ()
    yields: bool = False


class Rumour(msgspec.Struct, frozen=True, array_like=True):
    """A record and how its node is: 0 alive, 1 suspect, 2 dead."""

    record: NodeRecord
    status: Annotated[int, Meta(ge=0, le=2)] = 0


class _Wire(msgspec.Struct, frozen=True, tag_field="t"):
    pass


class Hello(_Wire, frozen=True, kw_only=True, tag="hello"):
    """First message each way. `age_ns` is how long the sender has run; `roster` is the sum of its roster."""

    record: NodeRecord
    version: Count = PROTOCOL_VERSION
    mesh: MeshName = ""
    age_ns: Age = 0
    roster: Word = 0


class Refusal(_Wire, frozen=True, kw_only=True, tag="refusal"):
    """Last message: why the link is closed."""

    reason: Text


class Ping(_Wire, frozen=True, kw_only=True, tag="ping"):
    seq: Count
    roster: Word = 0


class Ack(_Wire, frozen=True, kw_only=True, tag="ack"):
    seq: Count


class PingFor(_Wire, frozen=True, kw_only=True, tag="ping_for"):
    """Ping `target`, which does not answer me, and forward its answer."""

    seq: Count
    target: Incarnation


class Rumours(_Wire, frozen=True, kw_only=True, tag="rumours"):
    rumours: Annotated[list[Rumour], Meta(max_length=MAX_RUMOURS)]


class RosterSummary(_Wire, frozen=True, kw_only=True, tag="roster_summary"):
    """Our rosters differ; these are the sums of my buckets."""

    sums: Annotated[list[Word], Meta(max_length=256)]


class RosterDigest(_Wire, frozen=True, kw_only=True, tag="roster_digest"):
    """The daemons that I know to be alive, in these buckets: {incarnation: rank}. With `answer`, tell me yours in
    turn."""

    buckets: Annotated[list[Count], Meta(max_length=256)]
    ranks: dict[int, Count]
    answer: bool = False


# ------------------------------------------------------------------ what they hold


class TableSummary(_Wire, frozen=True, kw_only=True, tag="table_summary"):
    """One sum over the whole table, or one of each bucket."""

    sums: Annotated[list[Word], Meta(max_length=256)]


class TableDigest(_Wire, frozen=True, kw_only=True, tag="table_digest"):
    """{node: (life, version)} in these buckets. With `answer`, tell me yours in turn."""

    buckets: Annotated[list[Count], Meta(max_length=256)]
    versions: dict[Name, tuple[Life, Count]]
    answer: bool = False


class TableDelta(_Wire, frozen=True, kw_only=True, tag="table_delta"):
    """A page of changes, encoded by the one who knows rows (`ringcast.daemon.table.pages`)."""

    page: bytes


# ------------------------------------------------------------------ services: opaque requests between daemons


class Call(_Wire, frozen=True, kw_only=True, tag="call"):
    """A request of `size` bytes, of which `piece` is the beginning; `Chunk`s bring the rest."""

    id: Count
    service: Annotated[str, Meta(max_length=64)]
    size: Annotated[int, Meta(ge=0, le=MAX_PAYLOAD_BYTES)]
    piece: Piece = b""


class Reply(_Wire, frozen=True, kw_only=True, tag="reply"):
    """The answer to call `id`, likewise."""

    id: Count
    size: Annotated[int, Meta(ge=0, le=MAX_PAYLOAD_BYTES)]
    piece: Piece = b""


class Chunk(_Wire, frozen=True, kw_only=True, tag="chunk"):
    """More of call `id`, or of its reply."""

    id: Count
    reply: bool
    piece: Piece


class Failure(_Wire, frozen=True, kw_only=True, tag="failure"):
    """Call `id` failed: `error` names a class of ringcast.errors, `fields` its arguments."""

    id: Count
    error: Annotated[str, Meta(max_length=64)]
    fields: dict[str, Any]


class Cancel(_Wire, frozen=True, kw_only=True, tag="cancel"):
    """Nobody waits for call `id` any more."""

    id: Count


Membership = Hello | Refusal | Ping | Ack | PingFor | Rumours | RosterSummary | RosterDigest
Replication = TableSummary | TableDigest | TableDelta
Service = Call | Reply | Chunk | Failure | Cancel
PeerMessage = Membership | Replication | Service


class Scout(_Wire, frozen=True, kw_only=True, tag="scout"):
    """The one datagram: a daemon of this mesh listens on `port` of `host`, or where that is '' of the sender's host."""

    incarnation: Incarnation
    port: Annotated[int, Meta(ge=1, le=65535)]
    host: Annotated[str, Meta(max_length=64, pattern=r"^[!-~]*\Z")] = ""
    version: Count = PROTOCOL_VERSION
    mesh: MeshName = ""


class _Version(_Wire, frozen=True, kw_only=True, tag="hello"):
    version: int


# ------------------------------------------------------------------ bytes

_encoder = msgspec.msgpack.Encoder()
_messages: msgspec.msgpack.Decoder[PeerMessage] = msgspec.msgpack.Decoder(PeerMessage)
_scouts: msgspec.msgpack.Decoder[Scout] = msgspec.msgpack.Decoder(Scout)
_versions: msgspec.msgpack.Decoder[_Version] = msgspec.msgpack.Decoder(_Version)


def encode_frame(message: PeerMessage) -> bytes:
    """Raises BadMessage when it does not fit a frame: pages are cut before."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise BadMessage(f"{len(body)} bytes, more than the {MAX_FRAME_BYTES} of one frame")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def encode_scout(scout: Scout) -> bytes:
    return _encoder.encode(scout)


def decode_untrusted(body: bytes) -> PeerMessage:
    """A frame's body as a message. Raises BadMessage."""
    return _decode(_messages, body, MAX_FRAME_BYTES)


def decode_hello_untrusted(body: bytes) -> Hello:
    """The first frame. Its version is looked at before the rest, which another version may have changed.

    Raises BadMessage, which says which versions met.
    """
    version = _decode(_versions, body, MAX_HELLO_BYTES).version
    if version != PROTOCOL_VERSION:
        raise BadMessage(
            f"this node speaks peering protocol {PROTOCOL_VERSION} and the other {version}; use the same version of "
            "ringcast on all nodes"
        )
    message = _decode(_messages, body, MAX_HELLO_BYTES)
    if not isinstance(message, Hello):
        raise BadMessage(f"{type(message).__name__} before hello")
    return message


def decode_scout_untrusted(datagram: bytes) -> Scout:
    """Raises BadMessage."""
    return _decode(_scouts, datagram, MAX_SCOUT_BYTES)


class FrameReader:
    """A stream of bytes, cut into the bodies of its frames. `limit_bytes` may be raised once the peer is known."""

    def __init__(self, limit_bytes: int = MAX_HELLO_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_body(self) -> bytes | None:
        """The next whole frame's body, or None until more was fed. Raises BadMessage: the stream is then lost."""
        if len(self._buffer) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
        if length > self.limit_bytes:
            raise BadMessage(f"a frame of {length} bytes, more than the {self.limit_bytes} allowed here")
        end = LENGTH_BYTES + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[LENGTH_BYTES:end])
        del self._buffer[:end]
        return body


def _decode(decoder: msgspec.msgpack.Decoder[_T], body: bytes, limit_bytes: int) -> _T:
    if len(body) > limit_bytes:
        raise BadMessage(f"{len(body)} bytes, more than the {limit_bytes} allowed here")
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError) as exc:
        raise BadMessage(str(exc)) from exc

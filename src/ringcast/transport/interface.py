"""What a transport is. The whole of it: implement this, register it under the entry point group
`ringcast.transports`, run the suite in `ringcast.testing.transports` against it, and channels can use it.

A transport copies a ring to a mirror ring on another node. It has a receiving end, one per daemon, which opens mirrors,
and a sending end per channel, which is given a ring. Messages keep their sequence numbers and times. What it cannot
promise it says in `promises`; what it lost shows in the mirror as a gap.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from ringcast import _core
from ringcast.control.service import Seal, Seat
from ringcast.control.status import InForce


class Promises(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscriber may rely on."""

    reliable: bool
    """Nothing is lost while both ends and some way between them exist, and readers keep up within the tag's bound."""
    ordered: bool


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """One publisher's stream on its way to one node, and how the subscriber wants it."""

    key: int
    incarnation: int
    depth: int
    capacity_bytes: int
    first_seq: int
    every: int = 1
    reliable: bool = False
    priority: str = ""
    """How urgent it is, in the words of `ringcast.model.priority`."""
    transport: str = ""
    """The text it was asked for with, parameters and all."""
    sender: str = ""
    """Address of the node that sends, as the receiving node knows it."""
    seat: Seat | None = None
    direct: bool = False
    """Multicast does not reach the receiver."""
    heads: int = 0
    """On a stream: which short headers its receiver knows (`native/wire/frame.hpp`: Heads)."""
    seal: Seal | None = None
    """What its packets are to be sealed with; None on a mesh without identities. Receivers of a group get the group's,
    and a group that is to be sealed makes its own."""


@runtime_checkable
class Urgent(Protocol):
    """An end that takes part in priorities. A sending end is given the channel's with the channel; a receiving end of a
    channel of its own is told. Ends without this carry prioritised channels like others."""

    def in_force(self) -> InForce:
        """What the kernel has of its socket and its threads."""


@runtime_checkable
class UrgentReceiving(Urgent, Protocol):
    def prioritise(self, priority: str, publisher: int = 0) -> None:
        """Mark what it sends and give its threads the schedule, for the stream of that publisher. What the kernel
        refuses is in `in_force`."""


class Mirror(Protocol):
    """The ring that a receiving end writes."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def closed(self) -> bool:
        """Some time after `close_channel`: nothing more is written, and `next_seq` stays."""

    def follow(self, sender: _core.TimeBase) -> None:
        """Times that come are by this clock; those in the ring are to be by this node's."""

    def counters(self) -> dict[str, int]: ...


LinkSeal = tuple[bytes, int]
"""What whoever pushes to a link seals with, as its process is told it, and the descriptor of the counter's page."""


class FanOutLinks(Protocol):
    """Telling whoever writes a ring to push what it writes to a socket too."""

    def add_link(
        self, number: int, fd: int, *, key: int, every: int, chunk: int, first_seq: int, seal: LinkSeal | None = None,
        rank: int = 0,
    ) -> None:  # fmt: skip
        """Links of a higher rank are pushed to first."""

    def rekey_link(self, number: int, seal: LinkSeal) -> None:
        """Seal with that key from now on; nothing where there is no such link."""

    def remove_link(self, number: int) -> None: ...


class Source(Protocol):
    """The ring that a sending end reads: a publisher's own, or a mirror."""

    @property
    def ring_fd(self) -> int: ...
    @property
    def bell_fd(self) -> int: ...
    @property
    def ring(self) -> int:
        """The ring's own incarnation, as its header says."""

    @property
    def depth(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def next_seq(self) -> int:
        """The publisher's sequence number of the next message."""

    @property
    def links(self) -> FanOutLinks: ...


class ReceivingEnd(Protocol):
    """Where channels end on this node, wherever their mirrors are made."""

    @property
    def port(self) -> int:
        """Where sending ends connect to, on any address of this node."""

    def close_channel(self, key: int) -> None: ...
    def attach_fanout(self, key: int, socket_fd: int) -> None:
        """Let the mirror push to links, for a proxy on this node."""

    def ended(self) -> list[int]:
        """Keys of channels whose sender is gone since the last call, where the transport notices."""

    def counters(self) -> dict[str, int]: ...
    def close(self) -> None: ...


class Receiving(ReceivingEnd, Protocol):
    """A daemon's receiving end."""

    def open(self, channel: Channel) -> Mirror: ...


class MirrorBefore(NamedTuple):
    """A mirror of the same stream whose place another one takes."""

    ring_fd: int
    depth: int
    capacity_bytes: int
    incarnation: int


@runtime_checkable
class InheritingReceiving(Receiving, Protocol):
    """A receiving end whose mirrors can begin with what others before them hold."""

    async def open_after(self, channel: Channel, before: MirrorBefore) -> Mirror:
        """As `open`; what the mirror before holds of the messages before the channel's first is copied."""


class Sending(Protocol):
    """One channel's sending end."""

    async def ready(self) -> None:
        """Returns once nothing that is sent from now on can be missed. Raises OSError."""

    @property
    def unsettled(self) -> bool:
        """True while `settle` has something to do, now and then."""

    def settle(self) -> None: ...
    def too_long(self, seq: int) -> None:
        """The writer of the ring gave the channel back: a message is too long to be sent in one burst."""

    def behind(self, seq: int) -> None:
        """The writer gave the channel back: from that message on more is due than can be sent in one burst. Send it,
        and let the writer go on afterwards."""

    def counters(self) -> dict[str, int]: ...
    @property
    def broken(self) -> bool:
        """True when sending failed; the channel is to be opened again."""

    def release(self) -> None:
        """Ask nothing more of the ring's writer. Called once, before `close`."""

    def close(self) -> None:
        """May block for a moment; called on a separate thread."""


@runtime_checkable
class WatchedSending(Protocol):
    """A sending end that goes by how its network is."""

    def look(self) -> None:
        """Called every second."""


@runtime_checkable
class SealedSending(Protocol):
    """A sending end that seals what it sends."""

    def renew_keys(self) -> None:
        """Called every second: begin the next epoch when the present key is worn."""


class Transport(Protocol):
    """A kind. One that takes `Channel.seal` has an attribute `seals` that is true; others are refused in a mesh with
    identities."""

    @property
    def name(self) -> str: ...
    @property
    def promises(self) -> Promises: ...
    def receive(self, host: str, port: int = 0) -> Receiving:
        """Open the receiving end on `host` ("" is every address). Raises OSError."""

    def send(self, channel: Channel, source: Source, host: str, port: int) -> Sending:
        """Open a channel's sending end. Does not block. Raises OSError."""


# ---------------------------------------------------------------------- transports whose receivers share a stream


@runtime_checkable
class GroupReceiving(Receiving, Protocol):
    """A receiving end whose channels know of each other's nodes and can be tuned."""

    def hears(self, key: int) -> bool:
        """False when the channel's multicast group cannot be joined here."""

    def take_deaf(self) -> list[int]:
        """Channels that multicast has ceased to reach since the last call."""

    def regroup(self, key: int, peers: list[str]) -> None: ...
    def retune(self, key: int, transport: str) -> None: ...


@runtime_checkable
class GroupTransport(Transport, Protocol):
    """A kind that sends one stream to a group of nodes. Before a channel's mirror is opened it is given a seat; then
    `receive().open` and `send` are given the channel with it."""

    @property
    def end(self) -> str:
        """Transports of the same end share a receiving end."""

    @property
    def shape(self) -> object:
        """Between transports of equal shapes a channel is retuned; otherwise another one is opened."""

    def admit(self, channel: Channel, source: Source, host: str, port: int) -> Seat:
        """A seat for the receiver there. Raises OSError."""

    def dismiss(self, key: int) -> None:
        """The channel was not started."""

    def retune(self, key: int) -> None:
        """The channel's sending end goes on with the parameters of this transport."""

    def direct(self, key: int) -> None:
        """The channel's receiver is not reached by multicast."""

    def take_changes(self) -> list[tuple[int, list[str]]]:
        """(channel, peers) for every receiver that is to be told of others who came or left, since the last call."""

    def check(self) -> None:
        """Called every second: check the route to every group."""

"""One receiver's part of a group's sending end: its history, and, without multicast, the link that the publisher pushes
to. As `udp.py` has it, with two differences: the key is the group's, and a message too long for one burst hands the
stream over to the daemon's repair thread, which sends it for the whole group.
"""

from __future__ import annotations

from typing import Protocol

from ringcast import _core
from ringcast.control.status import InForce
from ringcast.transport.addressing import connected_datagrams, end_sending
from ringcast.transport.handover import Handover
from ringcast.transport.interface import Channel, LinkSeal, Source
from ringcast.transport.sealing import Sealing
from ringcast.transport.urgent.urgency import Urgency

PACE_BYTES_PER_S = 100_000_000
OVERLAP = 64
"""Messages sent again to a receiver that multicast reaches no more."""


class Membership(Protocol):
    """What the group is to its member."""

    @property
    def key(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def pumped_from(self) -> int | None:
        """From that message on the repair thread sends the stream."""

    @property
    def carrier(self) -> int:
        """The repair thread where it sends the stream itself, else 0."""

    @property
    def multicasts(self) -> bool: ...
    @property
    def wants_multicast(self) -> bool: ...
    @property
    def sealing(self) -> Sealing | None: ...
    def renew_keys(self) -> None:
        """Begin the next epoch when the group's key is worn, and tell all who push."""

    def push(self) -> None:
        """Make the publisher push to the group."""

    def hand_over(self, seq: int) -> None: ...
    def leave(self, channel: int) -> None: ...
    def end(self) -> None:
        """Called once the member is gone; may block for a moment."""

    def counters(self) -> dict[str, int]: ...


class MemberSending:
    def __init__(self, group: Membership, channel: Channel, source: Source, host: str, port: int) -> None:
        self._group = group
        self._channel = channel
        self._source = source
        self._urgency = Urgency(channel.priority, channel.incarnation)
        self._socket = connected_datagrams(host, port, self._urgency.marking)
        self._urgency.lock(source.ring_fd)
        self._urgency.reserve(host)
        # The publisher's thread and the pump's: each counts by itself, or one that is late would look replayed.
        self._link_sender, self._pump_sender = (
            (group.sealing.sender(), group.sealing.sender()) if group.sealing is not None else (0, 0)
        )
        self._handover = Handover(source, self._make_pump, self._push_from)
        self._direct = channel.direct or not group.multicasts
        if group.pumped_from is not None and channel.first_seq >= group.pumped_from:
            return
        if self._direct and group.pumped_from is None and self._urgency.dedicated:
            self._handover.follow(channel.first_seq)
            return
        if self._direct and group.pumped_from is None:
            self._handover.begin(channel.first_seq)
            return
        if not self._direct:
            group.push()
        # After the publisher was told of the group: what it may not have pushed there is before this.
        if channel.first_seq < source.next_seq:
            self._handover.until(channel.first_seq, source.next_seq)

    @property
    def link(self) -> int:
        """The number under which the publisher gives the stream back."""
        return self._channel.key if self._direct else self._group.key

    async def ready(self) -> None:
        return

    @property
    def broken(self) -> bool:
        return self._handover.broken

    @property
    def unsettled(self) -> bool:
        return self._handover.pump is not None and not self._stays

    def settle(self) -> None:
        """Once the history is sent, let the publisher go on by itself."""
        handed_over = self._group.pumped_from
        if self._stays:
            return
        if self._direct and handed_over is None:
            self._handover.settle()
        elif self._handover.pump is not None:
            self._end_at(handed_over)

    @property
    def _stays(self) -> bool:
        """Whether the pump carries the stream for good: its thread has the channel's schedule."""
        return self._urgency.dedicated and self._direct and self._group.pumped_from is None

    def in_force(self) -> InForce:
        pump, carrier = self._handover.pump, self._group.carrier
        thread = carrier or (pump.thread_id if pump is not None else 0)
        return self._urgency.in_force(self._socket, thread, own=self._urgency.dedicated)

    def too_long(self, seq: int) -> None:
        self._group.hand_over(seq)
        if self._handover.pushed:
            self._source.links.remove_link(self._channel.key)

    def behind(self, seq: int) -> None:
        if not self._direct:
            self._group.hand_over(seq)
        elif self._group.pumped_from is None:
            self._handover.behind(seq)

    def fall_back(self) -> None:
        """Multicast no longer works: send by unicast."""
        if not self._direct and self._group.pumped_from is None:
            self._direct = True
            self._handover.push(max(self._channel.first_seq, self._source.next_seq - OVERLAP * self._channel.every))

    def renew_keys(self) -> None:
        self._group.renew_keys()

    def rekey(self) -> None:
        """The group's next epoch has begun."""
        seal = self._seal()
        if self._handover.pushed and seal is not None:
            self._source.links.rekey_link(self._channel.key, seal)

    def counters(self) -> dict[str, int]:
        found = self._group.counters()
        return found | {"fallen_back": int(self._direct)} if self._group.wants_multicast else found

    def release(self) -> None:
        if self._handover.pushed:
            self._source.links.remove_link(self._channel.key)
        self._group.leave(self._channel.key)

    def close(self) -> None:
        self._urgency.retire()
        self._handover.stop()
        end_sending(self._socket)
        self._urgency.close()
        self._group.end()

    def _end_at(self, handed_over: int | None) -> None:
        """Of a stream that the group carries: the pump sends what was before."""
        pump = self._handover.pump
        if pump is None:
            return
        if handed_over is not None and not self._handover.pushed:
            pump.stop_before(handed_over)
        if pump.state == "running":
            return
        reached = pump.next_seq
        self._handover.stop()
        if handed_over is not None and reached < handed_over and not self._handover.pushed:
            self._handover.until(reached, handed_over)

    def _push_from(self, first_seq: int) -> None:
        self._source.links.add_link(
            self._channel.key, self._socket.fileno(), key=self._group.key, every=self._channel.every,
            chunk=self._group.chunk, first_seq=first_seq, seal=self._seal(), rank=self._urgency.rank,
        )  # fmt: skip

    def _seal(self) -> LinkSeal | None:
        return self._group.sealing.link(self._link_sender) if self._group.sealing is not None else None

    def _make_pump(self, first_seq: int) -> _core.Pump:
        pump = _core.Pump(
            self._source.ring_fd, self._source.bell_fd, self._socket.fileno(), depth=self._source.depth,
            capacity_bytes=self._source.capacity_bytes, incarnation=self._source.ring, key=self._group.key,
            every=self._channel.every, first_seq=first_seq, reliable=self._channel.reliable, stream=False,
            chunk=self._group.chunk, most_bytes_per_s=PACE_BYTES_PER_S,
            seal=self._group.sealing.native if self._group.sealing is not None else None, sender=self._pump_sender,
        )  # fmt: skip
        self._urgency.schedule(pump.thread_id, helper=bool(self._group.carrier))
        return pump

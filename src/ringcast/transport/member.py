"""One receiver's part of a group's sending end: its history, and, without multicast, the link that the publisher pushes
to. As `udp.py` has it, with two differences: the key is the group's, and a message too long for one burst hands the
stream over to the daemon's repair thread, which sends it for the whole group.
"""

from __future__ import annotations

import socket
from typing import Protocol

from ringcast import _core
from ringcast.transport.addressing import connected_datagrams
from ringcast.transport.interface import Channel, Source

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
    def multicasts(self) -> bool: ...
    @property
    def wants_multicast(self) -> bool: ...
    def push(self) -> None:
        """See to it that the publisher pushes to the group."""

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
        self._socket = connected_datagrams(host, port, channel.dscp)
        self._pump: _core.Pump | None = None
        self._linked = False
        self._direct = channel.direct or not group.multicasts
        self.broken = False
        if group.pumped_from is not None and channel.first_seq >= group.pumped_from:
            return
        if not self._direct:
            group.push()
        if channel.first_seq < source.next_seq:
            self._pump_until(channel.first_seq, source.next_seq)
        elif self._direct and group.pumped_from is None:
            self._push_from(channel.first_seq)

    @property
    def link(self) -> int:
        """The number under which the publisher gives the stream back."""
        return self._channel.key if self._direct else self._group.key

    async def ready(self) -> None:
        return

    @property
    def unsettled(self) -> bool:
        return self._pump is not None

    def settle(self) -> None:
        """Once the history is sent, let the publisher go on by itself."""
        if self._pump is None or self._pump.state == "running":
            return
        reached = self._pump.next_seq
        self._pump.close()
        self._pump = None
        handed_over = self._group.pumped_from
        if handed_over is not None:
            if reached < handed_over and not self._linked:
                self._pump_until(reached, handed_over)
        elif self._direct and not self._linked:
            self._push_from(reached)

    def too_long(self, seq: int) -> None:
        self._group.hand_over(seq)
        if self._linked:
            self._source.links.remove_link(self._channel.key)

    def fall_back(self) -> None:
        """Multicast reaches nobody any more."""
        if not self._direct and self._group.pumped_from is None:
            self._direct = True
            self._push_from(max(self._channel.first_seq, self._source.next_seq - OVERLAP * self._channel.every))

    def counters(self) -> dict[str, int]:
        found = self._group.counters()
        return found | {"fallen_back": int(self._direct)} if self._group.wants_multicast else found

    def release(self) -> None:
        if self._linked:
            self._source.links.remove_link(self._channel.key)
        self._group.leave(self._channel.key)

    def close(self) -> None:
        if self._pump is not None:
            self._pump.close()
        # Every copy of the socket, the publisher's too, can send no more.
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self._socket.close()
        self._group.end()

    def _push_from(self, first_seq: int) -> None:
        self._source.links.add_link(
            self._channel.key, self._socket.fileno(), key=self._group.key, every=self._channel.every,
            chunk=self._group.chunk, first_seq=first_seq,
        )  # fmt: skip
        self._linked = True
        if first_seq < self._source.next_seq and self._pump is None:
            self._pump_until(first_seq, self._source.next_seq)

    def _pump_until(self, first_seq: int, end: int) -> None:
        self._pump = _core.Pump(
            self._source.ring_fd, self._source.bell_fd, self._socket.fileno(), depth=self._source.depth,
            capacity_bytes=self._source.capacity_bytes, incarnation=self._source.ring, key=self._group.key,
            every=self._channel.every, first_seq=first_seq, reliable=self._channel.reliable, stream=False,
            chunk=self._group.chunk, most_bytes_per_s=PACE_BYTES_PER_S,
        )  # fmt: skip
        self._pump.stop_before(end)

"""A receiving end of stacked transports of a daemon: one socket, one native delivery thread, and the sockets of the
multicast groups that its channels are in.

Invariant: a group is joined while a channel needs it and left when the last one is closed.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ringcast import _core
from ringcast.control.service import Seat
from ringcast.model import addresses
from ringcast.transport.addressing import HEADER_BYTES
from ringcast.transport.interface import Channel, Mirror, MirrorBefore
from ringcast.transport.multicast import GroupSockets, local_address, send_from, without_port
from ringcast.transport.recipe import read
from ringcast.transport.sealing import native_seal
from ringcast.transport.udp import DatagramReceiving

logger = logging.getLogger("ringcast.transport")

LEAST_WINDOW, MOST_WINDOW = 256, 4096
"""Messages that may be under way: as many as the ring holds, since older ones cannot be had again."""
WINDOW_CELLS = 2048
MOST_WINDOW_BITS = 1 << 25
"""A window keeps a bit for every piece of its messages; where messages are long it holds fewer."""


class StackReceiving(DatagramReceiving):
    """`attended`: whoever reads its only channel in this process receives itself while it waits."""

    def __init__(self, host: str, port: int, attended: bool = False) -> None:
        super().__init__(host, port, attended)
        self.inflow = self._delivery if attended else None
        self._groups = GroupSockets()
        self._seats: dict[int, tuple[int, int, tuple[str, str] | None]] = {}  # group key, number, group and interface
        self._mirrors: dict[int, Mirror] = {}  # of channels that are in a multicast group
        self._deaf: set[int] = set()

    def open(self, channel: Channel) -> Mirror:
        """Raises ValueError without a seat."""
        seat = _seat(channel)
        joined = self._join(channel.key, seat.multicast, channel.sender) if seat.multicast else None
        return self._keep(channel, seat, joined, open_mirror(self._delivery, channel, group=_group(seat, joined)))

    async def open_after(self, channel: Channel, before: MirrorBefore) -> Mirror:
        """Raises ValueError without a seat. The copying is done in a thread: a loop must not wait for it."""
        seat = _seat(channel)
        joined = self._join(channel.key, seat.multicast, channel.sender) if seat.multicast else None
        work = partial(open_mirror, self._delivery, channel, group=_group(seat, joined), before=before)
        return self._keep(channel, seat, joined, await asyncio.to_thread(work))

    def _keep(self, channel: Channel, seat: Seat, joined: tuple[str, str] | None, mirror: Mirror) -> Mirror:
        self._urgency.lock(mirror.ring_fd)
        self._seats[channel.key] = (seat.key, seat.number, joined)
        if joined:
            self._mirrors[channel.key] = mirror
        return mirror

    def hears(self, key: int) -> bool:
        return key not in self._deaf

    def take_deaf(self) -> list[int]:
        found = [key for key, mirror in self._mirrors.items() if mirror.counters()["deaf"]]
        for key in found:
            logger.warning("multicast no longer reaches channel %x; asking for unicast", key)
            del self._mirrors[key]
            self._deaf.add(key)
        return found

    def regroup(self, key: int, peers: list[str]) -> None:
        if key in self._seats:
            self._delivery.regroup(self._seats[key][0], peers)

    def retune(self, key: int, transport: str) -> None:
        """Raises QosMismatch."""
        recipe = read(transport)
        if key in self._seats:
            group, number, _ = self._seats[key]
            self._delivery.retune(group, recipe.tuning, recipe.patient, recipe.native_loss(number + 1))

    def close_channel(self, key: int) -> None:
        seat = self._seats.pop(key, None)
        self._mirrors.pop(key, None)
        self._deaf.discard(key)
        if seat is None:
            return
        self._delivery.close_channel(seat[0])
        if seat[2] is not None and all(other != seat[2] for _, _, other in self._seats.values()):
            self._groups.leave(*seat[2])

    def attach_fanout(self, key: int, socket_fd: int) -> None:
        self._delivery.attach_fanout(self._seats[key][0], socket_fd)

    def close(self) -> None:
        self._delivery.close()
        self._groups.close()
        super().close()

    def _join(self, key: int, multicast: str, sender: str) -> tuple[str, str] | None:
        address = without_port(multicast)
        try:
            interface = local_address(sender, 9)
            sock = self._groups.join(address, interface)
            send_from(self._socket, interface)
        except OSError as exc:
            logger.warning("cannot join multicast group %s: %s; asking for unicast", address, exc)
            self._deaf.add(key)
            return None
        if sock is not None:
            self._delivery.add_socket(sock.fileno())
        return address, interface


def _group(seat: Seat, joined: tuple[str, str] | None) -> str:
    return seat.multicast if joined else ""


def open_mirror(
    delivery: _core.Delivery, channel: Channel, *, group: str = "", shown: bool = False,
    before: MirrorBefore | None = None,
) -> _core.Mirror:  # fmt: skip
    """The mirror of a channel, behind its stack; with `shown` its counters are in a page for another process; with
    `before` it begins with what that mirror holds. Raises ValueError without a seat."""
    seat = _seat(channel)
    recipe = read(channel.transport)
    most_pieces = max(1, -(-channel.capacity_bytes // seat.chunk))
    tuning = {**recipe.tuning, "group": max(1, sum(map(bool, seat.peers)))}
    return delivery.open_recovered(
        key=seat.key, depth=channel.depth, capacity_bytes=channel.capacity_bytes, every=channel.every,
        first_seq=channel.first_seq, reliable=channel.reliable, stages=list(recipe.shape.stages), tuning=tuning,
        me=seat.number, messages=_window(channel.depth, most_pieces),
        most_pieces=most_pieces, cells=WINDOW_CELLS, cell_bytes=HEADER_BYTES + seat.chunk,
        publisher=addresses.join(channel.sender, seat.feedback), group=group,
        peers=list(seat.peers), gate_seq=seat.next_seq, patient=recipe.patient,
        loss=recipe.native_loss(seat.number + 1), seal=native_seal(seat.key, seat.seal),
        sender=seat.seal.sender if seat.seal is not None else 0xFFFFFFFF, shown=shown,
        before=before,
    )  # fmt: skip


def _seat(channel: Channel) -> Seat:
    if channel.seat is None:
        raise ValueError(f"channel {channel.key:x} of a stacked transport has no seat in a group")
    return channel.seat


def _window(depth: int, most_pieces: int) -> int:
    return max(16, min(max(depth, LEAST_WINDOW), MOST_WINDOW, MOST_WINDOW_BITS // most_pieces))

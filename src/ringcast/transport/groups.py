"""Streams that leave this node for groups of others, and the repair threads that serve them.

Receivers of one ring by stacks of one shape, scaled the same way and equally reliable, are a group: one key, one
multicast address, one native `Group`. Invariants: a group has at most one channel to a node's receiving end, so that
its key tells channels apart there; it lives as long as a receiver has a seat. Without multicast, each receiver is sent
to by unicast, and that is logged.
"""

from __future__ import annotations

import logging
import secrets
import socket
from functools import cache
from typing import NamedTuple

import msgspec

from ringcast import _core
from ringcast.control.service import Seat
from ringcast.model import addresses
from ringcast.model.priority import Marking
from ringcast.transport import multicast
from ringcast.transport.addressing import HEADER_BYTES, bound, connected_datagrams, payload_room, widen_receive_buffer
from ringcast.transport.interface import Channel, LinkSeal, Source
from ringcast.transport.member import PACE_BYTES_PER_S, MemberSending
from ringcast.transport.recipe import Recipe, Shape
from ringcast.transport.sealing import Sealing, fresh_seal
from ringcast.transport.urgent.urgency import Urgency

logger = logging.getLogger("ringcast.transport")

MOST_PAYLOAD_BYTES = 1472
"""Of a datagram: windows keep room for whole packets, so they are no larger than Ethernet's, on loopback either."""
REPAIR_BYTES = 162
"""How many bytes a repair of sixteen packets needs beyond their length."""


class Identity(NamedTuple):
    ring: int
    shape: Shape
    every: int
    reliable: bool
    local: str
    sealed: bool = False
    priority: str = ""


class Member(msgspec.Struct):
    channel: int
    host: str
    port: int
    first_seq: int = 0
    direct: bool = False
    started: bool = False
    sending: MemberSending | None = None

    @property
    def address(self) -> str:
        return addresses.join(self.host, self.port)


class Answering(NamedTuple):
    """A repair thread and the port it listens on; `own` is one group's alone, which has a priority."""

    repair: _core.Retransmitter
    port: int
    own: bool = False


class SendingGroup:
    """See `Membership`."""

    def __init__(self, identity: Identity, recipe: Recipe, answering: Answering, chunk: int, taken: set[str]) -> None:
        self.identity = identity
        self.recipe = recipe
        self.key = secrets.randbits(62) | 1
        self.chunk = chunk
        self.answering = answering
        self.members: list[Member | None] = []
        self.sealing = Sealing(self.key, fresh_seal()) if identity.sealed else None
        # The repair thread and the multicast link.
        self._senders = (self.sealing.sender(), self.sealing.sender()) if self.sealing is not None else (0, 0)
        self.pumped_from: int | None = 0 if identity.shape.pumped else None
        self.address = ""
        self._socket: socket.socket | None = None
        self._native: _core.Group | None = None
        self._source: Source | None = None
        self._pushed = False
        self._urgency = Urgency(identity.priority, identity.ring)
        if identity.shape.multicast:
            self._open_multicast(taken)

    # ------------------------------------------------------------------ seats

    @property
    def multicasts(self) -> bool:
        return self._socket is not None

    @property
    def carrier(self) -> int:
        return self.answering.repair.thread_id if self.answering.own and self.pumped_from is not None else 0

    @property
    def wants_multicast(self) -> bool:
        return self.identity.shape.multicast

    @property
    def empty(self) -> bool:
        return not any(self.members)

    def has(self, host: str, port: int) -> bool:
        return any(member and (member.host, member.port) == (host, port) for member in self.members)

    def seat(self, channel: int, host: str, port: int) -> int:
        member = Member(channel, host, port)
        free = next((i for i, held in enumerate(self.members) if held is None), len(self.members))
        self.members[free : free + 1] = [member]
        return free

    def peers(self) -> list[str]:
        return [member.address if member else "" for member in self.members]

    def leave(self, channel: int) -> None:
        self.members = [None if member and member.channel == channel else member for member in self.members]
        while self.members and self.members[-1] is None:
            self.members.pop()
        self._tell_members()
        if self.empty and self._pushed and self._source is not None:
            self._source.links.remove_link(self.key)
            self._pushed = False

    def end(self) -> None:
        if self.empty:
            self._urgency.retire()
            if self._native is not None:
                self.answering.repair.close_group(self.key)
                self._native = None
            if self._socket is not None:
                _shut(self._socket)
                self._socket = None
            if self.answering.own:
                self.answering.repair.close()
            self._urgency.close()

    # ------------------------------------------------------------------ what members ask for

    def begin(self, member: Member, channel: Channel, source: Source) -> MemberSending:
        """Raises OSError."""
        self._source = source
        member.first_seq, member.direct, member.started = channel.first_seq, channel.direct, True
        if self._native is None:
            self._native = self.answering.repair.open(
                source.ring_fd, source.bell_fd, depth=source.depth, capacity_bytes=source.capacity_bytes,
                incarnation=source.ring, key=self.key, every=channel.every, first_seq=channel.first_seq,
                stages=list(self.identity.shape.stages), tuning=self.recipe.tuning, chunk=self.chunk,
                reliable=channel.reliable, pumped=self.identity.shape.pumped, most_bytes_per_s=PACE_BYTES_PER_S,
                multicast=multicast.with_port(self.address) if self.multicasts else "",
                loss=self.recipe.native_loss(0), seal=self.sealing.native if self.sealing is not None else None,
                sender=self._senders[0],
            )  # fmt: skip
            if self._urgency.dedicated and self.multicasts:
                self.hand_over(channel.first_seq)  # the publisher's thread does not have the schedule
            self._urgency.schedule(self.answering.repair.thread_id, helper=not self.carrier)
        self._tell_members()
        member.sending = MemberSending(self, channel, source, member.host, member.port)
        return member.sending

    def push(self) -> None:
        if not self._pushed and self._socket is not None and self._source is not None and self.pumped_from is None:
            self._pushed = True
            self._source.links.add_link(
                self.key, self._socket.fileno(), key=self.key, every=self.identity.every, chunk=self.chunk,
                first_seq=self._source.next_seq, seal=self._seal(), rank=self._urgency.rank,
            )  # fmt: skip

    def renew_keys(self) -> None:
        if self.sealing is None or not self.sealing.renew():
            return
        seal = self._seal()
        if self._pushed and self._source is not None and seal is not None:
            self._source.links.rekey_link(self.key, seal)
        for member in self.members:
            if member and member.sending:
                member.sending.rekey()

    def _seal(self) -> LinkSeal | None:
        return self.sealing.link(self._senders[1]) if self.sealing is not None else None

    def hand_over(self, seq: int) -> None:
        if self.pumped_from is None:
            self.pumped_from = seq
            self.answering.repair.pump_from(self.key, seq)
            if self._pushed and self._source is not None:
                self._source.links.remove_link(self.key)

    def retune(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.answering.repair.retune(self.key, recipe.tuning, recipe.native_loss(0))

    def counters(self) -> dict[str, int]:
        if self._native is None:
            return {"sealed": int(self.sealing is not None)}
        found = self._native.counters()
        if self.pumped_from is None:  # the publisher sends by itself, and counts for itself
            del found["messages"], found["bytes"]
        return found | {"receivers": sum(map(bool, self.members))}

    # ------------------------------------------------------------------ multicast

    def check(self) -> None:
        if self._socket is None or self._native is None:
            return
        try:
            # Receivers ignore it; the kernel says whether there is a route.
            self._socket.send(b"")
            # Whether it leads anywhere only receivers can say.
            self.answering.repair.probe(self.key)
        except BlockingIOError:
            return
        except OSError as exc:
            self._fall_back(exc)

    def direct(self, channel: int) -> None:
        for member in self.members:
            if member and member.channel == channel and member.sending and not member.direct:
                member.direct = True
                self._tell_members()
                member.sending.fall_back()

    def _fall_back(self, exc: OSError) -> None:
        logger.warning("no route to multicast group %s any more (%s); sending to each node", self.address, exc)
        if self._pushed and self._source is not None:
            self._source.links.remove_link(self.key)
            self._pushed = False
        if self._socket is not None:
            _shut(self._socket)
            self._socket = None
        self.answering.repair.set_multicast(self.key, "")
        for member in self.members:
            if member and member.sending:
                member.sending.fall_back()

    def _open_multicast(self, taken: set[str]) -> None:
        address = multicast.group_address(self.key, taken, self.identity.local)
        try:
            self._socket = multicast.sender(address, self.identity.local, self._urgency.marking)
            self.address = address
        except OSError as exc:
            logger.warning("cannot multicast from %s (%s); sending to each node", self.identity.local, exc)

    def _tell_members(self) -> None:
        rows = [(m.address, m.first_seq, m.direct) if m and m.started else ("", 0, False) for m in self.members]
        if self._native is not None:
            self.answering.repair.set_members(self.key, rows)


class Groups:
    """All of this process."""

    def __init__(self) -> None:
        self._groups: dict[Identity, list[SendingGroup]] = {}
        self._of_channel: dict[int, SendingGroup] = {}
        self._answering: dict[str, Answering] = {}
        self._changed: list[SendingGroup] = []

    def admit(self, recipe: Recipe, channel: Channel, source: Source, host: str, port: int) -> Seat:
        """Raises OSError."""
        with connected_datagrams(host, port, Marking()) as probe:
            local: str = probe.getsockname()[0]
            room = min(payload_room(probe), MOST_PAYLOAD_BYTES)
        sealed = channel.seal is not None
        identity = Identity(
            source.ring, recipe.shape, channel.every, channel.reliable, local, sealed, channel.priority
        )  # fmt: skip
        # What the repair thread carries it carries from one message on, the same for all.
        alone = recipe.shape.pumped or (recipe.shape.multicast and Urgency(channel.priority).dedicated)
        known = [] if alone else self._groups.get(identity, [])
        group = next((group for group in known if not group.empty and not group.has(host, port)), None)
        if group is None:
            chunk = room - HEADER_BYTES - (REPAIR_BYTES if recipe.shape.codes else 0)
            chunk -= _core.SEAL_BYTES if sealed else 0
            taken = {group.address for groups in self._groups.values() for group in groups}
            group = SendingGroup(identity, recipe, self._answer_from(local, channel.priority), chunk, taken)
            self._groups.setdefault(identity, []).append(group)
        number = group.seat(channel.key, host, port)
        self._of_channel[channel.key] = group
        return Seat(
            key=group.key, number=number, feedback=group.answering.port, chunk=group.chunk,
            multicast=multicast.with_port(group.address) if group.multicasts else "", next_seq=source.next_seq,
            peers=group.peers() if recipe.shape.knows_peers else [""] * number + [group.peers()[number]],
            seal=group.sealing.receiver() if group.sealing is not None else None,
        )  # fmt: skip

    def start(self, channel: Channel, source: Source) -> MemberSending:
        """Raises OSError."""
        group = self._of_channel.get(channel.key)
        member = next((m for m in group.members if m and m.channel == channel.key), None) if group else None
        if group is None or member is None:
            raise OSError(f"channel {channel.key:x} has no seat any more")
        try:
            sending = group.begin(member, channel, source)
        except BaseException:
            self.dismiss(channel.key)
            raise
        self._regroup(group)
        return sending

    def dismiss(self, key: int) -> None:
        group = self._of_channel.get(key)
        member = next((m for m in group.members if m and m.channel == key), None) if group else None
        if group is not None and (member is None or member.sending is None):
            group.leave(key)
            group.end()
            self._of_channel.pop(key, None)
            self._forget(group)

    def retune(self, key: int, recipe: Recipe) -> None:
        group = self._of_channel.get(key)
        if group is not None:
            group.retune(recipe)

    def direct(self, key: int) -> None:
        group = self._of_channel.get(key)
        if group is not None:
            group.direct(key)

    def take_changes(self) -> list[tuple[int, list[str]]]:
        for key, group in list(self._of_channel.items()):  # channels that were closed
            if not any(member and member.channel == key for member in group.members):
                del self._of_channel[key]
                self._regroup(group)
                self._forget(group)
        changed, self._changed = self._changed, []
        return [
            (member.channel, group.peers())
            for group in changed for member in group.members if member and member.sending
        ]  # fmt: skip

    def check(self) -> None:
        for group in {id(group): group for group in self._of_channel.values()}.values():
            group.check()

    def _regroup(self, group: SendingGroup) -> None:
        if group.identity.shape.knows_peers and group not in self._changed:
            self._changed.append(group)

    def _forget(self, group: SendingGroup) -> None:
        held = self._groups.get(group.identity, [])
        if group.empty and group in held:
            held.remove(group)
            if not held:
                del self._groups[group.identity]

    def _answer_from(self, local: str, priority: str) -> Answering:
        """Of a group with a priority a thread and a marked socket of its own: repairs of others do not delay it."""
        if priority:
            return _answering(local, priority)
        if local not in self._answering:
            self._answering[local] = _answering(local, "")
        return self._answering[local]


@cache
def groups() -> Groups:
    """Of this process: transports of different parameters share groups, and all groups share repair threads."""
    return Groups()


def _answering(local: str, priority: str) -> Answering:
    with bound(socket.SOCK_DGRAM, local, 0) as sock:
        widen_receive_buffer(sock)
        Urgency(priority).mark(sock)
        try:
            multicast.send_from(sock, local)
        except OSError as exc:  # groups find out by themselves, and send to each node
            logger.debug("no multicast from %s: %s", local, exc)
        return Answering(_core.Retransmitter(sock.fileno()), sock.getsockname()[1], own=bool(priority))


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    sock.close()

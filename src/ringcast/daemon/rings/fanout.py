"""Telling one publisher, or whoever writes a mirror, which mailboxes to ring and which links to push to, over a socket
that it reads inside `send`.

    0       4          8           16       24       32          40
    +-------+----------+-----------+--------+--------+-----------+
    | op    | rank,chk | number    | key    | every  | first seq |   native byte order, one packet each; the last three
    +-------+----------+-----------+--------+--------+-----------+   are a link's. `add` carries a descriptor

    A link whose packets are sealed has 56 bytes more: its key (`native/path/sending/fanout.cpp`), and the counter's
    page as a second descriptor.

The very first packet carries the page with the version, which `bump` raises and the publisher compares in `send`.

Invariant: after all packets were read, the publisher knows exactly the mailboxes and links counted here. Never blocks:
a publisher that does not send does not read either, so what the socket cannot take waits here, bounded by the number of
mailboxes and links, because an `add` and a `remove` that both still wait cancel out.
"""

from __future__ import annotations

import contextlib
import enum
import os
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ringcast.control.descriptor import Descriptor
from ringcast.control.link import send_packet
from ringcast.errors import BadMessage, ResourceLimit

_PACKET = struct.Struct("=IIQ")
_LINK_PACKET = struct.Struct("=IIQQQQ")
_ANSWER = struct.Struct("=QQQ")
_ADD = 1
_REMOVE = 2
_ADD_LINK = 3
_REMOVE_LINK = 4
_TOO_LONG = 5
_BEHIND = 6
_VERSION_PAGE = 7
_ADD_SEALED_LINK = 8
_REKEY_LINK = 9


class Flushed(enum.Enum):
    ALL = "nothing waits"
    FULL = "wait until the socket is writable"
    LATER = "the system refuses descriptors in flight; the socket may look writable, so wait by the clock"


class Answer(NamedTuple):
    """A publisher pushes to that link no more, from that message on: it is too long to be pushed, or, `behind`, more
    was due before the publisher knew of the link than can be sent at once."""

    link: int
    seq: int
    behind: bool


class Mailbox:
    """A page that a session sleeps on. Subscriptions of a session usually share one."""

    __slots__ = ("__weakref__", "descriptor", "id")

    def __init__(self, number: int, descriptor: Descriptor) -> None:
        self.id = number
        self.descriptor = descriptor


class _Link(NamedTuple):
    """A link to be announced."""

    packet: bytes
    descriptors: tuple[Descriptor, ...]


class FanOut:
    """The daemon's end of one publisher's fan-out socket; `bump` tells the publisher that there is news, in a page that
    the publisher gets first of all.

    Raises BadMessage when the descriptor is no such socket.
    """

    def __init__(self, descriptor: Descriptor, bump: Callable[[], None], page: Descriptor | None = None) -> None:
        self._socket = _adopt(descriptor)
        self._bump = bump
        self._page = page
        self._holds: Counter[int] = Counter()
        self._waiting: OrderedDict[int, Mailbox | None] = OrderedDict()  # None: remove
        self._waiting_links: OrderedDict[int, _Link | None] = OrderedDict()
        self._waiting_keys: OrderedDict[int, _Link] = OrderedDict()
        self.unwatch: Callable[[], None] | None = None
        """Set by a shell that waits for room in the socket; called before the socket is closed."""
        self.unlisten: Callable[[], None] | None = None
        """The same of one that waits for answers."""
        self._send_page()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def closed(self) -> bool:
        return self._socket.fileno() < 0

    def add(self, mailbox: Mailbox) -> None:
        self._holds[mailbox.id] += 1
        if self._holds[mailbox.id] == 1:
            if self._waiting.get(mailbox.id, mailbox) is None:
                del self._waiting[mailbox.id]
            else:
                self._waiting[mailbox.id] = mailbox

    def remove(self, mailbox: Mailbox) -> None:
        if not self._holds[mailbox.id]:
            return
        self._holds[mailbox.id] -= 1
        if self._holds[mailbox.id] == 0:
            del self._holds[mailbox.id]
            if self._waiting.get(mailbox.id) is not None:
                del self._waiting[mailbox.id]
            else:
                self._waiting[mailbox.id] = None

    def add_link(
        self, number: int, fd: int, *, key: int, every: int, chunk: int, first_seq: int,
        seal: tuple[bytes, int] | None = None, rank: int = 0,
    ) -> None:  # fmt: skip
        """Push to this socket, from `first_seq` on, sealed with what `seal` says, before links of a lower rank. The
        descriptors stay the caller's."""
        operation = _ADD_LINK if seal is None else _ADD_SEALED_LINK
        packet = _LINK_PACKET.pack(operation, chunk | (rank & 0xFFFF) << 16, number, key, every, first_seq)
        self._waiting_keys.pop(number, None)
        if seal is None:
            self._waiting_links[number] = _Link(packet, (Descriptor(os.dup(fd)),))
        else:
            fds = (Descriptor(os.dup(fd)), Descriptor(os.dup(seal[1])))
            self._waiting_links[number] = _Link(packet + seal[0], fds)

    def rekey_link(self, number: int, seal: tuple[bytes, int]) -> None:
        """Seal with that key from now on. Of a link that the publisher gave back it says nothing."""
        if (waiting := self._waiting_links.get(number)) is not None:
            packet = waiting.packet[: _LINK_PACKET.size] + seal[0]
            self._waiting_links[number] = _Link(packet, waiting.descriptors)
        elif number not in self._waiting_links:
            packet = _LINK_PACKET.pack(_REKEY_LINK, 0, number, 0, 0, 0)
            self._waiting_keys[number] = _Link(packet + seal[0], (Descriptor(os.dup(seal[1])),))

    def remove_link(self, number: int) -> None:
        self._waiting_keys.pop(number, None)
        if self._waiting_links.get(number) is not None:
            del self._waiting_links[number]
        else:
            self._waiting_links[number] = None

    def take_answers(self) -> list[Answer]:
        """Links that the publisher gave back since the last call."""
        found: list[Answer] = []
        while True:
            try:
                packet = self._socket.recv(_ANSWER.size, socket.MSG_DONTWAIT)
            except OSError:
                return found
            if len(packet) != _ANSWER.size:
                return found
            op, number, seq = _ANSWER.unpack(packet)
            if op in (_TOO_LONG, _BEHIND):
                found.append(Answer(number, seq, behind=op == _BEHIND))

    def _next(self) -> tuple[bytes, tuple[int, ...], Callable[[], object]] | None:
        """The packet whose turn it is, its descriptors, and what to call once it is sent."""
        if self._page is not None:
            return _PACKET.pack(_VERSION_PAGE, 0, 0), (self._page.fileno(),), self._forget_page
        for number, mailbox in self._waiting.items():
            fds = (mailbox.descriptor.fileno(),) if mailbox else ()
            return _PACKET.pack(_ADD if mailbox else _REMOVE, 0, number), fds, partial(self._waiting.pop, number)
        for number, link in self._waiting_links.items():
            sent = partial(self._waiting_links.pop, number)
            if link is None:
                return _PACKET.pack(_REMOVE_LINK, 0, number), (), sent
            return link.packet, tuple(fd.fileno() for fd in link.descriptors), sent
        for number, key in self._waiting_keys.items():
            page = tuple(fd.fileno() for fd in key.descriptors)
            return key.packet, page, partial(self._waiting_keys.pop, number)
        return None

    def _forget_page(self) -> None:
        self._page = None

    def _send_page(self) -> None:
        """At once: until it has the page, the publisher looks for news with every message. Else with the first news."""
        if self._page is None:
            return
        with contextlib.suppress(OSError, ResourceLimit):
            send_packet(self._socket, _PACKET.pack(_VERSION_PAGE, 0, 0), (self._page.fileno(),), socket.MSG_DONTWAIT)
            self._forget_page()

    def flush(self) -> Flushed:
        """Send what waits, as far as the socket takes it."""
        news = False
        outcome = Flushed.ALL
        while (waiting := self._next()) is not None:
            packet, fds, sent = waiting
            try:
                # The flag and not the socket's mode: whoever made the socket can change its mode.
                send_packet(self._socket, packet, fds, socket.MSG_DONTWAIT)
            except BlockingIOError:
                outcome = Flushed.FULL
                break
            except ResourceLimit:
                outcome = Flushed.LATER
                break
            except OSError:  # the publisher closed its end; its session says so next
                self._forget()
                break
            sent()
            news = True
        if news:
            self._bump()
        return outcome

    def close(self) -> None:
        for forget in (self.unwatch, self.unlisten):
            if forget is not None:
                forget()
        self.unwatch = self.unlisten = None
        self._forget()
        self._socket.close()

    def _forget(self) -> None:
        self._page = None
        self._waiting.clear()
        self._waiting_links.clear()
        self._waiting_keys.clear()


def _adopt(descriptor: Descriptor) -> socket.socket:
    try:
        sock = socket.socket(fileno=descriptor.fileno())
    except OSError as exc:
        raise BadMessage("the fan-out descriptor is not a socket") from exc
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_SEQPACKET:
        sock.detach()
        raise BadMessage("the fan-out socket is not a Unix SOCK_SEQPACKET one")
    descriptor.detach()
    return sock

"""Telling one publisher which mailboxes to ring, over a socket that it reads inside `send`.

    0       4          8           16
    +-------+----------+-----------+
    | op    | reserved | mailbox   |   native byte order, one packet each; `add` carries the mailbox's descriptor
    +-------+----------+-----------+

Invariant: after all packets were read, the publisher knows exactly the mailboxes counted here. Never blocks: a
publisher that does not send does not read either, so what the socket cannot take waits here, bounded by the number of
mailboxes, because an `add` and a `remove` that both still wait cancel out.
"""

from __future__ import annotations

import enum
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable

from ringcast.control.link import send_packet
from ringcast.daemon.descriptor import Descriptor
from ringcast.errors import BadMessage, ResourceLimit

_PACKET = struct.Struct("=IIQ")
_ADD = 1
_REMOVE = 2


class Flushed(enum.Enum):
    ALL = "nothing waits"
    FULL = "wait until the socket is writable"
    LATER = "the system refuses descriptors in flight; the socket may look writable, so wait by the clock"


class Mailbox:
    """A page that a session sleeps on. Subscriptions of a session usually share one."""

    __slots__ = ("__weakref__", "descriptor", "id")

    def __init__(self, number: int, descriptor: Descriptor) -> None:
        self.id = number
        self.descriptor = descriptor


class FanOut:
    """The daemon's end of one publisher's fan-out socket; `bump` tells the publisher that there is news.

    Raises BadMessage when the descriptor is no such socket.
    """

    def __init__(self, descriptor: Descriptor, bump: Callable[[], None]) -> None:
        self._socket = _adopt(descriptor)
        self._bump = bump
        self._holds: Counter[int] = Counter()
        self._waiting: OrderedDict[int, Mailbox | None] = OrderedDict()  # None: remove
        self.unwatch: Callable[[], None] | None = None
        """Set by a shell that waits for room in the socket; called before the socket is closed."""

    def fileno(self) -> int:
        return self._socket.fileno()

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

    def flush(self) -> Flushed:
        """Send what waits, as far as the socket takes it."""
        news = False
        outcome = Flushed.ALL
        while self._waiting:
            number, mailbox = next(iter(self._waiting.items()))
            fds = (mailbox.descriptor.fileno(),) if mailbox else ()
            packet = _PACKET.pack(_ADD if mailbox else _REMOVE, 0, number)
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
                self._waiting.clear()
                break
            del self._waiting[number]
            news = True
        if news:
            self._bump()
        return outcome

    def close(self) -> None:
        if self.unwatch is not None:
            self.unwatch()
        self._waiting.clear()
        self._socket.close()


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

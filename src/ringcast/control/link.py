"""One packet, with the descriptors beside it, over a SOCK_SEQPACKET Unix socket. The daemon's sockets do not block,
a client's do; both use these functions.

Invariant: a descriptor that arrives either belongs to the `Received` that is returned, or is closed before the error
is raised. Received descriptors never survive an exec. Knows nothing of what the messages mean.

`socket.recv_fds` is not used: in Python 3.11 it drops its flags, so descriptors would be inherited by children.
"""

from __future__ import annotations

import array
import errno
import os
import socket
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from ringcast.control.answers import Answer
from ringcast.control.framing import (
    MAX_DESCRIPTORS,
    MAX_PACKET_BYTES,
    decode_reply_untrusted,
    decode_request_untrusted,
    encode,
)
from ringcast.control.notices import Notice
from ringcast.control.requests import Request
from ringcast.errors import BadMessage, ResourceLimit

_M = TypeVar("_M")

_INT_BYTES = array.array("i").itemsize
# CMSG_LEN, not CMSG_SPACE: the padding of the latter would let one descriptor too many through.
_ANCILLARY_BYTES = socket.CMSG_LEN(MAX_DESCRIPTORS * _INT_BYTES)
_SYSTEM_LIMITS = (errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM)


class Received(Generic[_M]):
    """A message and its descriptors, which belong to whoever holds this.

    `limit` is set when the sender passed descriptors that this process had no room for; `fds` is then empty, and the
    message says which request or subscription is concerned.
    """

    __slots__ = ("fds", "limit", "message")

    def __init__(self, message: _M, fds: list[int], limit: ResourceLimit | None = None) -> None:
        self.message = message
        self.fds = fds
        self.limit = limit

    def close(self) -> None:
        """Close the descriptors nobody took out of `fds`."""
        close_all(self.fds)
        self.fds.clear()


def send(sock: socket.socket, message: msgspec.Struct, fds: Sequence[int] = ()) -> None:
    """Send one message. The descriptors stay the caller's.

    Raises BadMessage (does not fit a packet), BlockingIOError (non-blocking socket, full), ResourceLimit (the system
    refuses more descriptors in flight; try again later), OSError (the peer is gone).
    """
    send_packet(sock, encode(message), fds)


def send_packet(sock: socket.socket, packet: bytes, fds: Sequence[int] = (), flags: int = 0) -> None:
    """Send bytes as they are; `send` for messages that were encoded before. Raises as `send` does."""
    if len(fds) > MAX_DESCRIPTORS:
        raise BadMessage(f"{len(fds)} descriptors, more than the {MAX_DESCRIPTORS} of one packet")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        sock.sendmsg([packet], rights, flags | socket.MSG_NOSIGNAL)
    except OSError as exc:
        if exc.errno in _SYSTEM_LIMITS:
            raise ResourceLimit(
                f"the system refused to pass a control message ({exc.strerror})",
                "free memory, or raise the limit of open files (ulimit -n) of the process that sends",
            ) from exc
        raise


def receive_request(sock: socket.socket) -> Received[Request] | None:
    """The next request of a client, or None at its end of file.

    Raises BadMessage, BlockingIOError (non-blocking socket, nothing there), OSError (the peer is gone).
    """
    packet, fds, limit = _receive(sock)
    if not packet:
        return None
    try:
        return Received(decode_request_untrusted(packet), fds, limit)
    except BadMessage:
        close_all(fds)
        raise


def receive_reply(sock: socket.socket) -> Received[Answer | Notice] | None:
    """The daemon's next answer or notice, or None at its end of file. Raises as `receive_request` does."""
    packet, fds, limit = _receive(sock)
    if not packet:
        return None
    try:
        return Received(decode_reply_untrusted(packet), fds, limit)
    except BadMessage:
        close_all(fds)
        raise


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        try:
            os.close(fd)
        except OSError:  # a close that reports an error has closed all the same
            pass


def _receive(sock: socket.socket) -> tuple[bytes, list[int], ResourceLimit | None]:
    packet, ancillary, flags, _ = sock.recvmsg(MAX_PACKET_BYTES, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % _INT_BYTES])
    received = list(fds)
    if flags & socket.MSG_TRUNC:
        close_all(received)
        raise BadMessage(f"more than the {MAX_PACKET_BYTES} bytes of one packet")
    if not flags & socket.MSG_CTRUNC:
        return packet, received, None
    close_all(received)
    if len(received) == MAX_DESCRIPTORS:
        raise BadMessage(f"more than the {MAX_DESCRIPTORS} descriptors of one packet")
    return packet, [], ResourceLimit(
        f"process {os.getpid()} has no room for the descriptors it was passed",
        "raise its limit of open files (ulimit -n), or close publishers and subscribers",
    )  # fmt: skip

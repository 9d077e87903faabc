"""Descriptors whose numbers must not be confused: copies that outlive their originals, and a waker."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence

from ringcast.control.link import close_all
from ringcast.errors import ResourceLimit


def out_of_descriptors(what: str, error: OSError) -> ResourceLimit:
    return ResourceLimit(
        f"{what} ({error.strerror})", "raise the limit of open files (ulimit -n), or close publishers and subscribers"
    )


def copies(fds: Sequence[int]) -> list[int]:
    """Descriptors of one's own: the originals may be closed meanwhile, and their numbers given to somebody else.

    Close them with `ringcast.control.link.close_all`. Raises ResourceLimit.
    """
    kept: list[int] = []
    try:
        for fd in fds:
            kept.append(os.dup(fd))
    except OSError as exc:
        close_all(kept)
        raise out_of_descriptors("cannot pass descriptors on", exc) from exc
    return kept


def uid_of_peer(sock: socket.socket) -> int:
    """The user whose process made the other end of a Unix socket, as the kernel says."""
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


class Waker:
    """Gets the thread out of its poll. Closed by whoever lets go of it last, and not before: a number written to after
    its close could be somebody else's file by then."""

    def __init__(self) -> None:
        try:
            self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError as exc:
            raise out_of_descriptors("cannot open a session", exc) from exc

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)

    def wake(self) -> None:
        os.eventfd_write(self.fd, 1)

    def quiet(self) -> None:
        os.eventfd_read(self.fd)

"""A file descriptor with several holders: a ring's is in the table of rings and in the outboxes of slow clients.

Invariant: it is closed exactly once, when the last holder has let go of it. Duplicating it for every outbox instead
would let one slow client use up the daemon's descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from ringcast.errors import BadMessage


class Openable(Protocol):
    """What a descriptor can be had of when it is needed."""

    def open(self) -> Descriptor:
        """It is closed when nobody holds it any more. Raises ResourceLimit."""


class Descriptor:
    """Owns a descriptor from now on."""

    __slots__ = ("__weakref__", "_fd")

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def open(self) -> Descriptor:
        """Itself, which is open: see `Openable`."""
        return self

    def same_file(self) -> tuple[int, int]:
        """Equal for descriptors of one file, however they came."""
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def detach(self) -> int:
        """Give the descriptor away."""
        fd, self._fd = self._fd, -1
        return fd

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self.detach())


def own(fds: Iterable[int]) -> list[Descriptor]:
    return [Descriptor(fd) for fd in fds]


def expect(fds: list[Descriptor], count: int, message: object) -> None:
    """Raises BadMessage when another number of descriptors came beside a message."""
    if len(fds) != count:
        raise BadMessage(f"{len(fds)} descriptors beside {type(message).__name__}, expected {count}")

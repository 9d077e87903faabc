"""A lock file that may be deleted: `flock` held on the file that has the name now.

Invariant: at most one process holds the lock of a path; whoever holds it may unlink the path, and a process that waited
on the unlinked file notices and locks the new one. The kernel releases a dead process's lock. Not inherited by
children.
"""

from __future__ import annotations

import fcntl
import os
import time
from types import TracebackType

_POLL_S = 0.02


class FileLock:
    """A held lock; leaving the `with` block lets go of it."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def take_nowait(cls, path: str) -> FileLock | None:
        """The lock, or None while another process holds it. Raises OSError when the file cannot be opened."""
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            except OSError:
                os.close(fd)
                raise
            if _names(path, fd):
                return cls(path, fd)
            os.close(fd)

    @classmethod
    def take(cls, path: str, deadline: float) -> FileLock | None:
        """The same, waiting until `deadline` (of time.monotonic). `flock` itself knows no timeout."""
        while (lock := cls.take_nowait(path)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return lock

    def write(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def unlink(self) -> None:
        if self._fd >= 0 and _names(self.path, self._fd):
            os.unlink(self.path)

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _names(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False

"""One daemon per socket: the right to listen on it, held for the daemon's whole life."""

from __future__ import annotations

import logging
import os
import socket
import stat
import time

from ringcast.control.locks import FileLock
from ringcast.control.socket_path import (
    MAX_PATH_BYTES,
    life_path,
    log_path,
    prepare_directory,
    running_pid,
    start_lock_path,
)
from ringcast.errors import DaemonRunning, DaemonUnavailable

logger = logging.getLogger("ringcast.daemon")

BACKLOG = 1024
_GLANCE_S = 0.2
_NOT_YET = ".new"


class Claim:
    """The right to be the daemon of a socket, and the listening socket itself. With `shared` programs of other users
    may connect as soon as it is there.

    Raises DaemonRunning, DaemonUnavailable.
    """

    def __init__(self, socket_path: str, *, shared: bool = False) -> None:
        self.socket_path = os.path.abspath(socket_path)
        self._mode = _mode(shared)
        prepare_directory(self.socket_path)
        self._removed = False
        try:
            # A client that looks whether a daemon lives holds this lock for an instant.
            life = FileLock.take(life_path(self.socket_path), time.monotonic() + _GLANCE_S)
        except OSError as exc:
            raise DaemonUnavailable(self.socket_path, exc.strerror or str(exc)) from exc
        if life is None:
            raise DaemonRunning(self.socket_path, running_pid(self.socket_path))
        self._life = life
        try:
            self._life.write(f"{os.getpid()}\n")
            self.listener = self._bind()
        except OSError as exc:
            raise DaemonUnavailable(self.socket_path, exc.strerror or str(exc)) from exc
        finally:
            if not hasattr(self, "listener"):
                self._life.unlink()
                self._life.release()

    def open_to_others(self, shared: bool) -> None:
        """Whether programs of other users may connect; what they may do is decided when they speak."""
        self._mode = _mode(shared)
        directory = os.path.dirname(self.socket_path)
        try:
            os.chmod(self.socket_path, self._mode)
            private = not os.stat(directory).st_mode & stat.S_IXOTH
        except OSError as exc:
            raise DaemonUnavailable(self.socket_path, exc.strerror or str(exc)) from exc
        if shared and private:
            logger.warning(
                "rules are for other users, and they cannot reach %s: others may not enter %s; choose another socket, "
                "as /run/ringcast/daemon.sock, or chmod o+x that directory", self.socket_path, directory,
            )  # fmt: skip

    def refuse_newcomers(self) -> None:
        """From here on the kernel refuses to connect; whoever connected before can still be accepted."""
        self.listener.shutdown(socket.SHUT_RDWR)

    def listen_again(self) -> None:
        self.listener.close()
        self.listener = self._bind()

    def remove(self) -> None:
        """Take the names away, the socket's first: while we hold `.pid`, nobody else binds. Done once."""
        if self._removed:
            return
        self._removed = True
        _unlink(self.socket_path)
        if _is_empty_stderr(log_path(self.socket_path)):
            _unlink(log_path(self.socket_path))
        try:
            start = FileLock.take_nowait(start_lock_path(self.socket_path))
        except OSError:  # somebody removed the directory
            return
        if start is not None:
            with start:
                start.unlink()
        self._life.unlink()

    def close(self) -> None:
        self.remove()
        self.listener.close()
        self._life.release()

    def _bind(self) -> socket.socket:
        if os.path.lexists(self.socket_path) and not stat.S_ISSOCK(os.lstat(self.socket_path).st_mode):
            raise DaemonUnavailable(self.socket_path, "there is a file of that name that is not a socket")
        # Under another name until it listens: whoever sees the socket can connect.
        name = self.socket_path + _NOT_YET
        if len(os.fsencode(name)) > MAX_PATH_BYTES:
            name = self.socket_path
        _unlink(name)  # of a daemon that died: a living one would hold the lock
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mask = os.umask(0o777 & ~self._mode)
        try:
            listener.bind(name)
            listener.listen(BACKLOG)
            os.rename(name, self.socket_path)
        except OSError:
            listener.close()
            _unlink(name)
            raise
        finally:
            os.umask(mask)
        listener.setblocking(False)
        return listener


def _mode(shared: bool) -> int:
    return 0o666 if shared else 0o600


def _is_empty_stderr(path: str) -> bool:
    try:
        found = os.stat(path)
        return found.st_size == 0 and os.path.samestat(found, os.fstat(2))
    except OSError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass

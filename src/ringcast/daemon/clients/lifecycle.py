"""One daemon per socket: where the socket lives, who may listen on it, and starting one when none runs.

Beside the socket lie `.pid`, locked by the daemon for its whole life (so a dead one is recognised whatever it left
behind), `.lock`, held by whoever starts a daemon and by a daemon that decides to end (so the two cannot cross), and
`.log`, what a daemon started by a client has to say.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
import time
from select import select

from ringcast.control.locks import FileLock
from ringcast.errors import DaemonRunning, DaemonUnavailable

ENVIRONMENT_VARIABLE = "RINGCAST_SOCKET"
MAX_PATH_BYTES = 107  # sockaddr_un
BACKLOG = 1024
_POLL_S = 0.02
_GLANCE_S = 0.2


def default_socket_path() -> str:
    """RINGCAST_SOCKET, or the user's own runtime directory, or a private one under /tmp."""
    given = os.environ.get(ENVIRONMENT_VARIABLE)
    if given:
        return os.path.abspath(given)
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # After `sudo` or `su` it may still be that of the user before.
    if os.path.isdir(runtime) and os.stat(runtime).st_uid == os.geteuid():
        return os.path.join(runtime, "ringcast", "daemon.sock")
    return f"/tmp/ringcast-{os.geteuid()}/daemon.sock"


def prepare_directory(socket_path: str) -> None:
    """Make the socket's directory. The default one must be ours alone: under /tmp anybody could have made it.

    Raises DaemonUnavailable.
    """
    if len(os.fsencode(socket_path)) > MAX_PATH_BYTES:
        raise DaemonUnavailable(
            socket_path, f"the path is longer than {MAX_PATH_BYTES} bytes, set {ENVIRONMENT_VARIABLE} to a shorter one"
        )
    directory = os.path.dirname(socket_path) or "."
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as exc:
        raise DaemonUnavailable(socket_path, f"{directory}: {exc.strerror}") from exc
    check_directory(socket_path)


def check_directory(socket_path: str) -> None:
    """Whether the default socket's directory, if there is one, is ours alone. Raises DaemonUnavailable."""
    directory = os.path.dirname(socket_path) or "."
    if os.environ.get(ENVIRONMENT_VARIABLE) or socket_path != default_socket_path():
        return
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise DaemonUnavailable(socket_path, f"{directory}: {exc.strerror}") from exc
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise DaemonUnavailable(
            socket_path, f"{directory} must be a directory of user {os.geteuid()} with mode 0700; remove or repair it"
        )


class Claim:
    """The right to be the daemon of a socket, and the listening socket itself.

    Raises DaemonRunning, DaemonUnavailable.
    """

    def __init__(self, socket_path: str) -> None:
        self.socket_path = os.path.abspath(socket_path)
        prepare_directory(self.socket_path)
        self._removed = False
        try:
            # A client that looks whether a daemon lives holds this lock for an instant.
            life = FileLock.take(_life_path(self.socket_path), time.monotonic() + _GLANCE_S)
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
        if os.path.lexists(self.socket_path):
            if not stat.S_ISSOCK(os.lstat(self.socket_path).st_mode):
                raise DaemonUnavailable(self.socket_path, "there is a file of that name that is not a socket")
            os.unlink(self.socket_path)  # of a daemon that died: a living one would hold the lock
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mask = os.umask(0o177)
        try:
            listener.bind(self.socket_path)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        finally:
            os.umask(mask)
        listener.setblocking(False)
        return listener


def start_lock_path(socket_path: str) -> str:
    return socket_path + ".lock"


def log_path(socket_path: str) -> str:
    return socket_path + ".log"


def _life_path(socket_path: str) -> str:
    return socket_path + ".pid"


def running_pid(socket_path: str) -> int | None:
    """Which process serves the socket, if it has written that down yet."""
    try:
        with open(_life_path(socket_path)) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def ensure_running(socket_path: str, timeout: float = 10.0) -> None:
    """Return once a daemon listens at `socket_path`; start one, as its own process, when none does.

    It will not end for lack of clients within its linger (a second, unless told otherwise) after this returned.
    Raises DaemonUnavailable.
    """
    socket_path = os.path.abspath(socket_path)
    prepare_directory(socket_path)
    deadline = time.monotonic() + timeout
    try:
        lock = FileLock.take(start_lock_path(socket_path), deadline)
    except OSError as exc:
        raise DaemonUnavailable(socket_path, exc.strerror or str(exc)) from exc
    if lock is None:
        raise DaemonUnavailable(socket_path, f"another program has been starting it for more than {timeout:g} s")
    with lock:
        while not _answers(socket_path):
            if time.monotonic() > deadline:
                raise DaemonUnavailable(socket_path, f"it does not listen after {timeout:g} s")
            if _is_claimed(socket_path):
                time.sleep(_POLL_S)  # somebody started it by hand this very moment, or it is about to be gone
            else:
                _spawn(socket_path, deadline)


def _answers(socket_path: str) -> bool:
    """Whether a daemon accepts connections. Having had this one as a client, it waits its full linger again."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        probe.setblocking(False)
        try:
            probe.connect(socket_path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except BlockingIOError:
            return True  # so many wait to be let in that we could not even queue
        except OSError as exc:
            raise DaemonUnavailable(socket_path, exc.strerror or str(exc)) from exc
    return True


def _is_claimed(socket_path: str) -> bool:
    life = FileLock.take_nowait(_life_path(socket_path))
    if life is None:
        return True
    with life:
        life.unlink()
    return False


def _spawn(socket_path: str, deadline: float) -> None:
    if not sys.executable:
        raise DaemonUnavailable(socket_path, "this Python does not know its own executable")
    ready, told = os.pipe()
    command = [sys.executable, "-P", "-m", "ringcast", "daemon", "--until-idle", "--no-config"]
    command += ["--socket", socket_path]
    log = os.open(log_path(socket_path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        # It forks once more and this one returns at once, so that no caller ends up with a child it did not make.
        subprocess.run(
            [*command, "--ready-fd", str(told)], check=False, cwd="/", env=_environment(), pass_fds=(told,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
            timeout=max(0.1, deadline - time.monotonic()),
        )  # fmt: skip
        os.close(told)
        told = -1
        readable, _, _ = select([ready], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise DaemonUnavailable(socket_path, "it was started and is not ready in time")
        if not os.read(ready, 16) and not _is_claimed(socket_path):
            raise DaemonUnavailable(socket_path, f"it was started and ended: {_last_line(log_path(socket_path))}")
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise DaemonUnavailable(socket_path, f"starting it failed: {exc}") from exc
    finally:
        for fd in (ready, told, log):
            if fd >= 0:
                os.close(fd)


def _environment() -> dict[str, str]:
    """Ours, with PYTHONPATH made absolute: the daemon's working directory is /."""
    environment = dict(os.environ)
    if path := environment.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return environment


def _last_line(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            lines = [line for line in file.read()[-4096:].splitlines() if line.strip()]
    except OSError:
        lines = []
    return re.sub(r"\s+", " ", lines[-1])[:300] if lines else "it said nothing"


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

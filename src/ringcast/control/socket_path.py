"""Where a daemon's socket lives, and the files beside it that client and daemon share.

Beside the socket lie `.pid`, locked by the daemon for its whole life (so that a dead daemon is recognised by its free
lock), `.lock`, held by whoever starts a daemon and by a daemon that decides to end (so the two cannot cross), and
`.log`, the log of a daemon that a client started.
"""

from __future__ import annotations

import os
import stat

from ringcast.errors import DaemonUnavailable

ENVIRONMENT_VARIABLE = "RINGCAST_SOCKET"
MAX_PATH_BYTES = 107  # sockaddr_un


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


def placed_for(socket_path: str, uid: int) -> bool:
    """Whether root gave that user the place of the socket, as systemd does with /run/ringcast: the directory is the
    user's, only the user can write to it, and nobody but root could have put it there."""
    directory = os.path.realpath(os.path.dirname(os.path.abspath(socket_path)))
    try:
        found = os.stat(directory)
        above = [os.stat(parent) for parent in _parents(directory)]
    except OSError:
        return False
    own = found.st_uid == uid and not found.st_mode & 0o022
    return own and all(parent.st_uid == 0 and not parent.st_mode & 0o022 for parent in above)


def _parents(directory: str) -> list[str]:
    parents = []
    while (parent := os.path.dirname(directory)) != directory:
        parents.append(directory := parent)
    return parents


def start_lock_path(socket_path: str) -> str:
    return socket_path + ".lock"


def log_path(socket_path: str) -> str:
    return socket_path + ".log"


def life_path(socket_path: str) -> str:
    return socket_path + ".pid"


def running_pid(socket_path: str) -> int | None:
    """Which process serves the socket, if it has written that down yet."""
    try:
        with open(life_path(socket_path)) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None

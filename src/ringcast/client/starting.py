"""Starting this node's daemon when none runs. Invariant: however many programs start one at once, one daemon runs."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from select import select

from ringcast.control.locks import FileLock
from ringcast.control.socket_path import life_path, log_path, prepare_directory, start_lock_path
from ringcast.errors import DaemonUnavailable

_POLL_S = 0.02


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
    life = FileLock.take_nowait(life_path(socket_path))
    if life is None:
        return True
    with life:
        life.unlink()
    return False


def _spawn(socket_path: str, deadline: float) -> None:
    import subprocess  # most programs find a daemon that runs

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

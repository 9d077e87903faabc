"""What this machine is and allows: its name, its memory, open files, and who is at the other end of a socket."""

from __future__ import annotations

import errno
import functools
import os
import pwd
import re
import resource
import select
import socket
import struct
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_MAX_GROUPS = 4096
_SO_PEERGROUPS = 59  # Linux 4.13; not in Python's socket module
_SO_PEERPIDFD = 77  # Linux 6.5; not in Python's socket module
_CGROUPS = Path("/sys/fs/cgroup")


class Peer(NamedTuple):
    """Who made the other end of a Unix socket, as the kernel says; `gids` are all its groups."""

    pid: int
    uid: int
    user: str
    gids: frozenset[int] = frozenset()


def peer_of(sock: socket.socket) -> Peer:
    size = struct.calcsize("i2I")
    pid, uid, gid = struct.unpack("i2I", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return Peer(pid, uid, _user(uid), frozenset({gid, *_groups(sock)}))


def _groups(sock: socket.socket) -> tuple[int, ...]:
    """Those beside the first; none where the kernel does not tell."""
    try:
        raw = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_GROUPS * 4)
    except OSError:
        return ()
    return struct.unpack(f"{len(raw) // 4}I", raw)


def program_of(pid: int, pidfd: int | None) -> str:
    """The executable of a process; '' when it may not be known. A number could be another process's by now: the
    descriptor says that the one which was meant still lives."""
    if pidfd is None:
        return ""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return "" if poll.poll(0) else program


def pidfd_of(sock: socket.socket, pid: int) -> int:
    """A descriptor that becomes readable when the peer's process dies. Raises OSError, ProcessLookupError.

    Older kernels cannot tell from the socket; there a number that was reused in the last moments names a stranger.
    """
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as exc:
        if exc.errno in (errno.ESRCH, errno.ENODATA):
            raise ProcessLookupError(errno.ESRCH, "the client has died") from exc
        if exc.errno != errno.ENOPROTOOPT:
            raise
    return os.pidfd_open(pid)


def node_name() -> str:
    """The host's name, with what a node's name may not hold taken out."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:64] or "node"


def raise_file_limit() -> int:
    """Take as many open files as we may without asking; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def max_files() -> int:
    """How many files this process may have open, if it asks for all."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or less where a cgroup says so."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    limits = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, name = _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        # Inside a container the path may be the host's; its own limit is then at the root.
        for place in (root, group, *group.parents):
            text = _read(place / name).strip() if place == root or root in place.parents else ""
            if text.isdigit():
                limits.append(int(text))
    return limits


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


@functools.lru_cache(maxsize=256)
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@functools.cache
def package_version() -> str:
    """Of this package; looked up once, since that reads files."""
    try:
        return metadata.version("ringcast")
    except metadata.PackageNotFoundError:
        return "not installed"

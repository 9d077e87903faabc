"""What this machine is and allows: its name, its memory, open files, and who is at the other end of a socket."""

from __future__ import annotations

import errno
import functools
import os
import pwd
import re
import resource
import socket
import struct
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_SO_PEERPIDFD = 77  # Linux 6.5; not in Python's socket module
_CGROUPS = Path("/sys/fs/cgroup")


class Peer(NamedTuple):
    """Who made the other end of a Unix socket, as the kernel says."""

    pid: int
    uid: int
    user: str


def peer_of(sock: socket.socket) -> Peer:
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return Peer(pid, uid, _user(uid))


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

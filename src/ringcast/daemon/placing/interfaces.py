"""How fast the interface is that leads to another node, as far as its driver says, and what came and left by it.
Reads the kernel's tables only."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

_ADDRESS_OF = 0x8915
"""SIOCGIFADDR"""
_NAME_BYTES = 16


def local_address(host: str) -> str:
    """This machine's address for what is sent to `host`. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((host, 9))  # sends nothing
        return str(sock.getsockname()[0])


def bytes_per_second(address: str) -> float:
    """Of the interface that has the address; 0 when it is a loop-back, or says nothing."""
    name = interface_of(address)
    return 0.0 if name is None else speed_of(name)


def speed_of(name: str) -> float:
    """Bytes per second of an interface; 0 when it says nothing."""
    try:
        megabits = int(Path(f"/sys/class/net/{name}/speed").read_text())
    except (OSError, ValueError):  # a loop-back, a tunnel, or a link that is down
        return 0.0
    return megabits * 1e6 / 8 if megabits > 0 else 0.0


def received() -> dict[str, int]:
    """Bytes that came so far, by interface of this network namespace."""
    return _counted(0)


def sent() -> dict[str, int]:
    """Bytes that left so far, by interface of this network namespace."""
    return _counted(8)


def _counted(column: int) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]:
            name, _, counts = line.partition(":")
            found[name.strip()] = int(counts.split()[column])
    return found


def interface_of(address: str) -> str | None:
    wanted = ipaddress.ip_address(address.partition("%")[0])
    if wanted.version == 6:
        with contextlib.suppress(OSError):
            for line in Path("/proc/net/if_inet6").read_text().splitlines():
                words = line.split()
                if int(words[0], 16) == int(wanted):
                    return words[5]
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            asked = struct.pack(f"{_NAME_BYTES}s24x", name.encode())
            with contextlib.suppress(OSError):  # one without an address
                answer = fcntl.ioctl(sock.fileno(), _ADDRESS_OF, asked)
                if answer[20:24] == wanted.packed:
                    return name
    return None

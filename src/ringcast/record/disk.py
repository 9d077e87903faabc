"""The recorder's share of the disk: its I/O priority, which paper 000 names beside processor, link and memory.

Linux reads it per thread and hands it on to threads that are made later, so it is set before any is.
"""

from __future__ import annotations

import ctypes
import os
import platform
from typing import NamedTuple

from ringcast.errors import QosMismatch

_CLASSES = {"realtime": 1, "best-effort": 2, "idle": 3}
_SHIFT = 13
_WHO_PROCESS = 1
_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31)}
MOST_LEVEL = 7
EXPECTED = "'realtime:0' to 'realtime:7', 'best-effort:0' to 'best-effort:7', or 'idle'"


class DiskPriority(NamedTuple):
    """Of the levels 0 is the first to be served."""

    name: str
    level: int = 0

    @property
    def text(self) -> str:
        return self.name if self.name == "idle" else f"{self.name}:{self.level}"


def read(text: str) -> DiskPriority:
    """Raises ValueError."""
    name, _, level = text.partition(":")
    if name == "idle" and not level:
        return DiskPriority(name)
    if name in ("realtime", "best-effort") and level.isdecimal() and int(level) <= MOST_LEVEL:
        return DiskPriority(name, int(level))
    raise ValueError(f"an I/O priority is {EXPECTED}, not {text!r}")


def take(wanted: DiskPriority) -> None:
    """Give it to the calling thread, and to those that it starts later. Raises QosMismatch."""
    value = _CLASSES[wanted.name] << _SHIFT | wanted.level
    if _call(0, _WHO_PROCESS, 0, value) < 0:
        reason = os.strerror(ctypes.get_errno())
        remedy = "realtime takes root or CAP_SYS_NICE; 'best-effort:0' does not"
        raise QosMismatch(f"the I/O priority {wanted.text}", f"the kernel refuses it: {reason}", remedy)


def held() -> DiskPriority | None:
    """What the kernel has of the calling thread; None when nobody set any."""
    value = _call(1, _WHO_PROCESS, 0, 0)
    names = {number: name for name, number in _CLASSES.items()}
    name = names.get(value >> _SHIFT) if value >= 0 else None
    return DiskPriority(name, value & MOST_LEVEL if name != "idle" else 0) if name else None


def _call(which: int, *arguments: int) -> int:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        ctypes.set_errno(38)
        return -1
    return int(ctypes.CDLL(None, use_errno=True).syscall(numbers[which], *arguments))

"""How much of everything this user may have: open files, mappings, locked memory, memory for rings."""

from __future__ import annotations

import resource
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding, limited, ok
from ringcast.cli.parts.units import show_bytes

_DESCRIPTORS_PER_RING = 2
_MAPPINGS_PER_RING = 4
_ENOUGH_FILES = 4096
_ENOUGH_MAPPINGS = 65530  # the kernel's own default
_ENOUGH_LOCKED = 64 * 1024 * 1024
_CAP_IPC_LOCK = 14


def look() -> list[Finding]:
    return [_files(), _mappings(), _locked(), _memory()]


def _files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    rings = "as many rings as memory allows" if hard < 0 else f"some {hard // _DESCRIPTORS_PER_RING} rings per process"
    value = f"{_shown(soft)} (at most {_shown(hard)}): {rings}"
    if hard < 0 or hard >= _ENOUGH_FILES:
        return ok("open files", value)
    remedy = "Each ring takes two descriptors; raise the limit with 'ulimit -Hn', limits.conf or LimitNOFILE=."
    return limited("open files", value, remedy)


def _mappings() -> Finding:
    try:
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        most = _ENOUGH_MAPPINGS
    value = f"{most}: some {most // _MAPPINGS_PER_RING} rings per process"
    if most >= _ENOUGH_MAPPINGS:
        return ok("vm.max_map_count", value)
    remedy = f"Each ring takes four mappings; allow more with 'sysctl vm.max_map_count={_ENOUGH_MAPPINGS}'."
    return limited("vm.max_map_count", value, remedy)


def _locked() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft < 0 or soft >= _ENOUGH_LOCKED or has_capability(_CAP_IPC_LOCK):
        value = "unlimited" if soft < 0 or has_capability(_CAP_IPC_LOCK) else show_bytes(soft)
        return ok("locked memory", value)
    remedy = "To keep rings from being swapped out (mlockall) raise it with 'ulimit -l' or LimitMEMLOCK=."
    return limited("locked memory", f"{show_bytes(soft)} (at most {_shown(hard)})", remedy)


def _memory() -> Finding:
    from ringcast.daemon.machine import memory_bytes

    total, free = memory_bytes(), _available()
    budget = total // 2
    value = f"{show_bytes(budget)} of {show_bytes(total)} for rings by default, {show_bytes(free)} free now"
    if free >= budget // 2:
        return ok("memory", value)
    remedy = "Rings may be promised more than there is; free some, or start the daemon with a smaller --budget."
    return limited("memory", value, remedy)


def has_capability(number: int) -> bool:
    """Whether this process may use that Linux capability now."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    held = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(held, 16) >> number & 1)


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return 0


def _shown(limit: int) -> str:
    return "unlimited" if limit < 0 else str(limit)

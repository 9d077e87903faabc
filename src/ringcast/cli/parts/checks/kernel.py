"""What the kernel and the processor offer."""

from __future__ import annotations

import fcntl
import os
import platform
import re
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding, limited, missing, ok

_OLDEST = (5, 10)
_TESTED_MACHINES = ("x86_64", "aarch64")
_F_SEAL_FUTURE_WRITE = 0x0010  # not in Python's fcntl before 3.13
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_QUICK_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


def look() -> list[Finding]:
    return [_version(), _machine(), _seals(), _pidfd(), _waitv(), _cores(), _clock()]


def _version() -> Finding:
    release = platform.release()
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) >= _OLDEST:
        return ok("kernel", f"{platform.system()} {release}")
    remedy = "Ringcast is made for Linux 5.10 and newer; upgrade the kernel, or trust the lines below."
    return limited("kernel", f"{platform.system()} {release}", remedy)


def _machine() -> Finding:
    machine = platform.machine()
    if machine in _TESTED_MACHINES:
        return ok("processor", machine)
    remedy = f"Only {' and '.join(_TESTED_MACHINES)} are meant to work; run the tests before relying on it."
    return limited("processor", machine, remedy)


def _seals() -> Finding:
    """Rings are memory that only their writer can change; that is what these seals are for."""
    remedy = "Rings cannot be protected from their readers; use Linux 5.1 or newer with memfd_create allowed."
    try:
        fd = os.memfd_create("ringcast-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as exc:
        return missing("memfd seals", _reason(exc), remedy, needed=True)
    try:
        os.ftruncate(fd, 4096)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE)
    except OSError as exc:
        return missing("memfd seals", _reason(exc), remedy, needed=True)
    finally:
        os.close(fd)
    return ok("memfd seals", "shrink, grow, future-write", needed=True)


def _pidfd() -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as exc:
        remedy = "The daemon could not see clients die; use Linux 5.3 or newer, or let the container call it."
        return missing("pidfd", _reason(exc), remedy, needed=True)
    return ok("pidfd", "a client's death is seen at once", needed=True)


def _waitv() -> Finding:
    from ringcast import _core

    if _core.futex_waitv_available():
        return ok("futex_waitv", "several publishers are waited for directly")
    remedy = "Subscribers of several publishers wait through a mailbox; Linux 5.16 or newer makes them quicker."
    return limited("futex_waitv", "not there", remedy)


def _cores() -> Finding:
    mine, all_cores = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    value = f"{mine}" if mine == all_cores else f"{mine} of {all_cores}"
    if mine > 1:
        return ok("cores", value)
    remedy = "Publisher and subscriber take turns, and busy polling starves the other; allow two cores or more."
    return limited("cores", value, remedy)


def _clock() -> Finding:
    try:
        source = _CLOCK.read_text().strip()
    except OSError as exc:
        remedy = "It cannot be read here; where it is neither tsc nor arch_sys_counter each time stamp costs more."
        return limited("clock source", _reason(exc), remedy)
    if source in _QUICK_CLOCKS:
        return ok("clock source", source)
    remedy = f"Each time stamp may cost a system call; choose tsc in {_CLOCK} if it is stable here."
    return limited("clock source", source, remedy)


def _reason(exc: OSError) -> str:
    return exc.strerror or str(exc)

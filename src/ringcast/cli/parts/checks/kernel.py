"""What the kernel and the processor offer."""

from __future__ import annotations

import fcntl
import os
import platform
import re
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding

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
        return Finding(name="kernel", state="ok", value=f"{platform.system()} {release}")
    return Finding(
        name="kernel", state="limited", value=f"{platform.system()} {release}",
        remedy="Ringcast is made for Linux 5.10 and newer; upgrade the kernel, or trust the lines below.",
    )  # fmt: skip


def _machine() -> Finding:
    machine = platform.machine()
    if machine in _TESTED_MACHINES:
        return Finding(name="processor", state="ok", value=machine)
    return Finding(
        name="processor", state="limited", value=machine,
        remedy=f"Only {' and '.join(_TESTED_MACHINES)} are meant to work; run the tests before relying on it.",
    )  # fmt: skip


def _seals() -> Finding:
    """Rings are memory that only their writer can change; that is what these seals are for."""
    remedy = "Rings cannot be protected from their readers; use Linux 5.1 or newer with memfd_create allowed."
    try:
        fd = os.memfd_create("ringcast-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as exc:
        return Finding(name="memfd seals", state="missing", value=_reason(exc), remedy=remedy, needed=True)
    try:
        os.ftruncate(fd, 4096)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE)
    except OSError as exc:
        return Finding(name="memfd seals", state="missing", value=_reason(exc), remedy=remedy, needed=True)
    finally:
        os.close(fd)
    return Finding(name="memfd seals", state="ok", value="shrink, grow, future-write", needed=True)


def _pidfd() -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as exc:
        return Finding(
            name="pidfd", state="missing", value=_reason(exc), needed=True,
            remedy="The daemon could not see clients die; use Linux 5.3 or newer, or let the container call it.",
        )  # fmt: skip
    return Finding(name="pidfd", state="ok", value="a client's death is seen at once", needed=True)


def _waitv() -> Finding:
    from ringcast import _core

    if _core.futex_waitv_available():
        return Finding(name="futex_waitv", state="ok", value="several publishers are waited for directly")
    return Finding(
        name="futex_waitv", state="limited", value="not there",
        remedy="Subscribers of several publishers wait through a mailbox; Linux 5.16 or newer makes them quicker.",
    )  # fmt: skip


def _cores() -> Finding:
    mine, all_cores = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    value = f"{mine}" if mine == all_cores else f"{mine} of {all_cores}"
    if mine > 1:
        return Finding(name="cores", state="ok", value=value)
    return Finding(
        name="cores", state="limited", value=value,
        remedy="Publisher and subscriber take turns, and busy polling starves the other; allow two cores or more.",
    )  # fmt: skip


def _clock() -> Finding:
    try:
        source = _CLOCK.read_text().strip()
    except OSError as exc:
        return Finding(
            name="clock source", state="limited", value=_reason(exc),
            remedy="It cannot be read here; where it is neither tsc nor arch_sys_counter each time stamp costs more.",
        )  # fmt: skip
    if source in _QUICK_CLOCKS:
        return Finding(name="clock source", state="ok", value=source)
    return Finding(
        name="clock source", state="limited", value=source,
        remedy=f"Each time stamp may cost a system call; choose tsc in {_CLOCK} if it is stable here.",
    )  # fmt: skip


def _reason(exc: OSError) -> str:
    return exc.strerror or str(exc)

"""What priorities need: whether threads may run with real-time policies, tried in a child process so that nothing here
changes; whether cores may be kept awake, and links' bandwidth be reserved."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from ringcast.cli.parts.checks.finding import Finding, limited, ok
from ringcast.cli.parts.checks.limits import has_capability
from ringcast.transport.urgent.awake import DEVICE

_TRY_S = 10.0
_CAP_NET_ADMIN = 12
# Each policy is tried in a fork of its own: one that was granted would change what the next is allowed.
_TRIAL = """\
import ctypes, json, os, platform, struct
def attempt(change):
    pid = os.fork()
    if pid == 0:
        try:
            change()
        except OSError as exc:
            os._exit(exc.errno)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def fifo():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
def deadline():
    # struct sched_attr: 1 ms of every 10 ms
    attr = struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 1_000_000, 10_000_000, 10_000_000)
    number = {'x86_64': 314, 'aarch64': 274}.get(platform.machine())
    if number is None:
        raise OSError(38, 'unknown machine')
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 0, attr, 0) != 0:
        raise OSError(ctypes.get_errno(), 'refused')
print(json.dumps({'fifo': attempt(fifo), 'deadline': attempt(deadline)}))
"""


def look() -> list[Finding]:
    tried = _try()
    return [_fifo(tried.get("fifo")), _deadline(tried.get("deadline")), _throttling(), _sleep(), bandwidth()]


def _try() -> dict[str, int]:
    """errno of each attempt, 0 for granted; empty when nothing could be tried."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRIAL], capture_output=True, timeout=_TRY_S, check=True
        )
        return msgspec.json.decode(done.stdout, type=dict[str, int])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return {}


def _fifo(code: int | None) -> Finding:
    most = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    priority = "no limit" if most < 0 else f"RLIMIT_RTPRIO {most}"
    if code == 0:
        return ok("SCHED_FIFO", f"allowed ({priority})")
    remedy = "Threads get no priority over others; it takes rtprio in limits.conf, LimitRTPRIO= or CAP_SYS_NICE."
    return limited("SCHED_FIFO", f"{_refusal(code)} ({priority})", remedy)


def _deadline(code: int | None) -> Finding:
    if code == 0:
        return ok("SCHED_DEADLINE", "allowed")
    remedy = "Processor time cannot be reserved; it takes CAP_SYS_NICE, and a process free to use all cores."
    return limited("SCHED_DEADLINE", _refusal(code), remedy)


def _throttling() -> Finding:
    name = "kernel.sched_rt_runtime_us"
    try:
        runtime, period = (
            int(Path(f"/proc/sys/kernel/sched_rt_{kind}_us").read_text()) for kind in ("runtime", "period")
        )
    except (OSError, ValueError):
        remedy = "How much of a core real-time threads get is not known; look with 'sysctl -a'."
        return limited(name, "cannot be read", remedy)
    if runtime == 0:
        remedy = "Real-time threads get no time at all; set 'sysctl kernel.sched_rt_runtime_us=950000'."
        return limited(name, "0", remedy)
    share = "no limit" if runtime < 0 else f"{100 * runtime / period:.0f} % of a core for real-time threads"
    return ok(name, f"{runtime} ({share})")


def _sleep() -> Finding:
    name = "cores' sleep"
    if os.access(DEVICE, os.R_OK | os.W_OK):
        return ok(name, "may be limited while channels have a schedule")
    there = "not permitted" if DEVICE.exists() else "the kernel has no such limit"
    remedy = "Cores that fell asleep run urgent threads later; it takes a daemon of root, or write access by udev."
    return limited(name, f"{DEVICE}: {there}", remedy)


def bandwidth(
    which: Callable[[str], str | None] = shutil.which, allowed: Callable[[int], bool] = has_capability
) -> Finding:
    """Whether queues of links can be set up from here."""
    name = "bandwidth"
    lacking = [program for program in ("tc", "ip") if which(program) is None]
    if lacking:
        remedy = "Bandwidth cannot be reserved for channels; install iproute2."
        return limited(name, f"there is no {' and no '.join(repr(one) for one in lacking)}", remedy)
    if not allowed(_CAP_NET_ADMIN):
        remedy = "Bandwidth is reserved by daemons with CAP_NET_ADMIN alone: root's, or 'ringcast service --bandwidth'."
        return limited(name, "CAP_NET_ADMIN is missing", remedy)
    return ok(name, "links' queues may be set up (tc)")


def _refusal(code: int | None) -> str:
    if code is None:
        return "could not be tried"
    return "not permitted" if code in (errno.EPERM, errno.EACCES) else os.strerror(code)

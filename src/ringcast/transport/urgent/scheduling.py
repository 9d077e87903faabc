"""Schedules of native threads: asking the kernel for one, and reading what it has.

Invariant: what a channel shows as in force was read from the kernel.
"""

from __future__ import annotations

import errno
from collections.abc import Collection

from ringcast import _core
from ringcast.errors import QosMismatch
from ringcast.model import schedule
from ringcast.model.schedule import DEADLINE, FIFO, LEAST_RUNTIME_NS, OTHER, RR, Schedule
from ringcast.transport.urgent.limits import LIMITS

_NUMBERS = {OTHER: 0, FIFO: 1, RR: 2, DEADLINE: 6}
_POLICIES = {number: policy for policy, number in _NUMBERS.items()} | {3: "batch", 5: "idle"}


def give(thread: int, wanted: Schedule) -> str:
    """'' when the thread has it now, else in words why it has not."""
    if thread <= 0:  # the kernel would take 0 for the caller's own thread
        return "there is no such thread any more"
    try:
        _core.set_schedule(thread, _values(wanted))
    except OSError as exc:
        return why(wanted, exc)
    return ""


def of(thread: int) -> str:
    """What the kernel has, as text; '' when the thread has ended."""
    if thread <= 0:
        return ""
    try:
        number, priority, runtime_ns, deadline_ns, period_ns = _core.schedule_of(thread)
    except OSError:
        return ""
    return Schedule(_POLICIES.get(number, str(number)), priority, runtime_ns, deadline_ns, period_ns).text


def check(text: str, where: str, replaced: Collection[int] = ()) -> None:
    """Raises QosMismatch when the kernel of this node, called `where`, would not grant the schedule now, to a channel
    that takes the place of one of these publishers'."""
    wanted = schedule.read(text or OTHER)
    if limited := LIMITS.refusal(wanted, replaced):
        raise QosMismatch(f"the schedule {text} on node {where!r}", limited, "raise the limit in its ringcast.toml")
    try:
        _core.try_schedule(_values(_beyond(wanted, LIMITS.share_of(replaced))))
    except OSError as exc:
        remedy = _FIX if exc.errno == errno.EPERM else "choose a smaller share, or release another reservation"
        raise QosMismatch(f"the schedule {text} on node {where!r}", why(wanted, exc), remedy) from exc


def _beyond(wanted: Schedule, had: float) -> Schedule:
    """What is to be reserved beside what the channel before has, as the kernel takes it."""
    if wanted.policy != DEADLINE or not had:
        return wanted
    return wanted._replace(runtime_ns=max(LEAST_RUNTIME_NS, wanted.runtime_ns - round(had * wanted.period_ns)))


def why(wanted: Schedule, error: OSError) -> str:
    if error.errno == errno.EPERM:
        return f"the kernel does not let this process set {wanted.policy}"
    if error.errno == errno.EBUSY:
        return f"{wanted.share:.0%} of a core does not fit beside what other deadline threads have"
    return f"the kernel refuses it: {error.strerror}"


_FIX = (
    "run the daemon as root, with CAP_SYS_NICE, or with a limit on real-time priorities (LimitRTPRIO=, ulimit -r); "
    "in a control group of version 1 cpu.rt_runtime_us must not be 0"
)


def _values(wanted: Schedule) -> tuple[int, int, int, int, int]:
    return (_NUMBERS[wanted.policy], wanted.priority, wanted.runtime_ns, wanted.deadline_ns, wanted.period_ns)

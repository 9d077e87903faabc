"""This node: the directory of the daemon's socket, and the daemon if it runs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.parts.checks.finding import Finding, limited, missing, ok
from ringcast.cli.parts.units import show_bytes, show_ns
from ringcast.model import priority

if TYPE_CHECKING:
    from ringcast.control.status import ChannelStatus


def look(socket_path: str | None) -> list[Finding]:
    from ringcast.control.socket_path import default_socket_path

    path = os.path.abspath(socket_path) if socket_path else default_socket_path()
    return [_directory(Path(path)), _daemon(path), *_priorities(path)]


def _directory(path: Path) -> Finding:
    directory = path.parent
    existing = next(place for place in (directory, *directory.parents) if place.exists())
    if not _writable(existing):
        remedy = f"This user may not write to {existing}; choose another place with --socket or RINGCAST_SOCKET."
        return missing("socket directory", str(directory), remedy, needed=True)
    if existing != directory:
        return ok("socket directory", f"{directory} (made when needed)", needed=True)
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o022 and not mode & stat.S_ISVTX:
        remedy = f"Others may put a socket of their own in its place; 'chmod go-w {directory}', or choose another."
        return limited("socket directory", f"{directory} (mode {mode:o})", remedy)
    return ok("socket directory", f"{directory} (mode {mode:o})", needed=True)


def _writable(directory: Path) -> bool:
    """By making a file without a name there, which leaves nothing behind; permissions alone are not the whole truth."""
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as exc:
        return exc.errno == errno.EOPNOTSUPP and os.access(directory, os.W_OK | os.X_OK)
    return True


def _daemon(path: str) -> Finding:
    import ringcast

    if not os.path.exists(path):
        return ok("daemon", "not running; the first program that needs one starts it")
    try:
        with ringcast.connect(path, start=False, program="ringcast doctor") as session:
            status = session.status()
    except ringcast.RingcastError as exc:
        remedy = f"The next program that connects tries to start one ({exc})."
        return limited("daemon", f"does not answer at {path}", remedy)
    ours = metadata.version("ringcast")
    value = (
        f"process {status.pid}, version {status.version}, up {show_ns(status.uptime_s * 1e9)}, "
        f"{status.clients - 1} other client(s), {status.tags} tag(s), "
        f"rings {show_bytes(status.used_bytes)} of {show_bytes(status.budget_bytes)}"
    )
    if status.used_bytes > 0.9 * status.budget_bytes:
        remedy = "Its memory for rings is nearly used up; close publishers, or start it with a larger --budget."
        return limited("daemon", value, remedy)
    if ours != status.version:
        return limited("daemon", value, f"This program is version {ours}; start the daemon anew.")
    if status.mistakes:
        remedy = "It failed to do something by an error of its own; its log says what. Start it again."
        return limited("daemon", f"{value}, {status.mistakes} internal error(s)", remedy)
    if status.refusals:
        said = "; ".join(f"{address}: {reason}" for address, reason in sorted(status.refusals.items()))
        return limited("daemon", value, f"It does not get along with others. {said}.")
    return ok("daemon", value)


def _priorities(path: str) -> list[Finding]:
    """Whether the kernel has what channels of the daemon asked for; nothing to say while none asks."""
    import ringcast

    if not os.path.exists(path):
        return []
    try:
        with ringcast.connect(path, start=False, program="ringcast doctor") as session:
            asking = [row for row in session.channels(why=False) if row.priority]
    except ringcast.RingcastError:
        return []
    return priorities(asking)


_REMEDIES = {
    "schedule": "Schedules take root, CAP_SYS_NICE or LimitRTPRIO=, and room under limits.sched_share.",
    "bandwidth": "Bandwidth takes tc and ip (iproute2), CAP_NET_ADMIN, and room on the link.",
    "memory": "Locked memory takes LimitMEMLOCK=.",
}


def priorities(rows: list[ChannelStatus]) -> list[Finding]:
    """What the kernel has of what these channels ask for, and what their threads may hold up. Pure."""
    if not rows:
        return []
    having = [row for row in rows if row.in_force is not None]
    refused = sorted({row.in_force.refused for row in having if row.in_force and row.in_force.refused})
    value = f"{len(rows)} channel(s) with one"
    found = [ok("priorities", f"{value}, all in force")]
    if refused:
        kinds = {kind for row in having for kind in _lacking(row)}
        remedies = [text for kind, text in _REMEDIES.items() if kind in kinds]
        remedy = " ".join(["Messages flow without it; 'ringcast channels' shows which.", *remedies])
        found = [limited("priorities", f"{value}, not all in force: {'; '.join(refused)}", remedy)]
    warned = sorted({row.in_force.warning for row in having if row.in_force and row.in_force.warning})
    if warned:
        remedy = "Packets wait for threads that wait for packets; choose other schedules with 'ringcast set'."
        found.append(limited("network card's threads", "; ".join(warned), remedy))
    return found


def _lacking(row: ChannelStatus) -> Iterator[str]:
    """Which kinds of things the kernel did not give the channel."""
    has, asked = row.in_force, priority.read(row.priority)
    if has is None or not has.refused:
        return
    if asked.sched and has.sched != asked.sched:
        yield "schedule"
    if asked.bandwidth and row.direction == "out" and has.bandwidth != asked.bandwidth:
        yield "bandwidth"
    if asked.sched and not has.locked_bytes:
        yield "memory"

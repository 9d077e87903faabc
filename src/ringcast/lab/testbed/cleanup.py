"""What testbeds leave on the machine, and removing it, also after their owner was killed.

Every testbed has a run id. Its namespaces are called ringcast-<run id>-<node>, and /run/ringcast-lab/<run id>.json
records who owns it; beside it, the directory <run id> holds what its nodes put into files (sockets). Everything else
(veth, bridges, routes, queues, packet filters) lives in the namespaces and goes with them.

Invariant: the record is written before the first namespace and removed after the last, so that a testbed whose owner
died is always found, and nothing without our name and a run id is ever touched. Owners are told apart by process id,
start time and boot, because process ids are used again.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ringcast.errors import RingcastError
from ringcast.lab.testbed.topology import Topology

STATE = Path("/run/ringcast-lab")
NAMESPACES = Path("/run/netns")

_RUN = re.compile(r"[0-9a-f]{8}")
_OURS = re.compile(rf"ringcast-({_RUN.pattern})-.+")
SEARCH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "iptables": "iptables", "ip6tables": "iptables"}
_GRACE_S = 1.0
_KILLED_S = 5.0


class LabError(RingcastError):
    """The kernel or a tool refused what the testbed asked for."""


class LabUnavailable(LabError):
    """This machine, or this user, cannot have a testbed."""


class Record(msgspec.Struct, frozen=True):
    """Who owns a testbed. A `kept` one was made to outlive its process, and ends by `ringcast lab net down`."""

    run: str
    pid: int
    started: int
    boot: str
    kept: bool
    topology: Topology

    @classmethod
    def mine(cls, run: str, topology: Topology, kept: bool) -> Record:
        pid = os.getpid()
        return cls(run, pid, _started(pid), _boot(), kept, topology)

    @property
    def owner_lives(self) -> bool:
        return self.boot == _boot() and _started(self.pid) == self.started

    @property
    def abandoned(self) -> bool:
        """Nobody will remove it unless we do."""
        return self.boot != _boot() or not (self.kept or self.owner_lives)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM take effect when the block has ended, and so does the alarm that repeats one of them.

    Interrupted in the middle of starting a process, we would have no handle by which to stop it, and it would go on
    building what we then remove. Threads other than the main one are never interrupted.
    """
    waiting: list[int] = []
    handlers = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                handler = signal.getsignal(number)
                if callable(handler):
                    handlers[number] = handler
                    signal.signal(number, lambda number, _: waiting.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for missed in dict.fromkeys(waiting):
            signal.raise_signal(missed)


def tool(name: str) -> str:
    """The path of ip, tc or iptables. Raises LabUnavailable."""
    path = shutil.which(name, path=SEARCH)
    if path is None:
        package = _PACKAGES.get(name, name)
        raise LabUnavailable(f"the testbed needs {name!r}: install {package} (Debian: apt-get install {package})")
    return path


def namespace(run: str, node: str) -> str:
    return f"ringcast-{run}-{node}"


def write(record: Record) -> None:
    """Raises LabError."""
    draft = STATE / f".{record.run}"
    try:
        STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
        (STATE / record.run).mkdir(mode=0o700)
        draft.write_bytes(msgspec.json.encode(record))
        draft.rename(STATE / f"{record.run}.json")
    except OSError as exc:
        raise LabError(f"cannot record the testbed in {STATE}: {exc}") from exc


def records() -> list[Record]:
    """All testbeds of this machine, oldest first. A record that cannot be read is left out, and what it owns stays."""
    found = []
    for path in STATE.glob("*.json"):
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            found.append((path.stat().st_mtime_ns, msgspec.json.decode(path.read_bytes(), type=Record)))
    return [record for _, record in sorted(found, key=lambda item: item[0])]


def sweep(*, kept: bool = False) -> list[str]:
    """Remove the testbeds of dead owners, with `kept` also those that were to stay; returns their run ids.

    Raises LabError.
    """
    # Namespaces before records: one that is seen now has a record by then, or nobody to remove it.
    named = {found[1] for name in _namespaces() if (found := _OURS.fullmatch(name))}
    recorded = {path.stem for path in STATE.glob("*.json")}
    removed = sorted(named - recorded)
    removed += [record.run for record in records() if record.abandoned or (kept and not record.owner_lives)]
    for run in removed:
        remove(run)
    return removed


def remove(run: str) -> None:
    """End what runs in the namespaces of `run` and delete them. Does nothing for what is gone. Raises LabError."""
    if not _RUN.fullmatch(run):
        raise LabError(f"{run!r} is not a run id; 'ringcast lab net list' shows them")
    with undisturbed(), contextlib.ExitStack() as stack:
        names = [name for name in _namespaces() if name.startswith(namespace(run, ""))]
        networks = _hold(names, stack)
        _end_processes(networks)
        if names:
            lines = "".join(f"netns delete {name}\n" for name in names)
            # With -force, one that somebody else has just deleted does not keep the others.
            subprocess.run(
                [tool("ip"), "-force", "-batch", "-"], input=lines, text=True, capture_output=True, check=False
            )
            if left := [name for name in names if (NAMESPACES / name).exists()]:
                raise LabError(f"could not delete the namespaces {', '.join(left)}; try 'ip netns delete NAME'")
        # Those that came in before the name was gone. Nobody can any more.
        _end_processes(networks)
        shutil.rmtree(STATE / run, ignore_errors=True)
        (STATE / f"{run}.json").unlink(missing_ok=True)


def _namespaces() -> list[str]:
    try:
        return sorted(entry.name for entry in NAMESPACES.iterdir())
    except FileNotFoundError:
        return []


def _hold(names: list[str], stack: contextlib.ExitStack) -> set[tuple[int, int]]:
    """The identities of these namespaces, which stay theirs while `stack` holds them open: the kernel uses them again.

    Ours is left out: a caller inside a node does not end itself and its shell.
    """
    networks = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            held = os.open(NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, held)
            networks.add(_identity(held))
    return networks - {_identity("/proc/self/ns/net")}


def _end_processes(networks: set[tuple[int, int]]) -> None:
    for number, wait_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILLED_S)):
        deadline = time.monotonic() + wait_s
        # Again, because a process may have forked while we looked.
        while time.monotonic() < deadline:
            with contextlib.ExitStack() as stack:
                handles = list(_processes_in(networks, stack))
                if not handles:
                    return
                for handle in handles:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(handle, number)
                _wait(handles, deadline)


def _processes_in(networks: set[tuple[int, int]], stack: contextlib.ExitStack) -> Iterator[int]:
    """A pidfd for each process whose network is one of these; `stack` closes them."""
    for entry in os.listdir("/proc") if networks else ():
        if entry.isdigit():
            # It may die at any point. The network is read after the pidfd, or the number could be another's by then.
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(int(entry))
                stack.callback(os.close, handle)
                if _identity(f"/proc/{entry}/ns/net") in networks:
                    yield handle


def _identity(file: str | int) -> tuple[int, int]:
    found = os.stat(file)
    return found.st_dev, found.st_ino


def _wait(handles: list[int], deadline: float) -> None:
    """Until all these processes have ended, or the deadline."""
    left = set(handles)
    poller = select.poll()
    for handle in handles:
        poller.register(handle, select.POLLIN)
    while left and (wait_s := deadline - time.monotonic()) > 0:
        for handle, _ in poller.poll(wait_s * 1000):
            poller.unregister(handle)
            left.discard(handle)


def _started(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 when there is none, or only its exit code."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

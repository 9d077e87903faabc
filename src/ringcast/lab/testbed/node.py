"""A machine of a testbed: commands, processes and sockets in its network namespace."""

from __future__ import annotations

import ctypes
import os
import shlex
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.cleanup import LabError, tool
from ringcast.lab.testbed.topology import Family, Kind

if TYPE_CHECKING:
    from ringcast.lab.testbed.network import Testbed

_CLONE_NEWNET = 0x40000000


class CommandFailed(LabError):
    """A command in a node ended with another code than 0."""

    def __init__(self, node: str, args: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        self.node, self.command, self.returncode, self.stdout, self.stderr = node, args, returncode, stdout, stderr
        said = (stderr or stdout or "").strip() or "it said nothing"
        super().__init__(f"'{shlex.join(args)}' on node {node!r} ended with {returncode}: {said}")


class Node:
    """A machine of a testbed. Commands on it see its network only, and files and processes of the whole machine."""

    def __init__(self, bed: Testbed, name: str) -> None:
        self._bed = bed
        self.name = name
        self.kind: Kind = bed.plan.kinds[name]
        self.namespace = cleanup.namespace(bed.run_id, name)
        # Without a socket of its own, a daemon on one node would find the daemon of another.
        self.environment = {
            "RINGCAST_SOCKET": str(cleanup.STATE / bed.run_id / f"{name}.sock"),
            "RINGCAST_NODE": name,
        }

    @property
    def command(self) -> list[str]:
        """What to put before a command so that it runs here; it becomes the command, with the same process id."""
        return [tool("ip"), "netns", "exec", self.namespace]

    def address(self, family: Family = 4, toward: str | None = None) -> str:
        """The address others use for it, or that of its wire to a neighbour. Raises TopologyError."""
        return str(self._bed.plan.address(self.name, family, toward).ip)

    def run(self, args: Sequence[str], *, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """`subprocess.run` on this node, output captured as text. Raises CommandFailed, subprocess.TimeoutExpired."""
        done = subprocess.run([*self.command, *args], check=False, **self._options(options))
        if check and done.returncode:
            raise CommandFailed(self.name, args, done.returncode, done.stdout, done.stderr)
        return done

    def spawn(self, args: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """`subprocess.Popen` on this node, output piped as text, in a process group that Ctrl-C does not reach."""
        process = subprocess.Popen([*self.command, *args], **{"process_group": 0, **self._options(options)})
        self._bed.processes.append(process)
        return process

    def open_socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_DGRAM) -> socket.socket:
        """A socket of the calling process that lives in this node's network. Raises OSError."""

        def make() -> socket.socket:
            with open(cleanup.NAMESPACES / self.namespace) as there:
                if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"cannot enter {self.namespace}")
            return socket.socket(family, kind)

        # A namespace belongs to a thread, and this one ends with the call.
        with ThreadPoolExecutor(max_workers=1) as thread:
            opened = thread.submit(make).result()
        self._bed.sockets.append(opened)
        return opened

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        environment = {**(options.pop("env", None) or os.environ), **self.environment}
        return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options, "env": environment}

"""Daemons forked from a process that has imported what a daemon imports, a third of a second of computing each time.

Tests start a great many daemons. What they run is `ringcast daemon`, as always; only the imports are done once.
Tests of how a daemon starts and ends, and of daemons in a lab network, start the command itself.

Usage: python tests/forked_daemons.py DESCRIPTOR     the process that forks; requests come on that socket
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

PACKAGES = ("ringcast.daemon", "ringcast.transport", "ringcast.codec")


class ForkedProcess:
    """What tests use of a `subprocess.Popen`."""

    def __init__(self, pid: int, template: Template) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._template = template
        self._end = os.pidfd_open(pid)

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"daemon {self.pid}", timeout or 0)
            self.returncode = self._template.ask({"ended": self.pid})
            os.close(self._end)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Template:
    """The process that forks, seen from the tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=dict(environment)
        )
        theirs.close()
        atexit.register(self.close)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> ForkedProcess:
        request = {"arguments": arguments, "environment": dict(environment), "folder": os.getcwd()}
        return ForkedProcess(self.ask(request, [1, 2]), self)

    def ask(self, request: object, fds: Sequence[int] = ()) -> int:
        with self._one_at_a_time:
            socket.send_fds(self._socket, [json.dumps(request).encode()], fds)
            return int(self._socket.recv(64))

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


_templates: dict[frozenset[tuple[str, str]], Template | None] = {}


def template_for(environment: Mapping[str, str]) -> Template | None:
    """One for each set of settings that a daemon may look at while it is imported. None where they are new: most are
    of one test only."""
    settings = frozenset(
        (name, value) for name, value in environment.items() if name.startswith(("RINGCAST_", "PYTHON"))
    )
    if settings not in _templates:
        _templates[settings] = None
    elif _templates[settings] is None:
        _templates[settings] = Template(environment)
    return _templates[settings]


def serve(requests: socket.socket) -> list[str] | None:
    """Returns None when nobody asks any more, and in each new process the arguments of `ringcast`."""
    while True:
        body, fds, _, _ = socket.recv_fds(requests, 1 << 20, 2)
        if not body:
            return None
        request = json.loads(body)
        if "ended" in request:
            _, status = os.waitpid(request["ended"], 0)
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())
        elif pid := os.fork():
            requests.send(str(pid).encode())
            for fd in fds:
                os.close(fd)
        else:
            requests.close()
            for number, fd in enumerate(fds, start=1):
                os.dup2(fd, number)
                os.close(fd)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            return list(request["arguments"])


def main(descriptor: int) -> int:
    from ringcast.cli import main as ringcast

    importlib.import_module("ringcast.cli.run.daemon")
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # or the first collection of each daemon would touch, and so copy, all of it
    arguments = serve(socket.socket(fileno=descriptor))
    if arguments is None:
        return 0
    sys.argv = ["ringcast", *arguments]
    return ringcast(arguments)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

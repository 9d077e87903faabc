"""Two daemons on 127.0.0.1, with identities or without, and programs at both."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import ringcast
from ringcast.errors import RingcastError
from ringcast.lab.testbed.cleanup import LabError
from ringcast.security.authority import Authority

START_S = 30.0


class Mesh(NamedTuple):
    """The control sockets of nodes a and b."""

    a: str
    b: str


@contextmanager
def mesh(folder: Path, *, secured: bool) -> Iterator[Mesh]:
    """Its files lie in `folder`. Raises LabError when it does not come up."""
    folder.mkdir()
    options: dict[str, list[str]] = {"a": ["--identity", "none"], "b": ["--identity", "none"]}
    if secured:
        authority = Authority.init(folder / "a", "lab", "a")
        authority.equip(folder / "b", "b")
        for name in ("authority.pem", "revoked.pem"):
            (folder / "b" / name).write_bytes((folder / "a" / name).read_bytes())
        options = {name: ["--identity", str(folder / name)] for name in "ab"}
    where = dict(zip("ab", _free(2), strict=True))
    sockets = Mesh(str(folder / "a.sock"), str(folder / "b.sock"))
    with ExitStack() as stack:
        for name, other, path in (("a", "b", sockets.a), ("b", "a", sockets.b)):
            command = [sys.executable, "-m", "ringcast", "daemon", "--name", name, "--socket", path, "--no-scout"]
            command += ["--listen", where[name], "--peer", where[other], *options[name]]
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            daemon = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
            stack.callback(daemon.terminate)
        _wait(sockets, folder)
        yield sockets


def _wait(sockets: Mesh, folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with ringcast.connect(socket=sockets.a, start=False) as session:
                if sum(node.state == "here" for node in session.nodes()) == 2:
                    return
        except RingcastError:
            pass
        time.sleep(0.05)
    raise LabError(f"two daemons did not find each other within {START_S:.0f} s:\n{(folder / 'a.log').read_text()}")


def _free(count: int) -> list[str]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return found

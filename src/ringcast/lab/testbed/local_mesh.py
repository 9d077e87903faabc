"""Several daemons on this machine, joined to each other on 127.0.0.1, for `ringcast up` and `ringcast demo`.

Invariant: whatever ends the `with` block, no daemon outlives it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ringcast.errors import BrokenError, DaemonUnavailable

JOIN_S = 30.0
END_S = 5.0
_POLL_S = 0.02


class LocalNode(NamedTuple):
    name: str
    address: str
    socket: str
    pid: int


@contextmanager
def local_mesh(
    names: Sequence[str], place: Path, say: Callable[[str], None] = lambda text: None
) -> Iterator[list[LocalNode]]:
    """Daemons of these names, their sockets in `place`, once all of them know all the others.

    Raises BrokenError when one ends at once or they do not find each other.
    """
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        nodes = _start(names, place, daemons)
        deadline = time.monotonic() + JOIN_S
        for node, daemon in zip(nodes, daemons, strict=True):
            say(f"waiting for {node.name}")
            _await(node, daemon, len(nodes), deadline)
        yield nodes
    finally:
        _end(daemons)


def _start(names: Sequence[str], place: Path, daemons: list[subprocess.Popen[bytes]]) -> list[LocalNode]:
    nodes = []
    addresses = _free_addresses(len(names))
    for number, (name, address) in enumerate(zip(names, addresses, strict=True)):
        path = place / f"{number}.sock"
        peers = [word for peer in addresses[:number] for word in ("--peer", peer)]
        command = [sys.executable, "-m", "ringcast", "daemon", "--no-config", "--socket", str(path)]
        command += ["--name", name]
        # A group of its own: Ctrl-C is for us, and we end them in order.
        daemons.append(
            subprocess.Popen(
                [*command, "--listen", address, "--no-scout", *peers], stdin=subprocess.DEVNULL, start_new_session=True
            )
        )
        nodes.append(LocalNode(name, address, str(path), daemons[-1].pid))
    return nodes


def _await(node: LocalNode, daemon: subprocess.Popen[bytes], number: int, deadline: float) -> None:
    import ringcast

    while True:
        if daemon.poll() is not None:
            raise BrokenError(f"the daemon of {node.name} ended at once; what it said stands above")
        if time.monotonic() > deadline:
            raise BrokenError(f"{node.name} did not find the other nodes within {JOIN_S:.0f} s")
        try:
            with ringcast.connect(node.socket, start=False, program="ringcast up") as session:
                if sum(row.state == "here" for row in session.nodes()) == number:
                    return
        except DaemonUnavailable:
            pass
        time.sleep(_POLL_S)


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    for daemon in daemons:
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(END_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _free_addresses(number: int) -> list[str]:
    """Held together while they are chosen, so that no two are the same."""
    with ExitStack() as stack:
        found = []
        for _ in range(number):
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind(("127.0.0.1", 0))
            found.append(f"127.0.0.1:{probe.getsockname()[1]}")
        return found

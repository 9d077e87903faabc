"""A client that speaks the control protocol packet by packet, for what no well-behaved session would do, and meshes of
several daemons on 127.0.0.1."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from addresses import free_addresses
from processes import RINGCAST, Daemon, Daemons, Run, Start

import ringcast
from ringcast import _core
from ringcast.control import link
from ringcast.control.answers import Published, Status
from ringcast.control.requests import GetStatus, Hello, Publish
from ringcast.daemon.mesh.shell import CONTROL_PORT
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import Family
from ringcast.model.addresses import join
from ringcast.testing.waiting import PATIENCE_S, wait_until


class Wire:
    """One control connection. `ask` returns the answer; notices that came before it are kept in `notices`."""

    def __init__(self, path: str, *, greet: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.notices: list[Any] = []
        self.writers: list[_core.RingWriter] = []
        self._fanouts: list[socket.socket] = []
        self._ids = itertools.count(1)
        if greet:
            self.ask(Hello, program="wire")

    def receive(self) -> Any:
        """The next message of any kind, without its descriptors; None at the end of file."""
        try:
            received = link.receive_reply(self.socket)
        except ConnectionResetError:  # an end of file with something of ours unread
            return None
        if received is None:
            return None
        received.close()
        return received.message

    def ask(self, kind: Any, fds: list[int] | None = None, **fields: Any) -> Any:
        number = next(self._ids)
        link.send(self.socket, kind(id=number, **fields), fds or [])
        while True:
            message = self.receive()
            if message is None or getattr(message, "id", None) in (number, 0):
                return message
            self.notices.append(message)

    def notice(self) -> Any:
        """The oldest notice not looked at, waiting for one if there is none."""
        return self.notices.pop(0) if self.notices else self.receive()

    def status(self) -> Status:
        found = self.ask(GetStatus)
        assert isinstance(found, Status)
        return found

    def publish(self, tag: str, depth: int = 16, capacity_bytes: int = 4096) -> Published:
        writer = _core.RingWriter(depth=depth, capacity_bytes=capacity_bytes)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.writers.append(writer)
        self._fanouts.append(ours)
        with theirs:
            answer = self.ask(
                Publish, [writer.ring_fd, writer.bell_fd, theirs.fileno()],
                tag=tag, incarnation=writer.incarnation, depth=depth, capacity_bytes=capacity_bytes,
            )  # fmt: skip
        assert isinstance(answer, Published)
        return answer

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
        for sock in (self.socket, *self._fanouts):
            sock.close()


@pytest.fixture
def open_wire() -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(path: str, **how: Any) -> Wire:
        made.append(Wire(path, **how))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


@pytest.fixture
def wire(daemon: Any, open_wire: Callable[..., Wire]) -> Wire:
    return open_wire(daemon.socket_path)


class Node:
    """A daemon in a mesh, which can be killed and started again, and sessions with it."""

    def __init__(self, name: str, address: str, peers: list[str], make_daemon: Callable[..., Any], **how: Any) -> None:
        self.name = name
        self.options = ["--name", name, "--listen", address, "--no-scout"]
        self.options += [word for peer in peers for word in ("--peer", peer)]
        self.daemon = make_daemon(*self.options, **how)
        self.was_killed = False
        self.session = self.connect()

    def connect(self) -> ringcast.Session:
        return ringcast.connect(socket=self.daemon.socket_path, start=False)

    def kill(self) -> None:
        self.was_killed = True
        self.daemon.kill()

    def restart(self) -> None:
        self.daemon.start(*self.options)

    def here(self) -> set[str]:
        return {node.name for node in self.session.nodes() if node.state == "here"} if self.session.connected else set()

    def incoming(self, **wanted: Any) -> list[Any]:
        """The channels that come in and are as told."""
        if not self.session.connected:
            return []
        rows = [row for row in self.session.channels() if row.direction == "in"]
        return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]

    def knows(self, tag: str, publishers: int = 1) -> bool:
        """Whether the node has heard of so many publishers."""
        return any(row.publishers == publishers for row in self.session.tags(tag))


class Meshes:
    """Of nodes a, b, c..., each joined to all before it."""

    def __init__(self, make_daemon: Callable[..., Any], eventually: Callable[..., None]) -> None:
        self._make_daemon = make_daemon
        self._eventually = eventually
        self._nodes: list[Node] = []

    def __call__(self, number: int, **how: dict[str, Any]) -> list[Node]:
        """With `how`, by name, some daemons get what `make_daemon` takes."""
        addresses = dict(zip("abcdefgh", free_addresses(number), strict=False))
        return self._join(addresses, how)

    def in_lab(self, bed: Testbed, family: Family = 4) -> list[Node]:
        """A daemon on every host of a testbed."""
        hosts = [node for node in bed.nodes if node.kind == "host"]
        addresses = {node.name: join(node.address(family), CONTROL_PORT) for node in hosts}
        return self._join(addresses, {node.name: {"prefix": node.command} for node in hosts})

    def _join(self, addresses: dict[str, str], how: dict[str, dict[str, Any]]) -> list[Node]:
        self._nodes = [
            Node(
                name, address, [other for other in addresses.values() if other != address], self._make_daemon,
                **how.get(name, {}),
            )
            for name, address in addresses.items()
        ]  # fmt: skip
        names = {node.name for node in self._nodes}
        self._eventually(lambda: all(node.here() == names for node in self._nodes))
        return self._nodes

    def close(self) -> None:
        for node in self._nodes:
            node.session.close()


@pytest.fixture
def make_mesh(make_daemon: Callable[..., Any], eventually: Callable[..., None]) -> Iterator[Meshes]:
    meshes = Meshes(make_daemon, eventually)
    yield meshes
    meshes.close()


def empty(daemons: list[Daemon]) -> None:
    """Destroy all tags; returns when no daemon has one left, nor a channel."""
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(ringcast.connect(socket=daemon.socket_path, start=False)) for daemon in daemons]
        for name in {row.name for session in sessions for row in session.tags()}:
            with contextlib.suppress(ringcast.UnknownTag):
                sessions[0].destroy_tag(name, force=True)
        wait_until(lambda: not any(session.tags() or session.channels() for session in sessions))


@pytest.fixture
def shared_daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    """A daemon that the tests of a module use one after the other. Each finds no tags; who kills it starts it again.

    A module whose tests do not mind what the daemon did before overrides `daemon` by it.
    """
    yield module_daemon
    empty([module_daemon])


class SharedMeshes:
    """Meshes that tests use one after the other. Each test finds no tags, no channels, and sessions of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[int, tuple[list[Node], Daemons]] = {}
        self._used: set[int] = set()

    def __call__(self, number: int) -> list[Node]:
        self._used.add(number)
        if number in self._kept:
            nodes, _ = self._kept[number]
            for node in nodes:
                node.session = node.connect()
            return nodes
        folder = self._folder / str(number)
        folder.mkdir(exist_ok=True)
        daemons = Daemons(folder)
        nodes = Meshes(daemons, wait_until)(number)
        self._kept[number] = nodes, daemons
        return nodes

    def tidy(self) -> None:
        """After a test. A mesh in which a daemon was killed is not used again."""
        for number in self._used:
            nodes, daemons = self._kept[number]
            for node in nodes:
                node.session.close()
            if any(node.was_killed for node in nodes):
                del self._kept[number]
                daemons.stop()
            else:
                empty([node.daemon for node in nodes])
        self._used.clear()

    def close(self) -> None:
        for _, daemons in self._kept.values():
            daemons.stop()


@pytest.fixture(scope="module")
def meshes_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedMeshes]:
    shared = SharedMeshes(tmp_path_factory.mktemp("mesh"))
    yield shared
    shared.close()


@pytest.fixture
def shared_mesh(meshes_of_the_module: SharedMeshes) -> Iterator[SharedMeshes]:
    """As `make_mesh`, where it does not matter what the daemons did before: most of a small test is their start."""
    yield meshes_of_the_module
    meshes_of_the_module.tidy()


@pytest.fixture
def take() -> Callable[..., list[Any]]:
    """Receive until the message with the given data is there; all of them, that one too."""

    def take(sub: Any, last: Any) -> list[Any]:
        found = []
        deadline = time.monotonic() + PATIENCE_S
        while not found or found[-1].data != last:
            found.append(sub.recv(timeout=max(0.0, deadline - time.monotonic())))
        return found

    return take


@pytest.fixture
def flow() -> Iterator[Any]:
    """Sends on a publisher from a thread of its own, until the end."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def start(pub: Any, pause_s: float = 0.0005, data: bytes = b"x") -> None:
        def send() -> None:
            while not stop.wait(pause_s):
                pub.send(data)

        threads.append(threading.Thread(target=send))
        threads[-1].start()

    def halt() -> None:
        stop.set()
        for thread in threads:
            thread.join()

    def end(pub: Any, every: int) -> None:
        """Send a last message, which whoever gets one in `every` gets too."""
        halt()
        while (pub.send(b"x") + 1) % every:
            pass
        assert pub.send(b"end") % every == 0

    start.end = end  # type: ignore[attr-defined]
    yield start
    halt()


@pytest.fixture
def start(daemon: Any) -> Iterator[Start]:
    """Start `ringcast VERB ...` beside the daemon."""
    made: list[subprocess.Popen[str]] = []
    environment = {**os.environ, "RINGCAST_SOCKET": daemon.socket_path}

    def begin(*arguments: str) -> subprocess.Popen[str]:
        made.append(
            subprocess.Popen(
                [*RINGCAST, *arguments], env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip
        return made[-1]

    yield begin
    for process in made:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def run(start: Start) -> Run:
    """Run it to its end, which must have that exit code; returns what it printed."""

    def to_its_end(*arguments: str, given: str = "", code: int = 0) -> str:
        process = start(*arguments)
        out, errors = process.communicate(given, timeout=PATIENCE_S)
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        return out

    return to_its_end

"""Processes that hold things while others are measured: tags, publishers, subscribers, clients. One daemon for all.

`python -m growth.holders SOCKET` reads lines of JSON, `{"hold": KIND, "first": i, "count": n, "name": ...}`, does it
and answers with how long it took, in seconds.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import ringcast

BENCH = Path(__file__).parents[1]
SMALL = {"depth": 16, "capacity_bytes": 4096}
START_S = 60.0
END_S = 30.0
LIMITS = "[limits]\nuser_tags = 20000\nuser_rings = 40000\n"


class Holder:
    """One such process, as its parent sees it."""

    def __init__(self, socket_path: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "growth.holders", socket_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd=BENCH, process_group=0,
        )  # fmt: skip

    def hold(self, kind: str, count: int, first: int = 0, **more: Any) -> float:
        """How long it took. Raises RuntimeError when the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"hold": kind, "count": count, "first": first, **more}) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"the process that holds {kind} ended with {self.process.wait()}")
        return float(said)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Holders:
    """As many processes as it takes, since one has room for so many descriptors and mappings only."""

    def __init__(self, socket_path: str, most_each: int) -> None:
        self._socket, self._most = socket_path, most_each
        self.held = 0
        self.all: list[Holder] = []

    def grow_to(self, kind: str, count: int, **more: Any) -> float:
        """Hold `count` altogether; how long that took."""
        took = 0.0
        while self.held < count:
            if self.held % self._most == 0:
                self.all.append(Holder(self._socket))
            some = min(count - self.held, self._most - self.held % self._most)
            took += self.all[-1].hold(kind, some, self.held, **more)
            self.held += some
        return took

    @property
    def pids(self) -> list[int]:
        return [holder.process.pid for holder in self.all]

    def family(self) -> list[int]:
        """These processes and those that they started."""
        started = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in self.pids]
        return self.pids + [int(pid) for children in started for pid in children]

    def __enter__(self) -> Holders:
        return self

    def __exit__(self, *exc: object) -> None:
        for holder in self.all:
            holder.close()


@contextmanager
def daemon(
    place: Path, name: str = "one", *options: str, before: Sequence[str] = (), settings: str = ""
) -> Iterator[tuple[str, int]]:
    """Its socket and its process. One user may have as many things of it as are measured here. `before` are words of a
    command that runs it elsewhere, in a network namespace say; `settings` go to its file."""
    path, file = place / f"{name}.sock", place / f"{name}.toml"
    file.write_text(LIMITS + settings)
    command = [sys.executable, "-m", "ringcast", "daemon", "--config", str(file), "--name", name]
    command += ["--socket", str(path)]
    # A group of its own: Ctrl-C is for whoever measures, who then ends it in order.
    process = subprocess.Popen([*before, *command, *options], stdin=subprocess.DEVNULL, process_group=0)
    try:
        deadline = time.monotonic() + START_S
        while not _answers(path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"daemon {name} did not start")
            time.sleep(0.01)
        yield str(path), process.pid
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(path: Path) -> bool:
    """Whether somebody listens there: the file is there a moment before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        return probe.connect_ex(str(path)) == 0


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody holds now."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


class _Kept:
    def __init__(self, socket_path: str) -> None:
        self._socket = socket_path
        self._all: list[Any] = []
        self._lifeline = os.pipe()

    @functools.cached_property
    def _session(self) -> ringcast.Session:
        return ringcast.connect(self._socket, start=False)

    def both(self, first: int, count: int, name: str) -> None:
        """Tags with a publisher and a subscriber each."""
        for i in range(first, first + count):
            tag = self._session.tag(f"{name}/{i}", **SMALL)
            self._all += [tag.publisher(), tag.subscribe()]

    def tags(self, first: int, count: int, name: str) -> None:
        self._all += [self._session.tag(f"{name}/{i}", **SMALL) for i in range(first, first + count)]

    def publishers(self, first: int, count: int, name: str) -> None:
        self._all += [self._session.tag(f"{name}/{i}", **SMALL).publisher() for i in range(first, first + count)]

    def sleepers(self, first: int, count: int, name: str) -> None:
        """Subscribers of one tag, each with a thread that sleeps in `recv`."""
        self._all += [self._session.subscribe(name).on_message(lambda msg: None) for _ in range(count)]

    def processes(self, first: int, count: int, name: str) -> float:
        """Processes with a session each; how long they took to connect, one after the other. This one has no session
        and no thread then, so it may fork."""
        return sum(self._fork() for _ in range(count))

    def _fork(self) -> float:
        told, tell = os.pipe()
        if os.fork() == 0:
            os.close(self._lifeline[1])
            begin = time.perf_counter()
            with ringcast.connect(self._socket, start=False):
                os.write(tell, struct.pack("d", time.perf_counter() - begin))
                os.close(tell)
                os.read(self._lifeline[0], 1)  # until its parent ends
            os._exit(0)
        os.close(tell)
        with os.fdopen(told, "rb") as answer:
            (seconds,) = struct.unpack("d", answer.read(8))
        return float(seconds)


def serve(socket_path: str, asked: IO[str], answer: Callable[[str], object]) -> None:
    kept = _Kept(socket_path)
    for line in asked:
        request = json.loads(line)
        begin = time.perf_counter()
        took = getattr(kept, request["hold"])(request["first"], request["count"], request.get("name", "held"))
        answer(f"{time.perf_counter() - begin if took is None else took}\n")


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin, lambda text: (sys.stdout.write(text), sys.stdout.flush()))
    os._exit(0)  # whoever asked has gone

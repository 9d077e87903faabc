"""One measurement's set of processes: a private place, the peer's server where it needs one, and the ends.

Invariant: when a stage is left, by whatever way, its processes are gone and what a killed one left in shared memory
too.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cast import Contender
from harness.process import PeerFailed, Worker

OPEN_S = 15.0
CLOSE_S = 3.0
SHM = Path("/dev/shm")
_numbers = itertools.count()


def free_port() -> int:
    """A TCP port on loopback that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Stage:
    """The processes of one measurement of one contender."""

    contender: Contender
    place: dict[str, Any]
    folder: Path
    stack: contextlib.ExitStack
    workers: list[Worker] = field(default_factory=list)

    def _start(self) -> Worker:
        worker = self.stack.enter_context(Worker(self.contender.python, self.contender.adapter, self.folder))
        self.workers.append(worker)
        return worker

    def serve(self) -> Worker:
        """Start the server.

        Raises:
            PeerFailed: it did not come up.
        """
        worker = self._start()
        worker.pids.append(worker.ask("serve", OPEN_S, peer=self.contender.name, place=self.place))
        return worker

    def cast(self, *ends: dict[str, Any]) -> list[Worker]:
        """Open one worker per description `{"end": ..., options}`, then let them all find each other.

        Raises:
            PeerFailed: one did not come up, or they did not find each other.
            PeerLacks: the peer does not offer this.
        """
        workers = []
        # Importing a library takes long: start all, then open in order, because some peers need the first to be there.
        for _ in ends:
            workers.append(self._start())
        for worker, end in zip(workers, ends, strict=True):
            worker.ask("open", OPEN_S, peer=self.contender.name, place=self.place, **end)
        for worker in workers:
            worker.post("match", others=len(ends) - 1, timeout_s=OPEN_S - 1)
        for worker in workers:
            worker.reply(OPEN_S)
        return workers

    def close(self) -> None:
        """Let every end release what it holds, the server last. What was measured stays measured if one cannot."""
        with contextlib.suppress(PeerFailed):
            for worker in reversed(self.workers):
                worker.post("close")
            for worker in reversed(self.workers):
                worker.reply(CLOSE_S)


def _litter(patterns: tuple[str, ...]) -> set[Path]:
    return {path for pattern in patterns for path in SHM.glob(pattern)}


@contextlib.contextmanager
def stage(contender: Contender, folder: Path) -> Iterator[Stage]:
    """Set a stage for a contender in a new folder below `folder`.

    Raises:
        PeerFailed: the server did not come up.
    """
    number = next(_numbers)
    inner = folder / f"s{number}"
    inner.mkdir()
    place = {"folder": str(inner), "port": free_port(), "token": f"{folder.name.rpartition('-')[2]}_{number}"}
    before = _litter(contender.leftovers)
    try:
        with contextlib.ExitStack() as stack:
            scene = Stage(contender, place, inner, stack)
            if contender.serves:
                scene.serve()
            try:
                yield scene
            except PeerFailed as exc:
                # One end mostly fails because the other did: say what that one said.
                others = [text for worker in scene.workers if (text := worker.last_words())]
                raise PeerFailed("; the other side: ".join([str(exc), *others])) from exc
            scene.close()
    finally:
        for path in _litter(contender.leftovers) - before:
            path.unlink(missing_ok=True)

"""One contender's set of processes: the server where it needs one, and the ends, in a place of their own.

Invariant: when a group is left by an error its processes are killed; left in order, they go back to the run's workers
with nothing open.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator
from typing import Any

from harness.contenders import Contender
from harness.process import PeerFailed, Worker
from harness.workers import Workers

OPEN_S = 12.0
CLOSE_S = 3.0
_numbers = itertools.count()


class Group:
    """The processes that measure one contender. `workers` are those taking part now, the server's first."""

    def __init__(self, contender: Contender, workers: Workers) -> None:
        self.contender = contender
        self.workers: list[Worker] = []
        self._workers = workers
        self._first = 1 if contender.serves else 0
        self._place = self._new_place()

    def serve(self) -> None:
        """Start the server.

        Raises:
            PeerFailed: it did not come up.
        """
        worker = self._hire()
        worker.pids.append(worker.ask("serve", OPEN_S, peer=self.contender.name, place=self._place))

    @property
    def server_pid(self) -> int | None:
        return self.workers[0].pids[1] if self.contender.serves else None

    def start(self, *ends: dict[str, Any]) -> list[Worker]:
        """Open one worker per description `{"end": ..., options}` and let them find each other; earlier ends close.

        Raises:
            PeerFailed: one did not come up, or they did not find each other.
            PeerLacks: the peer does not offer this.
        """
        for worker in self.workers[self._first :]:
            worker.ask("close", CLOSE_S)
        new = self._new_place()
        # Names are always new; where there is a server, its address stays.
        self._place = self._place | {"token": new["token"]} if self.contender.serves else new
        while len(self.workers) < self._first + len(ends):
            self._hire()
        workers = self.workers[self._first : self._first + len(ends)]
        self._open(workers, ends)
        return workers

    def close(self) -> None:
        """Let every end release what it holds, then the server, and let the workers go.

        Raises:
            PeerFailed: one could not.
        """
        server, ends = self.workers[: self._first], self.workers[self._first :]
        for group in (ends, server):
            for worker in group:
                worker.post("close")
            for worker in group:
                worker.reply(CLOSE_S)
        for worker in self.workers:
            self._workers.release(self.contender, worker)

    def abandon(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            worker.slay()

    def other_errors(self) -> list[str]:
        """What workers have complained about that nobody has read yet."""
        return [text for worker in self.workers if (text := worker.last_words())]

    def _open(self, workers: list[Worker], ends: tuple[dict[str, Any], ...]) -> None:
        # In order, because some peers need the first to be there.
        for worker, end in zip(workers, ends, strict=True):
            worker.ask("open", OPEN_S, peer=self.contender.name, place=self._place, **end)
        for worker in workers:
            worker.post("match", others=len(ends) - 1, timeout_s=OPEN_S - 1)
        for worker in workers:
            worker.reply(OPEN_S)

    def _hire(self) -> Worker:
        self.workers.append(self._workers.hire(self.contender))
        return self.workers[-1]

    def _new_place(self) -> dict[str, Any]:
        number = next(_numbers)
        folder = self._workers.folder / f"s{number}"
        folder.mkdir()
        # The folder's random name keeps runs beside each other apart where names are the machine's.
        token = f"{self._workers.folder.name.rpartition('-')[2]}_{number}"
        return {"folder": str(folder), "port": _free_port(), "token": token}


def _free_port() -> int:
    """A TCP port on loopback that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def grouped(contender: Contender, workers: Workers) -> Iterator[Group]:
    """A group of processes for a contender, its server running.

    Raises:
        PeerFailed: the server did not come up.
    """
    group = Group(contender, workers)
    try:
        if contender.serves:
            group.serve()
        yield group
    except PeerFailed as exc:
        # One end mostly fails because the other did: say what that one said.
        others = group.other_errors()
        group.abandon()
        raise PeerFailed("; the other side: ".join([str(exc), *others])) from exc
    except BaseException:
        group.abandon()
        raise
    else:
        try:
            group.close()
        except PeerFailed:
            group.abandon()  # what was measured stays measured

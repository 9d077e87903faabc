"""All workers of a run, and the end of them.

Invariant: when the `with` block is left, by whatever way, no process of it lives, and what its peers left in shared
memory is removed, unless somebody else has it mapped.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import machine
from harness.contenders import Contender
from harness.process import Worker

SHM = Path("/dev/shm")


class Workers:
    """Hires and releases workers.

    With `reuse`, a released worker takes part in the next group of its adapter: importing a library takes longer than a
    quick measurement. Without, every group has fresh processes.
    """

    def __init__(self, folder: Path, reuse: bool) -> None:
        self.folder = folder
        self._reuse = reuse
        self._workers: list[Worker] = []
        self._resting: dict[str, list[Worker]] = defaultdict(list)
        self._patterns: set[str] = set()
        self._found = set(SHM.glob("*"))

    def hire(self, contender: Contender) -> Worker:
        """A worker with nothing open."""
        self._patterns.update(contender.leftovers)
        if resting := self._resting[contender.adapter]:
            return resting.pop()
        worker = Worker(contender.python, contender.adapter, self.folder)
        self._workers.append(worker)
        return worker

    def release(self, contender: Contender, worker: Worker) -> None:
        """Take back a worker that has closed everything."""
        if self._reuse:
            del worker.pids[1:]
            worker.pin(*machine.cores())
            self._resting[contender.adapter].append(worker)
        else:
            worker.slay()

    def _sweep(self) -> None:
        left = {path for pattern in self._patterns for path in SHM.glob(pattern)} - self._found
        for path in left - mapped() if left else ():
            path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.slay()
        self._sweep()


def mapped() -> set[Path]:
    """Files in shared memory that a process we may look into has mapped."""
    files: set[Path] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            lines = maps.read_text(errors="replace").splitlines()
        except OSError:
            continue
        files.update(Path(line[line.index(f"{SHM}/") :]) for line in lines if f"{SHM}/" in line)
    return files

"""The manifests of one version of one table on disk.

    <table>/v1/manifests/000000000007.json      one commit, written elsewhere and linked into place
    <table>/v1/data/...                         Parquet files; those that no manifest names do not exist

A manifest appears under its number or not at all, and a number is given once: a link, unlike a rename, refuses to
replace what is there, so that of two writers one sees that it came second. Must not know Spark.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

import msgspec

from ringcast.errors import RingcastError
from ringcast.spark.lake.manifest import FULL_EVERY, Manifest, State, apply


class LakeError(RingcastError):
    """The lake cannot do this; `table` and `reason` say what and why."""

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"table {table}: {reason}")


class Log:
    """Commits of a table, oldest first. `path` is a version's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifests = path / "manifests"

    def state(self) -> State:
        """What the table holds now; an empty state when nothing was ever committed. Raises LakeError."""
        numbers = self._numbers()
        if not numbers:
            return State()
        last = numbers[-1]
        begin = last - last % FULL_EVERY
        state = self._read(begin).state
        if state is None:
            raise LakeError(str(self.path), f"manifest {begin} should hold the whole state and does not")
        for number in range(begin + 1, last + 1):
            state = apply(state, self._read(number))
        return state

    def history(self) -> list[Manifest]:
        """All commits."""
        return [self._read(number) for number in self._numbers()]

    def publish(self, manifest: Manifest) -> bool:
        """Make this commit the table's next one. False when another writer's has its number: read again and decide
        again."""
        self._manifests.mkdir(parents=True, exist_ok=True)
        draft = self._manifests / f".{uuid.uuid4().hex}"
        try:
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(manifest))
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, self._file(manifest.number))
        except FileExistsError:
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
        directory = os.open(self._manifests, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)  # the name, too, must survive a power cut
        finally:
            os.close(directory)
        return True

    def _numbers(self) -> list[int]:
        if not self._manifests.is_dir():
            return []
        return sorted(int(path.stem) for path in self._manifests.glob("[0-9]*.json"))

    def _file(self, number: int) -> Path:
        return self._manifests / f"{number:012d}.json"

    def _read(self, number: int) -> Manifest:
        path = self._file(number)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as exc:
            raise LakeError(str(path), f"this commit cannot be read ({exc}); restore it from a copy") from exc


def versions(table: Path) -> list[int]:
    """Versions of a table that hold at least one commit, oldest first."""
    found = (int(path.parent.parent.name[1:]) for path in table.glob("v[0-9]*/manifests/000000000000.json"))
    return sorted(found)

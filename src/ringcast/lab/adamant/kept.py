"""Simulated runs that are done, in a file, until all of them are in the lake: what was stopped goes on where it was.

A run is known by what was simulated, its seed included, and by the version of the code. A record that was cut off
when the process ended is not read, nor what follows it.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from ringcast.lab.adamant.results import Result
from ringcast.lab.simulation.packet_loss import Scenario
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.machine import code_version

FILE = "runs-so-far"
_LENGTH = struct.Struct("<I")
_SYNC = 50
"""Records that may be lost when the process is killed."""


class Record(msgspec.Struct, frozen=True, array_like=True):
    key: bytes
    result: Result


class Kept:
    """Of one folder. Without one, nothing is kept. Threads may share it."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None
        self._version = code_version()
        self._known: dict[bytes, Result] = {}
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._unwritten = 0
        self._ended = False
        self._whole = 0
        """Bytes of the file that can be read."""

    def __enter__(self) -> Self:
        """Raises LabError."""
        if self._path is not None:
            try:
                self._whole = self._read()
            except OSError as exc:
                raise LabError(f"cannot read {self._path}: {exc}; choose another place with --out") from exc
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def key(self, experiment: str, scenario: Scenario) -> bytes:
        said = msgspec.msgpack.encode((self._version, experiment, scenario))
        return hashlib.blake2b(said, digest_size=16).digest()

    def find(self, key: bytes) -> Result | None:
        return self._known.get(key)

    def add(self, key: bytes, result: Result) -> None:
        """Raises LabError."""
        if self._path is None:
            return
        with self._lock:
            if self._ended:  # a simulation that ran on while everything was stopped
                return
            if self._file is None:
                self._file = self._opened(self._path)
            data = msgspec.msgpack.encode(Record(key, result))
            self._file.write(_LENGTH.pack(len(data)) + data)
            self._unwritten += 1
            if self._unwritten >= _SYNC:
                self._file.flush()
                self._unwritten = 0

    def _opened(self, path: Path) -> BinaryIO:
        """When the first run is done: what is stopped before that leaves nothing behind."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("ab")
            file.truncate(self._whole)
        except OSError as exc:
            raise LabError(f"cannot write {path}: {exc}; choose another place with --out") from exc
        return file

    def _read(self) -> int:
        """How many bytes of it are whole."""
        assert self._path is not None
        data = self._path.read_bytes() if self._path.exists() else b""
        decoder, at = msgspec.msgpack.Decoder(Record), 0
        while at + _LENGTH.size <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            end = at + _LENGTH.size + length
            if end > len(data):
                break
            try:
                record = decoder.decode(memoryview(data)[at + _LENGTH.size : end])
            except msgspec.MsgspecError:
                break
            self._known[record.key] = record.result
            at = end
        return at


def forget(folder: Path) -> None:
    """All of it is in the lake, and the next time everything is run again."""
    (folder / FILE).unlink(missing_ok=True)

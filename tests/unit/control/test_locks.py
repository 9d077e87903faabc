"""A lock file that may be deleted while others wait for it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ringcast.control import locks
from ringcast.control.locks import FileLock


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def test_one_holder_at_a_time(path: str) -> None:
    held = FileLock.take_nowait(path)
    assert held is not None
    assert FileLock.take_nowait(path) is None
    assert FileLock.take(path, time.monotonic()) is None
    held.release()
    again = FileLock.take_nowait(path)
    assert again is not None
    again.release()
    again.release()


def test_who_waited_on_a_deleted_file_takes_the_new_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = FileLock.take_nowait(path)
    assert held is not None
    real = locks.fcntl.flock
    opened = []

    def flock(fd: int, how: int) -> None:
        opened.append(os.fstat(fd).st_ino)
        if len(opened) == 1:  # between our opening the file and our asking for the lock, its holder ends
            held.unlink()
            held.release()
        real(fd, how)

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    taken = FileLock.take_nowait(path)
    assert taken is not None
    assert len(opened) == 2
    assert os.stat(path).st_ino == opened[1]
    taken.release()


def test_only_ones_own_file_is_deleted(path: str) -> None:
    held = FileLock.take_nowait(path)
    assert held is not None
    os.rename(path, path + ".old")
    Path(path).touch()
    held.unlink()
    assert os.path.exists(path)
    held.release()
    held.unlink()


def test_text_is_replaced(path: str) -> None:
    with FileLock.take_nowait(path) or pytest.fail("held") as held:
        held.write("a longer text")
        held.write("short")
    assert Path(path).read_text() == "short"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock.take_nowait(str(tmp_path / "no" / "lock"))

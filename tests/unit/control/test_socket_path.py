"""Where the socket lives, and who may read its directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ringcast.control.socket_path import default_socket_path, prepare_directory
from ringcast.errors import DaemonUnavailable


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RINGCAST_SOCKET", "/x/y.sock")
    assert default_socket_path() == "/x/y.sock"
    monkeypatch.delenv("RINGCAST_SOCKET")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_socket_path() == str(tmp_path / "ringcast" / "daemon.sock")
    last_resort = f"/tmp/ringcast-{os.geteuid()}/daemon.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "not there"))
    assert default_socket_path() == last_resort
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_socket_path() == last_resort


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_a_runtime_directory_kept_from_another_user_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, whose: str
) -> None:
    monkeypatch.delenv("RINGCAST_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if whose == "another's":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert default_socket_path().startswith(str(tmp_path)) is (whose == "ours")


def test_the_default_directory_is_made_private_and_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RINGCAST_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    prepare_directory(default_socket_path())
    directory = tmp_path / "ringcast"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    with pytest.raises(DaemonUnavailable, match="mode 0700"):
        prepare_directory(default_socket_path())
    directory.rmdir()
    directory.symlink_to(tmp_path)
    with pytest.raises(DaemonUnavailable, match="must be a directory"):
        prepare_directory(default_socket_path())


def test_a_place_the_user_chose_is_the_users_business(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare_directory(str(tmp_path / "d.sock"))
    prepare_directory(str(tmp_path / "new" / "d.sock"))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnavailable, match="longer than 107 bytes"):
        prepare_directory(str(tmp_path / ("x" * 120)))

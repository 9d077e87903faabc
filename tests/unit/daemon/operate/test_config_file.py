"""Which file is read, and what a file that cannot be read says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcast.daemon.operate.config_file import ENVIRONMENT_VARIABLE, MAX_BYTES, find_file, load, settle
from ringcast.errors import BadConfiguration


def test_the_users_file_is_found_and_a_named_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "ringcast" / "ringcast.toml"
    own.parent.mkdir()
    own.write_text("")
    other = tmp_path / "other.toml"
    other.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    assert find_file(None) == str(own)
    assert find_file("") is None
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(other))
    assert find_file(None) == str(other)
    assert find_file(str(own)) == str(own)


def test_a_named_file_that_is_missing_says_who_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadConfiguration, match="--config names it"):
        find_file("/nowhere/a.toml")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/nowhere/b.toml")
    with pytest.raises(BadConfiguration, match="RINGCAST_CONFIG names it"):
        find_file(None)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"\xff\xfe", "not text in UTF-8"), (b"#" * (MAX_BYTES + 1), "larger than")]
)
def test_what_is_no_file_of_ours(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(content)
    with pytest.raises(BadConfiguration, match=reason):
        load(str(path))


def test_peers_need_an_address_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text('name = "a"\npeers = ["10.0.0.1:7417"]')
    with pytest.raises(ValueError, match=r"peers need listen.*f\.toml:2"):
        settle(str(path), {})

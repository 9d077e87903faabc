"""What `ringcast doctor` says of certificates: until when they are good, and what to do before they are not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ringcast.cli.parts.checks.security import judge_identity
from ringcast.security import certificates, folder
from ringcast.security.authority import Authority


@pytest.fixture
def where(tmp_path: Path) -> Path:
    Authority.init(tmp_path / "identity", "m", "base")
    return tmp_path / "identity"


def test_one_that_is_good_for_long(where: Path) -> None:
    found = judge_identity(where, in_force=True)
    assert found.state == "ok"
    assert "'base'" in found.value
    until = certificates.read((where / folder.NODE).read_bytes()).not_valid_after_utc
    assert f"{until:%Y-%m-%d}" in found.value


def test_one_that_ends_soon_and_one_that_is_over(where: Path) -> None:
    until = certificates.read((where / folder.NODE).read_bytes()).not_valid_after_utc
    soon = judge_identity(where, in_force=True, now=until - timedelta(days=5))
    assert soon.state == "limited"
    assert "in 5 day(s)" in soon.value
    assert "ringcast secure rotate" in soon.remedy
    over = judge_identity(where, in_force=True, now=until + timedelta(seconds=1))
    assert over.state == "limited"
    assert "it is over" in over.value
    assert "cannot join" in over.remedy


def test_an_authority_that_ends_before_its_nodes(where: Path) -> None:
    until = certificates.read((where / folder.AUTHORITY).read_bytes()).not_valid_after_utc
    key = certificates.read_key((where / folder.AUTHORITY_KEY).read_bytes())
    authority = certificates.read((where / folder.AUTHORITY).read_bytes())
    request = certificates.make_request(certificates.make_key(), "base")
    longer = certificates.certify(authority, key, request, "base", certificates.utc_now(), days=20_000)
    (where / folder.NODE).write_bytes(certificates.pem_of(longer))
    found = judge_identity(where, in_force=True, now=until - timedelta(days=1))
    assert found.state == "limited"
    assert "of the mesh's authority" in found.value
    assert "ringcast secure init" in found.remedy


def test_what_cannot_be_read(where: Path) -> None:
    (where / folder.NODE_KEY).chmod(0o644)
    assert "chmod 600" in judge_identity(where, in_force=False).remedy
    (where / folder.NODE_KEY).chmod(0o600)
    (where / folder.NODE).write_text("nonsense")
    assert judge_identity(where, in_force=True).state == "limited"
    (where / folder.NODE).unlink()
    assert judge_identity(where, in_force=True).state == "limited"

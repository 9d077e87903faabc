"""A daemon that is open, or whose rules and certificates are not what its owner believes: `ringcast doctor` says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from addresses import free_addresses

import ringcast
from ringcast.cli.parts.checks import security
from ringcast.cli.parts.checks.finding import Finding
from ringcast.security.authority import Authority
from ringcast.testing.waiting import wait_until

FOR_NODES = '[[rules]]\nnode = "*"\nmay = ["subscribe"]\ntags = ["lab/**"]\n'


@pytest.fixture(autouse=True)
def no_usual_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RINGCAST_IDENTITY", str(tmp_path / "none"))


def answers(daemon: Any) -> bool:
    """A daemon listens before it answers, and on a busy machine long before."""
    try:
        ringcast.connect(socket=daemon.socket_path, start=False).close()
    except ringcast.DaemonUnavailable:
        return False
    return True


def findings(daemon: Any) -> dict[str, Finding]:
    wait_until(lambda: answers(daemon))
    return {finding.name: finding for finding in security.look(daemon.socket_path)}


def test_no_daemon_and_no_identity_is_nothing_to_say(tmp_path: Path) -> None:
    assert security.look(str(tmp_path / "d.sock")) == []


def test_a_daemon_that_others_reach_without_an_identity(make_daemon: Callable[..., Any]) -> None:
    (address,) = free_addresses(1)
    daemon = make_daemon("--listen", address.replace("127.0.0.1", "0.0.0.0"), "--no-scout")
    found = findings(daemon)["open to strangers"]
    assert found.state == "limited"
    assert "0.0.0.0" in found.value
    assert "ringcast secure" in found.remedy


def test_a_daemon_that_nobody_reaches(make_daemon: Callable[..., Any]) -> None:
    (address,) = free_addresses(1)
    found = findings(make_daemon("--listen", address, "--no-scout"))
    assert found["open to strangers"].state == found["rules"].state == "ok"


def test_metrics_for_whoever_comes(make_daemon: Callable[..., Any]) -> None:
    (address,) = free_addresses(1)
    public = address.replace("127.0.0.1", "0.0.0.0")
    found = findings(make_daemon("--metrics", public, "--metrics-rules", "none"))["open to strangers"]
    assert found.state == "limited"
    assert "metrics" in found.value


def test_a_closed_mesh_whose_nodes_may_do_everything(make_daemon: Callable[..., Any], tmp_path: Path) -> None:
    Authority.init(tmp_path / "identity", "m", "base")
    address, another = free_addresses(2)
    options = ["--no-scout", "--identity", str(tmp_path / "identity")]
    found = findings(make_daemon("--listen", address, *options))
    assert found["open to strangers"].state == found["certificate"].state == "ok"
    assert "good until" in found["certificate"].value
    assert found["rules"].state == "limited"
    assert "stolen" in found["rules"].remedy
    config = tmp_path / "ringcast.toml"
    config.write_text(FOR_NODES)
    ruled = make_daemon("--listen", another, *options, "--config", str(config))
    assert findings(ruled)["rules"].state == "ok"
    config.write_text("[[rules]]\nmay = 3\n")
    found = findings(ruled)
    assert found["rules"].state == "ok", "those that it read are in force"
    assert found["file with rules"].state == "limited"
    assert "ringcast.toml:" in found["file with rules"].value
    config.unlink()
    assert "ringcast.toml" in findings(ruled)["file with rules"].value

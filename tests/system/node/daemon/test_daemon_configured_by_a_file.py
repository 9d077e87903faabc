"""A daemon with a ringcast.toml: what is in force, what a mistake looks like, and what changes while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import RINGCAST, run_ringcast

import ringcast

FIRST = """\
name = "edge1"
mesh = "team-a"
[limits]
memory = "64M"
[tags."lab/temperature"]
codec = "json"
depth = 10
[[transports]]
tags = "cam/**"
transport = "tcp"
"""


def settings(socket: str) -> dict[str, tuple[str, str]]:
    shown = run_ringcast("config", "show", "--socket", socket, "--json")
    assert shown.returncode == 0, shown.stderr
    return {row["key"]: (row["value"], row["origin"]) for row in json.loads(shown.stdout)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ringcast.toml"
    path.write_text(FIRST)
    return path


def test_the_file_is_in_force_and_flags_win(file: Path, make_daemon: Any) -> None:
    daemon = make_daemon("--config", str(file), "--budget", "32M")
    with ringcast.connect(daemon.socket_path, start=False) as session:
        status = session.status()
        assert (status.node, status.mesh, status.config) == ("edge1", "team-a", str(file))
        assert status.budget_bytes == 32 * 1024 * 1024
        (tag,) = session.tags("lab/temperature")
        assert (tag.attributes.codec, tag.attributes.depth) == ("json", 10)
        session.tag("cam/front")
        assert session.tags("cam/front")[0].settings[""].transport == "tcp"
        assert session.tags("lab/temperature")[0].settings == {}
    found = settings(daemon.socket_path)
    assert found["name"] == ('"edge1"', f"{file}:1")
    assert found["limits.memory"][1] == "flag"
    assert found["log"] == ('"text"', "default")
    assert found['tags."lab/temperature"'][1] == f"{file}:5"


def test_where_a_file_is_looked_for(file: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "ringcast").mkdir(parents=True)
    (tmp_path / "home" / "ringcast" / "ringcast.toml").write_text('name = "of-the-user"')
    quiet = {"RINGCAST_SOCKET": str(tmp_path / "nobody.sock"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    environment = {name: value for name, value in os.environ.items() if name != "RINGCAST_CONFIG"} | quiet

    def name(*words: str, **more: str) -> str:
        done = subprocess.run(
            [*RINGCAST, "config", "show", "--json", *words],
            capture_output=True, text=True, timeout=60, check=True, env=environment | more,
        )  # fmt: skip
        return json.loads(next(row["value"] for row in json.loads(done.stdout) if row["key"] == "name"))

    assert name() == "of-the-user"
    assert name(RINGCAST_CONFIG=str(file)) == "edge1"
    assert name("--config", str(file), RINGCAST_CONFIG="/nowhere") == "edge1"
    assert name("--no-config") not in ("edge1", "of-the-user")
    assert name(RINGCAST_CONFIG="") not in ("edge1", "of-the-user")


@pytest.mark.parametrize("command", [["daemon", "--check", "--config"], ["daemon", "--config"], ["config", "check"]])
def test_a_mistake_is_one_sentence_with_file_and_line(file: Path, tmp_path: Path, command: list[str]) -> None:
    file.write_text(FIRST + 'transprot = "nak"\n')
    result = run_ringcast(*command, str(file), RINGCAST_SOCKET=str(tmp_path / "d.sock"))
    assert result.returncode in (1, 2)
    assert len(result.stderr.splitlines()) == 1
    assert f"{file}:11: there is no key 'transprot'; did you mean 'transport'?" in result.stderr


def test_a_check_says_yes_and_starts_nothing(file: Path, tmp_path: Path) -> None:
    result = run_ringcast("daemon", "--check", "--config", str(file), "--socket", str(tmp_path / "d.sock"))
    assert (result.returncode, result.stderr) == (0, "")
    assert str(file) in result.stdout
    assert not (tmp_path / "d.sock").exists()


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.toml")
    for words, environment in ((("--config", missing), {}), ((), {"RINGCAST_CONFIG": missing})):
        result = run_ringcast("daemon", *words, **{"RINGCAST_SOCKET": str(tmp_path / "d.sock"), **environment})
        assert result.returncode == 2
        assert "there is no such file" in result.stderr


class Logged:
    """A daemon whose log is a file of JSON lines."""

    def __init__(self, config: Path, tmp_path: Path, eventually: Any) -> None:
        self.socket = str(tmp_path / "logged.sock")
        self.log = tmp_path / "log"
        self._eventually = eventually
        with self.log.open("w") as log:
            command = [*RINGCAST, "daemon", "--config", str(config), "--socket", self.socket, "--log", "json"]
            self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
        eventually(lambda: os.path.exists(self.socket))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def reload(self) -> list[str]:
        """What it says of reloading."""
        before = len(self.lines())
        self.process.send_signal(signal.SIGHUP)
        self._eventually(lambda: any("reloaded" in line["message"] for line in self.lines()[before:]))
        return [line["message"] for line in self.lines()[before:]]


@pytest.fixture
def logged(file: Path, tmp_path: Path, eventually: Any) -> Any:
    daemon = Logged(file, tmp_path, eventually)
    yield daemon
    daemon.process.terminate()
    daemon.process.wait(30)


def test_what_can_change_while_running_does_and_the_rest_is_said(file: Path, logged: Logged) -> None:
    with ringcast.connect(logged.socket, start=False) as session:
        session.tag("cam/front")
        session.tag("cam/back")
        session.set_channel("cam/back", transport="nak")  # an administrator's override, which reloading respects
        other = FIRST.replace("edge1", "edge2").replace("64M", "32M").replace('"tcp"', '"udp"')
        file.write_text(other.replace("depth = 10", "depth = 20") + '[tags."lab/new"]\ndepth = 5\n')
        said = logged.reload()
        assert any(f"name is 'edge1' until the daemon is restarted; {file}:1 says 'edge2'" in line for line in said)
        assert said[-1] == "the configuration was reloaded; changed: limits.memory, tags, transports"
        assert session.status().node == "edge1"
        assert session.status().budget_bytes == 32 * 1024 * 1024
        assert session.tags("lab/new")[0].attributes.depth == 5
        assert session.tags("lab/temperature")[0].attributes.depth == 20  # nobody used it yet
        assert session.tags("cam/front")[0].settings[""].transport == "udp"
        assert session.tags("cam/back")[0].settings[""].transport == "nak"


def test_a_tag_in_use_stays_as_it_is(file: Path, logged: Logged) -> None:
    with ringcast.connect(logged.socket, start=False) as session:
        session.tag("lab/temperature").publisher().send(21.5)
        file.write_text(FIRST.replace("depth = 10", "depth = 20"))
        said = logged.reload()
        assert any("exists with depth=10, not 20" in line for line in said)
        assert session.tags("lab/temperature")[0].attributes.depth == 10
        assert session.tag("lab/temperature").history().latest().data == 21.5


def test_a_broken_file_changes_nothing(file: Path, logged: Logged) -> None:
    before = settings(logged.socket)
    file.write_text("name = \n")
    (said,) = logged.reload()
    assert said.startswith("the configuration was not reloaded")
    assert f"{file}:1: this is not TOML" in said
    assert settings(logged.socket) == before


def test_json_lines_name_who_speaks(logged: Logged) -> None:
    logged.reload()
    line = logged.lines()[-1]
    assert (line["level"], line["logger"], line["node"]) == ("warning", "ringcast.daemon", "edge1")
    assert line["pid"] == logged.process.pid
    assert line["time"].endswith("+00:00")


def test_peers_that_are_added_are_joined(
    tmp_path: Path, make_daemon: Any, eventually: Any, free_addresses: Any
) -> None:
    one, two = free_addresses(2)
    file = tmp_path / "one.toml"
    file.write_text(f'name = "one"\nlisten = ["{one}"]\nscout = false\n')
    first = make_daemon("--config", str(file))
    make_daemon("--name", "two", "--listen", two, "--no-scout")
    file.write_text(file.read_text() + f'peers = ["{two}"]\n')
    first.process.send_signal(signal.SIGHUP)
    with ringcast.connect(first.socket_path, start=False) as session:
        eventually(lambda: {row.name for row in session.nodes() if row.state == "here"} == {"one", "two"})


ON_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "ringcast", "daemon", "--socket", sys.argv[1]])
"""


def test_a_terminal_that_is_closed_ends_its_daemon(tmp_path: Path, eventually: Any) -> None:
    ours, theirs = os.openpty()
    path = str(tmp_path / "d.sock")
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, path], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        eventually(lambda: os.path.exists(path))
        ringcast.connect(path, start=False).close()  # it serves
        process.send_signal(signal.SIGHUP)
        ringcast.connect(path, start=False).close()  # and goes on while the terminal is there
        os.close(ours)
        process.wait(30)
        assert not os.path.exists(path)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)

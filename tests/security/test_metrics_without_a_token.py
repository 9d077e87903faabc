"""Somebody reaches a daemon's metrics and has no token, or one for a few tags only; and too many come at once."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from addresses import free_addresses
from processes import Daemon

import ringcast
from ringcast.daemon.access.tokens import fingerprint
from ringcast.model.addresses import split
from ringcast.testing.waiting import PATIENCE_S, wait_until

TOKEN, FEW, NEW = "the token of prometheus", "one for a few tags", "the next token"


def rules(**tokens: tuple[str, str]) -> str:
    said = "[tokens]\n" + "".join(f'{name} = "{fingerprint(token)}"\n' for name, (token, _) in tokens.items())
    for name, (_, tags) in tokens.items():
        said += f'[[rules]]\ntoken = "{name}"\nmay = ["subscribe"]\ntags = ["{tags}"]\n'
    return said


class Node:
    def __init__(self, file: Path, make_daemon: Callable[..., Daemon]) -> None:
        self.file = file
        file.write_text(rules(prometheus=(TOKEN, "**"), few=(FEW, "open/**")))
        (self.address,) = free_addresses(1)
        self.daemon = make_daemon("--name", "n", "--metrics", self.address, "--metrics-rules", str(file))
        self.session = ringcast.connect(socket=self.daemon.socket_path, start=False)
        self.publishers = [self.session.publisher(tag) for tag in ("open/a", "closed/a")]
        self.subscribers = [self.session.subscribe(pattern) for pattern in ("open/*", "closed/*")]

    def scrape(self, authorization: str | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*split(self.address), timeout=PATIENCE_S)
        headers = {} if authorization is None else {"Authorization": authorization}
        try:
            connection.request("GET", "/metrics", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def node(tmp_path: Path, make_daemon: Callable[..., Daemon]) -> Iterator[Node]:
    made = Node(tmp_path / "readers.toml", make_daemon)
    yield made
    made.session.close()


def tags(text: str) -> set[str]:
    return set(re.findall(r'(?:tag|pattern)="([^"@]+)"', text))


def test_no_token_and_a_wrong_one_get_nothing_and_are_recorded(node: Node) -> None:
    for said in (None, "Bearer wrong", f"Bearer {fingerprint(TOKEN)}", f"Basic {TOKEN}", "Bearer", TOKEN):
        status, text = node.scrape(said)
        assert status == 401
        assert "ringcast_" not in text
    audit: Any = node.session.tag("@ringcast/n/audit")
    with audit.subscribe(start="earliest") as reading:
        found = [reading.recv(PATIENCE_S).data for _ in range(6)]
    assert {(row["kind"], row["who"], row["action"]) for row in found} == {("web", "127.0.0.1", "scrape")}
    assert sorted(row["reason"] for row in found) == ["a wrong token"] * 5 + ["no token"]
    assert TOKEN not in str(found)


def test_a_token_sees_counters_of_its_own_tags_and_of_the_node(node: Node) -> None:
    status, text = node.scrape(f"Bearer {TOKEN}")
    assert status == 200
    assert tags(text) == {"open/a", "closed/a", "open/*", "closed/*"}
    status, text = node.scrape(f"Bearer {FEW}")
    assert status == 200
    assert tags(text) == {"open/a", "open/*"}
    assert "closed" not in text
    assert "ringcast_clients " in text


def test_a_token_that_is_gone_is_refused_after_a_reload(node: Node) -> None:
    assert node.scrape(f"Bearer {TOKEN}")[0] == 200
    node.file.write_text(rules(prometheus=(NEW, "**")))
    node.daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: node.scrape(f"Bearer {NEW}")[0] == 200)
    assert node.scrape(f"Bearer {TOKEN}")[0] == 401
    node.file.write_text("this is no TOML")
    node.daemon.process.send_signal(signal.SIGHUP)
    node.session.status()
    assert node.scrape(f"Bearer {NEW}")[0] == 200, "a file that cannot be used changes nothing"


def test_connections_that_say_nothing_do_not_add_threads_without_end(node: Node) -> None:
    def threads() -> int:
        status = Path(f"/proc/{node.daemon.process.pid}/status").read_text()
        return int(status.partition("Threads:")[2].split()[0])

    before = threads()
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(split(node.address), PATIENCE_S))
        node.session.status()
        assert threads() <= before + 16
    wait_until(lambda: _scraped(node) == 200)


def _scraped(node: Node) -> int:
    try:
        return node.scrape(f"Bearer {TOKEN}")[0]
    except OSError:  # closed, as all beyond the limit are
        return 0


def test_a_daemon_does_not_show_metrics_to_others_by_accident(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ringcast",
        "daemon",
        "--no-config",
        "--socket",
        str(tmp_path / "d.sock"),
        "--check",
    ]

    def check(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], capture_output=True, text=True, timeout=PATIENCE_S)

    refused = check("--metrics", "0.0.0.0:9417")
    assert refused.returncode == 2
    assert "--metrics-rules" in refused.stderr
    assert check("--metrics", "0.0.0.0:9417", "--metrics-rules", "none").returncode == 0
    assert check("--metrics", "127.0.0.1:9417").returncode == 0
    missing = check("--metrics", "0.0.0.0:9417", "--metrics-rules", str(tmp_path / "readers.toml"))
    assert missing.returncode == 2
    assert "readers.toml" in missing.stderr
    assert "Traceback" not in missing.stderr

"""A node that speaks an older protocol meets this one: both say so, and neither takes the other for a member."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import RINGCAST, run_ringcast

import ringcast

OLDER = """
import importlib.util, pathlib, runpy, sys
spec = importlib.util.find_spec("ringcast.control.peering")
source = pathlib.Path(spec.origin).read_text()
assert source.count("PROTOCOL_VERSION = 2\\n") == 1
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
exec(compile(source.replace("PROTOCOL_VERSION = 2\\n", "PROTOCOL_VERSION = 1\\n"), spec.origin, "exec"), vars(module))
sys.argv = ["ringcast", *sys.argv[1:]]
runpy.run_module("ringcast", run_name="__main__")
"""


class Daemons:
    """An old one, and a new one that knows where the old one is."""

    def __init__(self, directory: Path, stack: ExitStack, eventually) -> None:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in (one, other)]
        self.paths = [str(directory / name) for name in ("old.sock", "new.sock")]
        self.logs = [directory / name for name in ("old.log", "new.log")]
        peers = [[], ["--peer", self.addresses[0]]]
        for i, begin in enumerate(([sys.executable, "-c", OLDER], RINGCAST)):
            options = ["--socket", self.paths[i], "--name", f"n{i}", "--listen", self.addresses[i], "--no-scout"]
            log = stack.enter_context(self.logs[i].open("w"))
            process = subprocess.Popen([*begin, "daemon", *options, *peers[i]], stderr=log, stdin=subprocess.DEVNULL)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            eventually(lambda i=i: Path(self.paths[i]).exists())
        self.sessions = [stack.enter_context(ringcast.connect(path, start=False)) for path in self.paths]


@pytest.fixture
def daemons(tmp_path: Path, eventually) -> Iterator[Daemons]:
    with ExitStack() as stack:
        yield Daemons(tmp_path, stack, eventually)


def test_both_say_which_versions_met(daemons: Daemons, eventually) -> None:
    eventually(lambda: all(session.status().refusals for session in daemons.sessions))
    old, new = (session.status().refusals for session in daemons.sessions)
    assert list(old) == ["127.0.0.1"]
    assert "this node speaks peering protocol 1 and the other 2" in old["127.0.0.1"]
    assert list(new) == [daemons.addresses[0]]
    assert "use the same version of ringcast on all nodes" in new[daemons.addresses[0]]
    for session in daemons.sessions:
        assert [node.me for node in session.nodes()] == [True]
    for path, log in zip(daemons.paths, daemons.logs, strict=True):
        shown = run_ringcast("nodes", "--socket", path, "--no-start")
        assert shown.returncode == 0
        assert "is not of this mesh" in shown.stderr
        assert "peering protocol" in log.read_text()

"""Two teams on one network: nodes whose meshes have different names stay apart, and say so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from processes import RINGCAST, run_ringcast

import ringcast


class Team:
    def __init__(
        self, name: str, mesh: list[str], address: str, peers: list[str], place: Path, stack: ExitStack
    ) -> None:
        self.address = address
        self.path, self.log = str(place / f"{name}.sock"), place / f"{name}.log"
        log = stack.enter_context(self.log.open("w"))
        words = ["--name", name, "--listen", address, "--no-scout", "--no-config", *mesh, "--socket", self.path]
        words += [word for peer in peers for word in ("--peer", peer)]
        self.process = subprocess.Popen([*RINGCAST, "daemon", *words], stderr=log, stdin=subprocess.DEVNULL)
        stack.callback(self.process.wait, 30)
        stack.callback(self.process.terminate)

    def connect(self) -> ringcast.Session:
        return ringcast.connect(self.path, start=False)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_they_stay_apart_and_say_why(
    tmp_path: Path, stack: ExitStack, eventually: Callable[..., None], free_addresses: Any
) -> None:
    addresses = free_addresses(3)
    a = Team("a", ["--mesh", "team-a"], addresses[0], [], tmp_path, stack)
    eventually(lambda: Path(a.path).exists())
    b = Team("b", ["--mesh", "team-b"], addresses[1], [a.address], tmp_path, stack)
    c = Team("c", ["--mesh", "team-a"], addresses[2], [a.address, b.address], tmp_path, stack)
    eventually(lambda: Path(b.path).exists() and Path(c.path).exists())
    with a.connect() as at_a, b.connect() as at_b, c.connect() as at_c:
        eventually(lambda: {row.name for row in at_c.nodes() if row.state == "here"} == {"a", "c"})
        eventually(lambda: a.address in at_b.status().refusals and b.address in at_c.status().refusals)
        assert {row.name for row in at_b.nodes()} == {"b"}
        assert {row.name for row in at_a.nodes()} == {"a", "c"}
        reason = at_b.status().refusals[a.address]
        assert "this node is of mesh 'team-b' and the other of mesh 'team-a'; give both the same --mesh" in reason
        shown = run_ringcast("status", "--socket", b.path)
        assert "team-b; other nodes: none" in shown.stdout
        assert a.address in shown.stderr
    for team in (a, b, c):
        assert "give both the same --mesh" in team.log.read_text()
        said = [line for line in team.log.read_text().splitlines() if "no link with" in line]
        assert len(said) == len({line.split("no link with")[1] for line in said})


def test_a_name_is_not_the_mesh_without_one(
    tmp_path: Path, stack: ExitStack, eventually: Callable[..., None], free_addresses: Any
) -> None:
    addresses = free_addresses(2)
    a = Team("a", [], addresses[0], [], tmp_path, stack)
    b = Team("b", ["--mesh", "team-b"], addresses[1], [a.address], tmp_path, stack)
    eventually(lambda: Path(a.path).exists() and Path(b.path).exists())
    with b.connect() as at_b:
        eventually(lambda: a.address in at_b.status().refusals)
        assert "the other of the mesh without a name" in at_b.status().refusals[a.address]

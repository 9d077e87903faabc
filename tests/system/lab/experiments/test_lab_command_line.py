"""A person builds a network, looks at it, runs commands on it and removes it, with `ringcast lab net`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

PROGRAM = "import sys; from ringcast.cli import program; program.VERBS.setdefault('lab', ''); sys.exit(program.main())"


def ringcast(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "lab", "net", *words], capture_output=True, text=True, check=False
    )


def answer(*words: str) -> Any:
    done = ringcast(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def network() -> Iterator[str]:
    run = answer("up", "--chain", "3", "--rate", "100mbit")["network"]
    yield run
    cleanup.remove(run)


def test_up_list_run_down(network: str) -> None:
    assert {"network": network, "state": "kept", "links": ["a-b", "b-c"]} in answer("list")
    done = ringcast("run", "--net", network, "b", "--", "sh", "-c", "ls /sys/class/net; echo $RINGCAST_NODE; exit 7")
    assert (done.stdout.split(), done.returncode) == (["lo", "to-a", "to-c", "b"], 7)
    assert network in answer("down", network)["removed"]
    assert network not in {row["network"] for row in answer("list")}
    assert not list(cleanup.NAMESPACES.glob(f"ringcast-{network}-*"))


def test_check_says_who_reaches_whom(network: str) -> None:
    rows = answer("check", "--net", network, "--seconds", "0.05")
    assert [(row["from"], row["to"], row["lost"]) for row in rows] == [("a", "b", 0), ("a", "c", 0), ("b", "c", 0)]
    assert all(row["ipv4_ns"] > 0 and row["bits_per_s"] > 0 for row in rows)


def test_check_fails_when_a_link_is_cut(network: str) -> None:
    record = next(record for record in cleanup.records() if record.run == network)
    Testbed.attach(record).link("a", "b").cut()
    done = ringcast("check", "--net", network, "--seconds", "0.05", "--json")
    assert done.returncode == 1
    assert [row["lost"] == row["sent"] for row in json.loads(done.stdout)] == [True, True, False]


def test_check_of_a_new_network_leaves_nothing(tmp_path: Path) -> None:
    before = {record.run for record in cleanup.records()}
    described = tmp_path / "office.toml"
    described.write_text('nodes = {s = "switch"}\nlinks = [{between = ["x", "s"]}, {between = ["s", "y"]}]\n')
    done = ringcast("check", "--topology", str(described), "--seconds", "0.05")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split()[:2] == ["x", "y"]
    assert not [
        r for r in cleanup.records() if r.run not in before and len(r.topology.links) == 2 and "s" in r.topology.nodes
    ]


def test_a_network_in_use_is_not_pulled_from_under_its_owner() -> None:
    with Testbed(pair()) as bed:
        done = ringcast("down", bed.run_id)
        assert done.returncode == 2
        assert "in use by process" in done.stderr
        assert bed.node("a").run(["true"]).returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["up", "--chain", "1"], "a chain has from 2 to 254 nodes"),
        (["up", "--rate", "fast"], "'fast' is not a rate"),
        (["up", "--loss", "200%"], "'200%' is not a loss"),
        (["up", "--topology", "/nowhere.toml"], "cannot read the topology"),
        (["up", "--chain", "2", "--star", "2"], "not allowed with"),
        (["run", "a"], "which command?"),
        (["run", "--net", "ffffffff", "a", "--", "ls"], "there is no network 'ffffffff'"),
        (["check", "--net", "ffffffff", "--star", "2"], "choose one"),
        (["down", "../../etc"], "there is no network"),
    ],
)
def test_mistakes_get_a_sentence(words: list[str], says: str) -> None:
    done = ringcast(*words)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr

"""The papers' experiment in small: real daemons and processes in network namespaces, a real router, a real proxy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab_fakes import CountedSteps, network_of

from ringcast.cli.experiment import lab
from ringcast.lab.push_pull.network import HERE, INTERMEDIATE, NONE, Arrangement, PushPullNetwork, collect
from ringcast.lab.push_pull.peer_round_trips import ONE, OURS, WireNetwork, round_trips
from ringcast.lab.testbed import cleanup, peers
from ringcast.lab.testbed.actor import Actor, ActorFailed
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

root = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@root
def test_messages_go_round_by_way_of_proxy_and_router():
    with PushPullNetwork() as network:
        wanted = [(Arrangement(hops, proxy), 64) for hops, proxy in ((1, NONE), (1, INTERMEDIATE), (2, NONE))]
        wanted.append((Arrangement(0, INTERMEDIATE), 1792))
        batches = collect(network, wanted, 1, CountedSteps())
        assert batches.keys() == set(wanted)
        assert all([len(batch) for batch in rounds] == [100] for rounds in batches.values())
        assert all(sample > 0 for rounds in batches.values() for sample in rounds[0])
        # Factor one changes nothing, and goes through the node all the same.
        legs = {(row.direction, row.node, row.every) for row in network.mesh.sessions["c"].channels()}
        assert legs >= {("in", HERE, 1), ("out", "b", 1)}
        routes = network.mesh.bed.node(HERE).run(["ip", "route", "get", network.mesh.bed.node("d").address()]).stdout
        assert f"via {network.mesh.bed.node('r1').address()}" in routes


@root
def test_without_peers_the_comparison_still_has_our_figures(monkeypatch):
    monkeypatch.setattr(peers, "place", lambda: None)
    with WireNetwork() as network:
        findings = round_trips(network, True, CountedSteps())
    row = findings.rows[0]
    assert row.value
    assert row.met is None
    assert "sh bench/setup_peers.sh" in row.name
    assert [cells[0] for cells in findings.tables[0].rows] == [OURS, "Python UDP sockets"]
    assert ONE in row.name


@root
def test_a_measuring_process_that_fails_says_why():
    with Testbed(pair()) as bed:
        with Actor(bed.node("a")) as actor:
            with pytest.raises(ActorFailed, match="DaemonUnavailable") as failed:
                actor.ask("open", end="pacer", name="x", tag="x")
            assert failed.value.node == "a"
            os.kill(actor.pid, signal.SIGKILL)
            with pytest.raises(ActorFailed, match="it ended"):
                actor.ask("send", name="x", count=1, gap_ns=0, size=1)
        script = """read line; echo oh dear >&2; echo '{"ok": 7}'; exec sleep 600"""
        with Actor(bed.node("a"), ["sh", "-c", script]) as hanging:
            assert hanging.ask("first") == 7
            with pytest.raises(ActorFailed, match=r"no answer in 0.05 s: oh dear"):
                hanging.ask("second", 0.05)


@root
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int):
    command = [sys.executable, "-m", "ringcast", "lab", "run", "push-pull", "--quick", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        mine = network_of(running, _has_processes)
        running.send_signal(number)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == code
    assert "Traceback" not in said
    assert mine not in {record.run for record in cleanup.records()}
    assert not list(cleanup.NAMESPACES.glob(f"ringcast-{mine}-*"))
    assert not (tmp_path / "out").exists()


def _has_processes(run: str) -> bool:
    command = ["ip", "netns", "pids", cleanup.namespace(run, "a")]
    return bool(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())


def test_without_rights_one_sentence_says_so(monkeypatch, capsys):
    from ringcast.cli import program

    monkeypatch.setattr(lab, "unavailable", lambda: "network namespaces need root")
    assert program.main(["lab", "run", "push-pull"]) == 1
    assert capsys.readouterr().err == "ringcast: network namespaces need root\n"


@pytest.mark.parametrize(
    ("words", "says"), [(["run", "pull-push"], "invalid choice: 'pull-push'"), (["run"], "NAME"), ([], "WHAT")]
)
def test_mistakes_get_a_sentence(words: list[str], says: str):
    done = subprocess.run(
        [sys.executable, "-m", "ringcast", "lab", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_help_says_what_it_is():
    done = subprocess.run(
        [sys.executable, "-m", "ringcast", "lab", "run", "--help"], capture_output=True, text=True, check=True
    )
    assert "push-pull" in done.stdout
    assert "--quick" in done.stdout
    assert "docs/experiments.md" in done.stdout

"""A real publisher, daemons and receivers around a switch, while the kernel loses what arrives at the receivers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_fakes import CountedSteps, network_of

from ringcast.lab.adamant.field import comparison, experiment, fan_out, round_trips
from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.adamant.field.plan import CONTENDERS, QuickPlan
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.simulation.workers import workers
from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.network import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

LOSS = 0.03
UPDATES = 300


@pytest.fixture(scope="module")
def network() -> Iterator[FieldNetwork]:
    with FieldNetwork(3) as made:
        yield made


def test_processes_are_there_before_anything_is_measured(network: FieldNetwork) -> None:
    nodes = [network.here, *network.there(3)]
    network.start(nodes)
    # This process looks on, and the measuring one has arrived.
    assert [network.mesh.sessions[node].status().clients for node in nodes] == [2] * 4


def test_nak_delivers_everything_and_udp_does_not(network: FieldNetwork) -> None:
    chosen = tuple(c for c in CONTENDERS if c.name in ("udp", "nak"))
    plan = QuickPlan((3,), {0.0: UPDATES, LOSS: UPDATES}, chosen)
    runs = experiment.streams(network, plan, CountedSteps())
    assert [(cell.loss, contender.name) for cell, contender, _ in runs] == [
        (0.0, "udp"), (LOSS, "udp"), (LOSS, "nak"),
    ]  # fmt: skip
    received = {(cell.loss, contender.name): outcome.received for cell, contender, outcome in runs}
    assert received[LOSS, "nak"].all()
    assert received[0.0, "udp"].all()
    # Of 900 datagrams at 3 %, all arrive once in a million million runs.
    assert not received[LOSS, "udp"].all()
    assert received[LOSS, "udp"].mean() > 0.5
    for _, _, outcome in runs:
        assert outcome.received.shape == (3, UPDATES)
        assert outcome.out_of_order == outcome.duplicates == 0
        assert outcome.datagrams >= UPDATES

    with workers() as pool:
        compared = experiment.predict(runs, plan, pool)
    findings = comparison.conclude(compared)
    assert any(row.name.startswith("delivered, nak, real network") and row.met for row in findings.rows)
    assert {one.measured.configuration["real"] for one in compared} == {"1"}
    assert {result.configuration["real"] for one in compared for result in one.predicted} == {"0"}
    assert all(one.measured.metrics.keys() == one.predicted[0].metrics.keys() for one in compared)


def test_what_is_lost_is_lost_at_the_receivers_and_no_longer_than_the_stream(network: FieldNetwork) -> None:
    (udp,) = (c for c in CONTENDERS if c.name == "udp")
    assert not network.run(Cell(2, 0.5, 1.0, 100.0), udp, 50).received.all()
    assert network.run(Cell(2, 0.0, 1.0, 100.0), udp, 50).received.all()


def test_round_trips_by_each_transport(network: FieldNetwork) -> None:
    names = ("udp", *round_trips.ASKED)
    batches = round_trips.measure(network, names, 2, 20, CountedSteps(), bystander=True)
    assert {name: [len(block) for block in found] for name, found in batches.items()} == {n: [20, 20] for n in names}
    assert all(row.value for row in round_trips.conclude(batches).rows)


@pytest.mark.skipif(not fan_out.available(), reason="strace is not installed")
def test_one_call_and_one_packet_for_all_nodes(network: FieldNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "MANY", 3)
    costs = fan_out.measure(network, CountedSteps())
    assert costs[1].sends == costs[3].sends == 1.0
    # Three copies would be three; what daemons tell each other is little.
    assert 1.0 <= costs[3].packets < 2.0


def test_interrupted_it_leaves_no_namespace(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ringcast", "lab", "run", "adamant", "--quick", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        mine = network_of(running)
        os.kill(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in said
    assert not list(cleanup.NAMESPACES.glob(f"ringcast-{mine}-*"))
    assert not (tmp_path / "out").exists()

"""The parts of the real network's experiment that need no network."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ringcast.lab.adamant import experiment as adamant
from ringcast.lab.adamant import recovery_bench
from ringcast.lab.adamant.field import comparison, experiment, fan_out, round_trips
from ringcast.lab.adamant.field.comparison import Comparison
from ringcast.lab.adamant.field.observation import Heard, Sent, outcome
from ringcast.lab.adamant.field.plan import AS_IT_COMES, CONTENDERS, Links, field_plan, links_of, prediction
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adamant.results import METRICS, Result, summarise
from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.workers import workers
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.transport.recipe import read

CELL = Cell(2, 0.03, 1.0, 100.0)
BY_NAME = {contender.name: contender for contender in CONTENDERS}


def test_every_contender_is_asked_of_daemons_and_of_the_simulator() -> None:
    for contender in CONTENDERS:
        scenario = prediction(CELL, contender, Links(50.0, 20.0), 30, 1)
        assert packet_loss.run(scenario).received.shape == (2, 30)
        if contender.asked not in ("udp", "tcp"):
            recipe = read(contender.asked)
            assert recipe.promises.reliable == contender.complete
            assert recipe.shape.multicast == contender.multicast


def test_predictions_deliver_in_order_as_rings_are_read() -> None:
    for contender in CONTENDERS:
        scenario = prediction(Cell(5, 0.2, 1.0, 100.0), contender, Links(50.0, 20.0), 500, 3)
        out_of_order = packet_loss.run(scenario).out_of_order
        assert not (contender.ordered and out_of_order), contender.name
        # Parity is here before the next update is due.
        assert (out_of_order > 0) == (contender.name == f"lateral:r=4,c=3{AS_IT_COMES}"), contender.name


def test_the_plan_is_what_was_asked_for() -> None:
    plan = field_plan(quick=False)
    assert {cell.receivers for cell in plan.cells} == {3, 10}
    assert {cell.loss for cell in plan.cells} == {0.0, 0.01, 0.03}
    assert {cell.rate_hz for cell in plan.cells} == {100.0}
    assert plan.runs == len(plan.cells) * len(CONTENDERS)
    quick = field_plan(quick=True)
    assert quick.runs < 10
    # What the links are like is always learned first.
    assert quick.cells[0].loss == 0
    assert quick.contenders_of(quick.cells[0])[0].name == "udp"


def test_links_are_as_the_lossless_stream_found_them() -> None:
    links = links_of([100.0] * 10 + [120.0] * 85 + [9000.0] * 5)
    assert links == Links(100.0, 40.0)
    with pytest.raises(ValueError, match="no samples"):
        links_of([])


def test_what_was_heard_becomes_an_outcome() -> None:
    # Updates are 20 to 23; 19 warmed up. The first receiver misses 21, the second has 23 before 22 and 20 twice.
    heard = [
        Heard([19, 20, 22, 23], [9, 1000, 3000, 4000]),
        Heard([20, 20, 21, 23, 22], [1000, 1500, 1000, 1000, 2000]),
    ]
    for name, unsettled in (("nak", [1, 0]), ("udp", [0, 0])):
        made = outcome(CELL, BY_NAME[name], 4, heard, 20, Sent((5, 500), (7, 700), naks=2))
        assert made.received.tolist() == [[True, False, True, True], [True] * 4]
        assert made.latency_of(0) == pytest.approx([1e-6, 3e-6, 4e-6])
        assert (made.out_of_order, made.duplicates) == (1, 1)
        assert made.unsettled == unsettled
        assert made.datagrams == 12
        assert made.receivers["nak"][0] == 2
        assert summarise("x", made, real=True).configuration["real"] == "1"
        assert summarise("x", made, real=True).metrics["delivered"] == 87.5


def results_of(transport: str, cell: Cell, **metrics: float) -> Result:
    return Result("x", {"transport": transport}, 0, {**dict.fromkeys(METRICS, 1.0), **metrics})


def compared(transport: str, cell: Cell, delivered: float, relate2: float) -> Comparison:
    predicted = tuple(results_of(transport, cell, delivered=100.0, relate2=value) for value in (1.0, 3.0))
    return Comparison(cell, transport, results_of(transport, cell, delivered=delivered, relate2=relate2), predicted)


def test_measured_stands_beside_predicted() -> None:
    lossy, calm = CELL, Cell(2, 0.0, 1.0, 100.0)
    found = [compared("udp", calm, 99.0, 4.0), compared("udp", lossy, 97.0, 4.0), compared("nak", lossy, 100.0, 3.0)]
    findings = comparison.conclude(found)
    table = next(table for table in findings.tables if table.title.startswith("ReLate2"))
    assert table.rows[1][1:] == ["udp", "4", "2", "1 to 3", "+2"]
    asked = [row for row in findings.rows if row.kind == "asked"]
    assert [(row.value, row.target, row.met) for row in asked] == [(100.0, 100, True)]
    (shape,) = [row for row in findings.rows if row.kind == "shape"]
    assert (shape.value, shape.reference, shape.met) == (0.75, 1.0, True)
    assert {picture.name for picture in findings.pictures} == {
        f"field-{metric}-2-receivers-3-percent" for metric in ("lost", "latency-mean", "latency-std", "relate2")
    }
    lost = next(picture for picture in findings.pictures if "lost" in picture.name)
    assert [series.points for series in lost.series] == [[(0.0, 3.0), (1.0, 0.0)], [(0.0, 0.0), (1.0, 0.0)]]


def test_a_repair_that_failed_on_a_real_network_is_not_met() -> None:
    rows = comparison.conclude([compared("nak", CELL, 99.99, 3.0)]).rows
    assert [row.met for row in rows if row.kind == "asked"] == [False]


def test_round_trips_are_compared_within_rounds() -> None:
    # The machine is twice as slow in the second round; the transports' ratio is not.
    batches = {"udp": [[100] * 3, [200] * 3], **{name: [[110] * 3, [220] * 3] for name in round_trips.ASKED}}
    batches["parity"] = [[120] * 3, [240] * 3]
    rows = {row.name: row for row in round_trips.conclude(batches).rows}
    assert len(rows) == 3
    nak, parity = (rows[round_trips.row_name(name)] for name in ("nak", "parity"))
    assert (nak.value, nak.met, parity.value, parity.met) == (1.1, True, 1.2, False)


TRACE = """\
100 read(0, "{\\"do\\"", 8192) = 120
101 sendmmsg(7, [...], 1, 0) = 1
100 sendmmsg(7, [...], 1, MSG_DONTWAIT <unfinished ...>
101 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL) = 0
100 <... sendmmsg resumed>) = 1
100 sendmmsg(7, [...], 1, MSG_DONTWAIT) = 1
100 --- SIGCHLD {si_signo=SIGCHLD} ---
100 write(1, "{\\"ok\\"", 20) = 20
"""


def test_system_calls_are_counted_once_and_by_thread() -> None:
    assert fan_out.calls_of(TRACE, "100") == {"read": 1, "sendmmsg": 2, "write": 1}
    assert fan_out.calls_of(TRACE, "101") == {"sendmmsg": 1, "futex": 1}


def test_fan_out_is_equal_or_not() -> None:
    one, same, dearer = fan_out.Cost(1.0, 1.0, 1.004), fan_out.Cost(1.005, 1.0, 1.01), fan_out.Cost(8.0, 8.0, 8.0)
    for many, met in ((same, True), (dearer, False)):
        calls, packets, sends = fan_out.conclude({1: one, 8: many}).rows
        assert (calls.met, packets.met, sends.met) == (met, met, None)


def test_without_a_network_every_row_is_there_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "unavailable", lambda: "network namespaces need root")
    with workers() as pool:
        findings, results = experiment.run(True, object(), pool)
    assert not results
    assert len(findings.rows) == 5
    assert all(row.value is None and row.met is None and "skipped" in row.name for row in findings.rows)
    assert findings.notes == ["the part on a real network was skipped: network namespaces need root"]


def test_the_recovery_code_allocates_nothing() -> None:
    costs = recovery_bench.measure(2_000)
    rows = recovery_bench.rows(costs, 2_000)
    assert {"ordering nak", "lateral", "parity", "ordering ack"} <= {cost.stages for cost in costs}
    assert all(row.value for row in rows[:-1])
    assert (rows[-1].value, rows[-1].met) == (0, True)
    worse = [recovery_bench.Cost("nak", 12, 1.0, 3)]
    assert recovery_bench.rows(worse, 10)[-1].met is False


def test_where_its_program_is_not_built_the_row_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recovery_bench, "PROGRAM", tmp_path / "recovery_bench")
    assert not recovery_bench.available()
    findings = adamant.AdamantFindings()
    (row,) = adamant._costs(True, findings)
    assert (row.value, row.met, row.kind) == (None, None, "asked")
    assert "skipped" in row.name
    assert findings.notes == [recovery_bench.MISSING]
    with pytest.raises(LabError, match="'make setup'"):
        recovery_bench.measure(10)


def test_work_that_has_not_begun_never_begins() -> None:
    held, begun = threading.Event(), []

    def interrupted() -> None:
        with workers() as pool:
            for _ in affinity.cores():
                pool.submit(held.wait)
            waiting = [pool.submit(begun.append, number) for number in range(100)]
            # Those that run are let go only when those that wait have been told not to begin.
            waiting[-1].add_done_callback(lambda _: held.set())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not begun

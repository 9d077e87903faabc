"""The paper's statements over results that were made up, so that what each row says is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from lab_fakes import named

from ringcast.lab.labmap import grid
from ringcast.lab.labmap.paper import statements
from ringcast.lab.labmap.paper.rates import InPython, Rates
from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.report import Findings


def made(
    transport: str, subscribers: int, n: int, dt_s: float, latency_ms: float, lost: float = 0.0, load: str = "idle",
    cpu: float = 0.1,
) -> Result:  # fmt: skip
    configuration: dict[str, str | float] = {
        "transport": transport, "n": n, "dt_s": dt_s, "subscribers": subscribers, "load": load,
    }  # fmt: skip
    metrics = {
        "latency_ms": latency_ms, "latency_most_ms": 2 * latency_ms, "jitter_ms": latency_ms / 10, "lost": lost,
        "lost_share": min(1.0, lost / n), "publisher_cpu": cpu,
    }  # fmt: skip
    return Result(configuration, 0, metrics)


def cells() -> Iterator[tuple[int, int, float]]:
    for subscribers in (1, 5):
        for n in (400, 2000):
            for dt_s in (0.01, 0.05):
                yield subscribers, n, dt_s


def lines(a: float, b: float) -> list[Result]:
    """T = a + b n/dt, exactly, by both transports; unicast costs the publisher more for each subscriber."""
    found = []
    for subscribers, n, dt_s in cells():
        for transport, cost in (("tcp", 0.1 * subscribers), ("multicast+nak", 0.15)):
            found.append(made(transport, subscribers, n, dt_s, a + b * n / dt_s, cpu=cost))
    return found


def said(some: Iterable[Result], far_ms: float | None = None) -> Findings:
    return statements.rows(Rates.of(InPython(some)), far_ms)


def test_a_line_needs_two_rates_without_loss() -> None:
    found = Rates.of(InPython([*lines(0.25, 1e-6), made("tcp", 2, 400, 0.01, 1.0)]))
    assert statements.line(found, "tcp", "idle", 1) == pytest.approx((0.25, 1e-6))
    assert statements.line(found, "tcp", "idle", 2) is None
    assert statements.line(found, "tcp", "stress", 1) is None


def test_rows_beside_the_papers_figures() -> None:
    found = said(lines(0.25, 1e-6), far_ms=0.003)
    before = named(found, "latency at 10^4 changes/s, where the paper's loss begins, unicast (tcp), idle")
    assert (before.value, before.reference, before.met) == (pytest.approx(0.26), 1.0, True)
    assert named(found, "subscribers from which multicast costs").value == 5.0
    assert named(found, "share of changes late where loss begins, multicast: nothing was lost").value == 0.0
    assert named(found, "far under a millisecond").met is True
    assert {row.kind for row in found.rows} == {"shape", "figure"}


def test_loss_that_begins_is_told_with_its_rate() -> None:
    lossy = made("multicast+nak", 1, 2000, 0.001, 9.0, lost=1000.0)
    others = [made("multicast+nak", 1, 2000, 0.001, 9.0), made("multicast+nak", 1, 4000, 0.001, 9.0, lost=4000.0)]
    row = named(said([*lines(0.25, 1e-6), lossy, *others]), "where loss begins, multicast, at 2e+06")
    assert row.value == 0.5, "of those that lost something, at the least rate"


def test_latency_and_jitter_are_of_what_lost_nothing() -> None:
    latencies = {"idle": (1.0, 2.0, 3.0), "stress": (10.0, 20.0, 30.0)}
    found = said(
        made("tcp", 1, 400, 0.01, latency, load=load, lost=float(latency == latencies[load][-1]))
        for load in latencies for latency in latencies[load]
    )  # fmt: skip
    assert named(found, "jitter, the median of all runs without loss, unicast (tcp), idle").value == 0.15
    assert named(found, "the greatest latency, stress").value == 40.0
    assert named(found, "latency under stress against idle, unicast (tcp), medians").value == 10.0


def test_the_test_is_a_table_by_setting() -> None:
    some = [made("tcp", 1, 400, 0.01, 1.0), made("tcp", 1, 400, 0.01, 3.0, lost=5.0), made("tcp", 2, 400, 0.05, 4.0)]
    (test,) = [table for table in said(some).tables if table.title == statements.TEST]
    assert [list(row) for row in test.rows] == [
        ["tcp", "1", "idle", "400", "10", "2", "2.5", "2000", "6000", "200"],
        ["tcp", "2", "idle", "400", "50", "1", "0", "4000", "8000", "400"],
    ]


def test_the_short_grid_has_two_cells_of_one_rate() -> None:
    rates = [setting.rate for setting in grid.settings(quick=True) if setting.subscribers == 1]
    assert len(set(rates)) < len(rates) // 2 + 1
    tables = {table.title: table for table in said(lines(0.25, 1e-6)).tables}
    pairs = tables["Equal n/dt, different n: mean latency (ms)"]
    assert [row[3] for row in pairs.rows] == ["40000"] * 4


def test_the_whole_grid_is_the_papers() -> None:
    whole = grid.settings(quick=False)
    assert {setting.n for setting in whole} >= {1, 20000}
    assert {setting.period_s for setting in whole} == {0.005, 0.01, 0.05, 0.1, 0.2}
    assert {setting.subscribers for setting in whole} == {1, 2, 3, 4, 5}
    assert {setting.load for setting in whole} == {"idle", "stress"}

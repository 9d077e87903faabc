"""Pictures and Table 2, from results that were made up."""

from __future__ import annotations

from ringcast.lab.labmap import figures
from ringcast.lab.labmap.results import Result


def result(n: int, subscribers: int = 1, load: str = "idle", lost: float = 0.0) -> Result:
    configuration: dict[str, str | float] = {
        "transport": "tcp", "n": n, "dt_s": 0.01, "subscribers": subscribers, "load": load,
    }  # fmt: skip
    return Result(configuration, 0, {"latency_ms": 1.0, "lost": lost, "lost_share": lost / n, "jitter_ms": n / 1000})


def test_a_line_per_number_of_subscribers_and_no_jitter_of_what_lost() -> None:
    found = [result(100), result(200, lost=50.0), result(100, subscribers=5)]
    loss, jitter = figures.pictures(found)
    assert (loss.name, jitter.name) == ("labmap_loss_tcp", "labmap_jitter_tcp")
    assert [series.points for series in loss.series] == [[(10_000.0, 0.0), (20_000.0, 0.25)], [(10_000.0, 0.0)]]
    assert [series.points for series in jitter.series] == [[(10_000.0, 0.1)], [(10_000.0, 0.1)]]


def test_under_stress_where_that_was_run() -> None:
    loss, _ = figures.pictures([result(100), result(300, load="stress")])
    assert "stress" in loss.title
    assert [series.points for series in loss.series] == [[(30_000.0, 0.0)]]

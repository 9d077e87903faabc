"""Pictures, from results that were made up."""

from __future__ import annotations

from ringcast.lab.labmap.paper import figures
from ringcast.lab.labmap.paper.rates import InPython, Rates
from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.report import Picture


def result(n: int, subscribers: int = 1, load: str = "idle", lost: float = 0.0) -> Result:
    configuration: dict[str, str | float] = {
        "transport": "tcp", "n": n, "dt_s": 0.01, "subscribers": subscribers, "load": load,
    }  # fmt: skip
    return Result(configuration, 0, {"latency_ms": 1.0, "lost": lost, "lost_share": lost / n, "jitter_ms": n / 1000})


def pictures(*found: Result) -> list[Picture]:
    return figures.pictures(Rates.of(InPython(found)))


def test_a_line_per_number_of_subscribers_and_no_jitter_of_what_lost() -> None:
    loss, jitter = pictures(result(100), result(200, lost=50.0), result(100, subscribers=5))
    assert (loss.name, jitter.name) == ("labmap_loss_tcp", "labmap_jitter_tcp")
    assert [series.points for series in loss.series] == [[(10_000.0, 0.0), (20_000.0, 0.25)], [(10_000.0, 0.0)]]
    assert [series.points for series in jitter.series] == [[(10_000.0, 0.1)], [(10_000.0, 0.1)]]


def test_under_stress_where_that_was_run() -> None:
    loss, _ = pictures(result(100), result(300, load="stress"))
    assert "stress" in loss.title
    assert [series.points for series in loss.series] == [[(30_000.0, 0.0)]]


def test_a_point_is_the_mean_of_what_has_its_rate() -> None:
    loss, jitter = pictures(result(100), result(100, lost=50.0), result(300, lost=30.0))
    assert [series.points for series in loss.series] == [[(10_000.0, 0.25), (30_000.0, 0.1)]]
    assert [series.points for series in jitter.series] == [[(10_000.0, 0.1)]]

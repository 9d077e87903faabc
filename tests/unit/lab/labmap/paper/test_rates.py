"""Repetitions put together in Python, as the pipeline does it, and what is looked up in either's table."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.lab.labmap.paper import rates
from ringcast.lab.labmap.paper.rates import InPython, Rates, Told, Where
from ringcast.lab.labmap.results import Result


def result(n: int, dt_s: float = 0.01, latency_ms: float = 1.0, lost: float = 0.0, **where: str | float) -> Result:
    configuration: dict[str, str | float] = {
        "transport": "tcp", "load": "idle", "subscribers": 1, "n": n, "dt_s": dt_s, **where,
    }  # fmt: skip
    return Result(configuration, 0, {"latency_ms": latency_ms, "lost": lost})


def found(*results: Result) -> Rates:
    return Rates.of(InPython(results))


def told(rows: Rates, where: Where, metric: str = "latency_ms") -> Told:
    one = rows.one(metric, where)
    assert one is not None
    return one


def test_a_repetition_counts_in_every_size() -> None:
    rows = found(result(100), result(200), result(100, load="stress"), result(100, subscribers=5), result(50, 0.005))
    tcp = Where("tcp", "idle", 1)
    assert told(rows, tcp._replace(n=100.0, dt_s=0.01, rate=10_000.0)).runs == 1
    assert told(rows, tcp._replace(rate=10_000.0)).runs == 2, "of one rate by two numbers"
    assert told(rows, tcp).runs == 3
    assert told(rows, Where("tcp", "idle")).runs == 4
    assert told(rows, Where("tcp", rate=10_000.0)).runs == 4


def test_what_lost_something_is_told_apart() -> None:
    values = ((1.0, 0.0), (2.0, 0.0), (6.0, 0.0), (20.0, 3.0), (40.0, 1.0))
    rows = found(*(result(100, latency_ms=value, lost=lost) for value, lost in values))
    one = told(rows, Where("tcp", "idle", 1))
    assert (one.runs, one.mean, one.most, one.fastest) == (5, pytest.approx(13.8), 40.0, 10_000.0)
    assert (one.kept, one.kept_mean, one.kept_median, one.kept_most) == (3, 3.0, 2.0, 6.0)
    assert (one.losing, one.losing_mean) == (2, 30.0)


def test_where_everything_lost_something_there_is_nothing_to_say_of_the_rest() -> None:
    one = told(found(result(100, lost=1.0), result(200, lost=1.0)), Where("tcp", "idle", 1))
    assert (one.kept, one.kept_mean, one.kept_median, one.kept_most, one.a, one.b) == (0, None, None, None, None, None)
    assert told(found(result(100)), Where("tcp", "idle", 1)).losing_mean is None


def test_a_line_goes_through_what_lost_nothing() -> None:
    line = [result(n, latency_ms=0.25 + 1e-6 * n / 0.01) for n in (100, 400, 2000)]
    one = told(found(*line, result(5000, latency_ms=1000.0, lost=5.0)), Where("tcp", "idle", 1))
    assert (one.a, one.b) == (pytest.approx(0.25), pytest.approx(1e-6))
    assert one.fastest == 500_000.0, "of what lost something too"


def test_of_one_rate_there_is_no_line() -> None:
    one = told(found(result(100), result(200, 0.02), result(300, lost=1.0)), Where("tcp", "idle", 1))
    assert (one.kept, one.a, one.b) == (2, None, None)


def test_what_says_nothing_of_losses_is_left_out() -> None:
    stress = Result({**result(100).configuration, "side": "publisher"}, 0, {"whetstones": 7.0})
    rows = found(result(100), stress)
    assert rows.one("whetstones", Where("tcp", "idle")) is None
    assert told(rows, Where("tcp", "idle")).runs == 1


def test_one_is_of_exactly_these_keys() -> None:
    rows = found(result(100))
    assert rows.one("latency_ms", Where("tcp", "idle", 2)) is None
    assert rows.one("latency_ms", Where("tcp", None, 1)) is None, "no such size"
    assert rows.one("jitter_ms", Where("tcp", "idle", 1)) is None


def test_each_is_of_one_size_and_in_order() -> None:
    rows = found(*(result(n, subscribers=subscribers) for subscribers in (5, 1) for n in (200, 100)),
                 result(100, transport="multicast+nak"), result(100, load="stress"))  # fmt: skip
    size = ("transport", "load", "subscribers", "rate")
    places = [(where.subscribers, where.rate) for where in rows.each("lost", size, transport="tcp", load="idle")]
    assert places == [(1, 10_000.0), (1, 20_000.0), (5, 10_000.0), (5, 20_000.0)]
    assert list(rows.each("lost", ("transport", "load"))) == [
        Where("multicast+nak", "idle"), Where("tcp", "idle"), Where("tcp", "stress"),
    ]  # fmt: skip
    assert rows.each("lost", size, transport="udp") == {}


def test_rows_of_other_experiments_are_left_out() -> None:
    rows: list[dict[str, Any]] = InPython([result(100)]).rows(rates.TABLE)
    assert Rates({**row, "experiment": "another"} for row in rows).each("lost", ("transport", "load")) == {}

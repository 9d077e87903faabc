"""How readings of clocks are judged, against a truth that is known."""

from __future__ import annotations

import json

import pytest
from lab_fakes import named

from ringcast.lab.labmap import clocks
from ringcast.lab.measuring.report import Findings


def samples(error_ns: float, bound_ns: int) -> list[clocks.Sample]:
    return [clocks.Sample("b", at / 10, error_ns, bound_ns, 60_000) for at in range(10)]


def test_a_drifting_clock_is_ahead_by_more_as_time_passes() -> None:
    apart = clocks.Apart(2.0, 1e-6)
    assert apart.offset_ns(clocks.DAY_NS) == 2e9
    assert apart.offset_ns(clocks.DAY_NS + 10**9) == pytest.approx(2e9 + 1000)
    assert json.loads(apart.environment()["RINGCAST_CLOCK_AHEAD_S"]) == 2.0


def test_errors_beyond_the_bound_are_not_met() -> None:
    good = Findings(rows=clocks._judged("idle", samples(5_000, 20_000)))
    assert (named(good, "within the reported bound").met, named(good, "widest bound").met) == (True, True)
    bad = Findings(rows=clocks._judged("idle", [*samples(5_000, 20_000), clocks.Sample("c", 1.0, 9e5, 300_000, 1)]))
    assert (named(bad, "within the reported bound").met, named(bad, "widest bound").met) == (False, False)


def test_the_root_of_the_mean_square() -> None:
    row = clocks._rms(samples(4_000, 20_000))
    assert (row.value, row.met) == (4.0, True)
    assert clocks.absolute_ms(Findings(rows=[row])) == pytest.approx(0.004)
    assert clocks.absolute_ms(Findings()) is None


def test_figure_3_has_round_trips_bound_and_error() -> None:
    picture = clocks._picture(samples(4_000, 20_000))
    assert [series.points[0][1] for series in picture.series] == [120.0, 20.0, 4.0]

"""A stream lives through phases: by the simulator, and what is concluded of it."""

from __future__ import annotations

import json

import pytest

from ringcast.adapt.environment import Surroundings
from ringcast.control.between.choosing import Heard
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adaptation import choices, experiment
from ringcast.lab.adaptation.experiment import conclude, conclude_phases
from ringcast.lab.adaptation.living import Carrier, Choosing, Life, live
from ringcast.lab.adaptation.phases import Phase, phases
from ringcast.lab.adaptation.real import ADAPTIVE
from ringcast.record.figures import Measured

CALM = Phase("calm", Cell(3, 0.0, 1.0, 100.0, 200, 500.0, 100.0), 600)
LOSSY = Phase("lossy", Cell(3, 0.05, 1.0, 100.0, 200, 500.0, 100.0), 900)


def test_a_choice_follows_the_loss_and_then_rests() -> None:
    calm, lossy = live([CALM, LOSSY], Choosing(None), seed=1)
    assert calm.chosen[-1][1] == "multicast"
    assert [name for _, name in lossy.chosen] == ["multicast", "nak"]


@pytest.mark.parametrize(
    "transport", ["multicast", "nak", "parity:r=4,c=3", "lateral:r=4,c=5", "parity:r=4,c=2,flush=1s"]
)
def test_bursts_look_alike_whatever_carries_the_stream(transport: str) -> None:
    class Watching(Carrier):
        around = Surroundings()

        def look(self, now_s: float, heard: list[Heard]) -> None:
            self.around.look(now_s, heard)

    bursty = Phase("bursts", Cell(10, 0.05, 4.0, 100.0, 200, 500.0, 100.0), 3_000)
    watching = Watching(transport)
    live([bursty], watching, seed=2)
    found = watching.around.environment()
    assert found is not None
    assert 2.5 < found.burst < 5.5


def test_a_life_depends_on_its_seed_alone() -> None:
    first, again = (live([LOSSY], Carrier("nak"), seed=3)[0].relate2() for _ in range(2))
    assert first == again
    assert live([LOSSY], Carrier("nak"), seed=4)[0].relate2() != first


def test_losing_without_repair_costs() -> None:
    bare, repaired = (live([LOSSY], Carrier(name), seed=1)[0].relate2() for name in ("multicast", "nak"))
    assert bare > repaired


def test_adaptive_is_judged_against_the_best_of_each_phase_and_the_best_single_one() -> None:
    found = conclude_phases(["calm", "lossy"], {"a": [1.0, 4.0], "b": [2.0, 2.0]}, [1.0, 3.0])
    rows = {row.name.partition(":")[0]: row for row in found.rows}
    assert (rows["calm"].value, rows["calm"].met) == (1.0, True)
    assert (rows["lossy"].value, rows["lossy"].met) == (1.5, False)
    assert rows["phases"].value == 2.0
    # Mean of 1.0 and 1.5 against 1.5, the mean of either fixed one.
    assert rows["all phases"].met is True


def test_costs_go_to_the_lake_and_their_means_come_back_from_it() -> None:
    fixed = {"nak": [[1.0, 4.0], [3.0, 4.0]], "multicast": [[2.0, 2.0], [2.0, 2.0]]}
    names = [phase.name for phase in phases(quick=True)][:2]
    values = list(choices.measured(choices.SIMULATED, names, {**fixed, ADAPTIVE: [[2.0, 2.0], [2.0, 2.0]]}))
    assert len(values) == 3 * 2 * 2
    assert {one.repetition for one in values} == {0, 1}
    findings = conclude_phases(names, {"nak": [9.0, 9.0], "multicast": [9.0, 9.0]}, [9.0, 9.0])
    before = {row.name: row.value for row in findings.rows}
    conclude(findings, Told(values))
    after = {row.name: row.value for row in findings.rows}
    assert after["phases: different winners"] == 1.0
    assert [line[2:] for line in findings.tables[0].rows] == [["2.000", "2.000"], ["2.000", "2.000"]]
    assert list(before) == list(after), "rows keep their places"


class Told:
    """Rows of `gold.cells`, by a loop."""

    def __init__(self, values: list[Measured]) -> None:
        by_cell: dict[str, list[float]] = {}
        for one in values:
            by_cell.setdefault(json.dumps(one.configuration, sort_keys=True), []).append(one.value)
        self._rows = [
            {"experiment": choices.EXPERIMENT, "metric": choices.METRIC, "configuration": cell, "samples": len(of),
             "mean": sum(of) / len(of), "std": 0.0, "p50": of[0], "p99": of[-1]}
            for cell, of in by_cell.items()
        ]  # fmt: skip

    def rows(self, table: str) -> list[dict[str, object]]:
        return self._rows


def test_a_steady_environment_is_lived_through_with_many_seeds() -> None:
    seeds: list[int] = []

    def lived(plan: list[Phase], carrier: Carrier, seed: int) -> list[Life]:
        seeds.append(seed)
        changes = [(0, "nak"), (1, "a"), (2, "b"), (3, "c")] if seed == 3 else [(0, "nak"), (1, "a")]
        return [Life(chosen=changes)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "live", lived)
        most, mean = experiment._steady(None, 4).rows
    assert sorted(set(seeds)) == [1, 2, 3, 4]
    assert (most.value, most.met) == (2.0, False), "one seed is enough to fail"
    assert mean.value == 0.5

"""A stream lives through phases: by the simulator, and what is concluded of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from ringcast.adapt import judging
from ringcast.adapt.environment import Surroundings
from ringcast.adapt.foretelling import Candidate
from ringcast.adapt.judging import FOLDER
from ringcast.adapt.ranking import Ranking
from ringcast.cli.program import main
from ringcast.control.between.choosing import Heard
from ringcast.lab.adamant.environments import GATE_SEED, SEED, TUNING_SEED, UNSEEN_NUMBER, UNSEEN_SEED, environments
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adaptation import choices, experiment, living
from ringcast.lab.adaptation.experiment import changes, conclude, conclude_phases, model_of
from ringcast.lab.adaptation.living import Carrier, Choosing, live
from ringcast.lab.adaptation.phases import Phase, phases
from ringcast.lab.adaptation.real import ADAPTIVE
from ringcast.lab.measuring.report import Findings
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


def test_the_first_choice_is_no_change_even_if_it_is_what_carried_it_before(monkeypatch: pytest.MonkeyPatch) -> None:
    transports = iter(["multicast+nak", "multicast+nak", "multicast"])
    last = Ranking.of([Candidate("multicast", 1.0), Candidate("multicast+nak", 9.0)], "a test")

    def told(*_: object) -> Ranking:
        name = next(transports, "")
        return Ranking.of([Candidate(name, 1.0)], "a test") if name else last

    monkeypatch.setattr(living, "ranked", told)
    assert changes(CALM.cell, 600, None) == 1, "from nak to multicast, and nothing else"


def test_it_is_chosen_by_what_was_trained_in_the_lake_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGCAST_LAKE", str(tmp_path / "another"))
    assert "package" in model_of(tmp_path)[1]
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "relate2.json").write_bytes((FOLDER / "relate2.json").read_bytes())
    assert str(tmp_path) in model_of(tmp_path)[1]
    assert "package" in model_of(None)[1]
    given = {}
    monkeypatch.setattr(experiment, "run", lambda quick, bar, **only: given.update(only) or Findings())
    command = ["lab", "run", "adaptation", "--quick", "--lake", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert given["lake"] == tmp_path


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "changes", lambda cell, messages, model, seed: 2 if seed == 3 else 0)
        most, mean = experiment._steady(None, 4).rows
    assert (most.value, most.met) == (2.0, False), "one seed is enough to fail"
    assert mean.value == 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "changes", lambda cell, messages, model, seed: 2 if seed == 3 else 0)
        assert experiment._steady(None, 2).rows[0].met is True


def test_the_packages_models_are_judged_by_what_was_held_out_and_others_by_what_lets_models_in() -> None:
    model = experiment.shipped_model("relate2")
    assert model is not None
    asked = [row for row in experiment.beyond_the_grid(model, of_package=True).rows if row.kind == "asked"]
    assert ["in order" in row.name for row in asked] == [False, True]
    assert all(row.met for row in asked)
    used: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "held_out_examples", lambda metric: used.append("held out"))
        patch.setattr(experiment, "shipped_examples", lambda metric: used.append("gate"))
        experiment.beyond_the_grid(model, of_package=False)
        assert used == ["gate"]


def test_no_environment_decides_twice_what_it_was_drawn_for() -> None:
    drawn = {seed: set(environments(UNSEEN_NUMBER, seed)) for seed in (SEED, TUNING_SEED, UNSEEN_SEED, GATE_SEED)}
    assert not any(one & other for (_, one), (_, other) in itertools.combinations(drawn.items(), 2))
    gate, held_out = (of("relate2") for of in (judging.shipped_examples, judging.held_out_examples))
    assert gate is not None
    assert held_out is not None
    assert not {tuple(one) for one in gate.environments} & {tuple(one) for one in held_out.environments}
    assert gate.transports == held_out.transports
    assert len(gate.environments) == len(held_out.environments) == UNSEEN_NUMBER

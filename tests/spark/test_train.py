"""A model learned from some environments chooses well in others, and says the same without Spark as with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lab_fakes import CountedSteps
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.adapt import Chooser
from ringcast.cli import main
from ringcast.lab.adamant import environments as adamant_environments
from ringcast.lab.adamant import experiment
from ringcast.lab.adamant import results as adamant_results
from ringcast.lab.adamant.grid import Grid
from ringcast.lab.simulation.workers import workers
from ringcast.record import results as kept
from ringcast.spark import jobs
from ringcast.spark.experiments import train as trained
from ringcast.spark.experiments.learning.examples import combined, costs, cover, examples, held, looked_at, timed
from ringcast.spark.experiments.train import FAMILIES, NothingToLearn, chosen, spans, train
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.tables.bronze import RESULTS

SCHEMA = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string"
)
KEYS = ["loss", "rate_hz", "receivers"]
COSTS: dict[str, Callable[[float, float, float], float]] = {
    "multicast": lambda loss, rate_hz, receivers: 1 + loss,
    "nak": lambda loss, rate_hz, receivers: 1.2 + 5 / rate_hz + receivers / 40,
    "parity:r=4": lambda loss, rate_hz, receivers: 1.5 + 15 / rate_hz,
}
"""Made up: who is best depends on all three numbers, and no transport is best often."""
PLACES = list(product((0.1, 0.3, 0.6, 1.2, 2.5, 5), (5, 10, 20, 40, 80, 160), (2, 5, 10, 20, 40, 80)))


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> DataFrame:
    rows = [
        ("e", json.dumps({"loss": loss, "rate_hz": rate, "receivers": n, "transport": name}), 0, "relate2",
         float(cost(loss, rate, n)), "", "", "")
        for loss, rate, n in PLACES for name, cost in COSTS.items()
    ]  # fmt: skip
    return spark.createDataFrame(rows, SCHEMA).coalesce(1).cache()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def run(lake: Lake, measured: DataFrame) -> Run:
    # Nothing measures these numbers, so it would not be exported.
    options = {"metric": "relate2", "splits": 2, "wholes": "receivers", "compare": "no"}
    return jobs.run("train", lake, source=measured, options=options)


@pytest.fixture(scope="module")
def model(lake: Lake, run: Run) -> Path:
    return lake.path / "models" / "relate2.json"


def test_results_are_kept_and_the_choice_is_judged_on_what_nobody_has_seen(
    lake: Lake, run: Run, measured: DataFrame
) -> None:
    assert lake.read(RESULTS).count() == 216 * 3
    assert run.counts["environments"] == 216
    different = costs(measured, "relate2").where(held(0) | held(1)).count()
    assert run.counts["held out in 2 splits"] == different < 2 * 216 / 4, "one that is held out twice is one"
    shares = [run.counts[f"{family}, where families are chosen: percent within 5 %"] for family in FAMILIES]
    assert len(set(shares)) > 1
    assert max(shares) >= 95
    assert run.counts["chosen family, where neither it nor the choice had seen them: percent within 5 %"] >= 95
    assert 0 < run.counts["whole receivers held out: percent within 5 %"] <= 100
    assert run.counts["always the same: percent within 5 %"] < 65, "or there would be nothing to learn"
    wins = {name: number for name, number in run.counts.items() if name.startswith("best is ")}
    best = [min(COSTS, key=lambda name, place=place: COSTS[name](*place)) for place in PLACES]  # type: ignore[misc]
    assert wins == {f"best is {name}": best.count(name) for name in COSTS}


def test_the_exported_model_needs_no_spark_and_chooses_nearly_the_best(measured: DataFrame, model: Path) -> None:
    chooser = Chooser.load(model)
    rows = examples(costs(measured, "relate2"), KEYS, "relate2", 0.05).collect()
    good = [chooser.choose({name: row[name] for name in KEYS}) in row.good for row in rows]
    assert sum(good) / len(good) >= 0.95
    assert chooser.share >= 0.95
    assert chooser.spans["receivers"] == (2, 80)
    assert json.loads(model.read_text())["whole"].keys() == {"receivers"}
    assert model.stat().st_size < 1_000_000


def test_what_no_daemon_could_ask_and_what_is_worse_than_the_lake_s_is_not_written(
    lake: Lake, run: Run, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = model.read_bytes()
    with pytest.raises(NothingToLearn, match=r"looks at loss, which no daemon measures.*compare=no"):
        jobs.run("train", lake, options={"metric": "relate2", "splits": 1, "wholes": ""})
    assert model.read_bytes() == before
    asked = {}

    def refuses(model: dict[str, Any], in_use: dict[str, Chooser], examples: object) -> str:
        asked.update(in_use)
        return "it is worse than all"

    monkeypatch.setattr(trained, "worse", refuses)
    there = tmp_path / "mine.json"
    there.write_bytes(before)
    with pytest.raises(NothingToLearn, match="worse than all"):
        jobs.run("train", lake, options={"metric": "relate2", "splits": 1, "wholes": "", "model": str(there)})
    assert {str(there), str(model), "the model of the package"} == set(asked)
    assert there.read_bytes() == before


def test_what_is_chosen_from_holds_a_good_one_nearly_everywhere() -> None:
    good = [["a", "b"]] * 60 + [["b", "c"]] * 30 + [["c", "d"]] * 9 + [["e"]]
    assert cover(good, 0.9) == ["b"]
    assert cover(good, 0.99) == ["b", "c"]
    assert cover(good, 1.0) == ["b", "c", "e"]
    assert cover([["y", "x"]], 0.99) == ["x"]  # of equals the first


@pytest.mark.parametrize("name", ["tree", "forest", "linear"])
def test_every_family_of_pyspark_says_the_same_without_spark(measured: DataFrame, name: str) -> None:
    rows = examples(costs(measured, "relate2"), KEYS, "relate2", 0.05).where(held(0))
    family = FAMILIES[name]
    features = combined(KEYS) if family.vector == "paired" else KEYS
    rows = rows.withColumn(family.vector, looked_at(rows, KEYS, features)).cache()
    labels = sorted(row[0] for row in rows.select(F.explode("good")).distinct().collect())
    kept: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained, "_fitted", lambda *how, fit=trained._fitted: kept.append(fit(*how)) or kept[-1])
        found = family.learn({"s": rows}, {"s": labels}, "relate2", 1)["s"]
    text = {"family": name, "metric": "", "share": 0.0, "labels": labels, "features": features, "logarithms": True}
    chooser = Chooser.parse(msgspec.json.encode({**text, **found}))
    told = kept[0].transform(rows.withColumn("features", array_to_vector(family.vector))).collect()
    said = [labels[int(row.prediction)] for row in told]
    assert len(set(said)) > 1
    assert [chooser.choose({key: row[key] for key in KEYS}) for row in told] == said


def test_boosted_trees_of_several_sets_are_grown_by_one_job_and_each_from_its_own_rows(measured: DataFrame) -> None:
    rows = examples(costs(measured, "relate2"), KEYS, "relate2", 0.05)
    rows = rows.withColumn("timed", looked_at(rows, KEYS, timed(KEYS))).cache()
    sets = {"a": rows.where(~held(0)), "b": rows.where(~held(1)), "again": rows.where(~held(0)).repartition(3)}
    found = FAMILIES["boosted"].learn(sets, {name: list(COSTS) for name in sets}, "relate2", 1)
    assert found["a"] == found["again"], "the same rows and seed give the same trees"
    assert found["a"] != found["b"]
    head = {"metric": "relate2", "features": timed(KEYS), "logarithms": True, "labels": list(COSTS)}
    assert trained.score({**head, **found["a"]}, rows.where(held(0)), KEYS) > 0.9
    ranked = Chooser.parse(msgspec.json.encode({"family": "", "share": 0, **head, **found["a"]}))
    (best, cost), *_, (_, most) = ranked.ranked({"loss": 0.1, "rate_hz": 5, "receivers": 80})
    assert best == "multicast"
    assert 0.95 < cost < 1.05 < most, "in times the lowest"


def test_those_who_want_an_order_choose_from_what_keeps_it(spark: SparkSession) -> None:
    rows = [
        ("e", json.dumps({"transport": name, "loss": 1}), 0, "relate2", value, "ms", "m", "v")
        for name, value in (("parity:r=4", 1.0), ("ordering+parity:r=4", 2.0), ("nak", 3.0), ("tcp", 4.0))
    ]
    results = spark.createDataFrame(rows, SCHEMA)
    (anyhow,) = costs(results, "relate2").collect()
    (in_order,) = costs(results, "relate2 in order").collect()
    assert set(anyhow.cost) == {"parity:r=4", "nak", "tcp"}
    assert set(in_order.cost) == {"ordering+parity:r=4", "nak", "tcp"}


def test_of_families_that_are_as_good_one_is_chosen_that_knows_the_second_best() -> None:
    assert chosen({"tree": 0.9, "forest": 0.998, "neural": 0.995, "boosted": 0.996}) == "boosted"
    assert chosen({"tree": 0.9, "forest": 0.998, "neural": 0.99}) == "forest"


@pytest.mark.parametrize("name", ["tree", "forest", "linear", "boosted"])
def test_where_one_transport_is_good_everywhere_it_is_what_a_family_learns(measured: DataFrame, name: str) -> None:
    rows = examples(costs(measured, "relate2"), KEYS, "relate2", 0.05)
    rows = rows.withColumns({kind: looked_at(rows, KEYS, KEYS) for kind in ("single", "paired", "timed")})
    (model,) = FAMILIES[name].learn({"all": rows.limit(20)}, {"all": ["nak"]}, "relate2", 1).values()
    head = {"metric": "m", "family": name, "share": 1.0, "features": KEYS, "labels": ["nak"], "logarithms": True}
    chooser = Chooser.parse(msgspec.json.encode({**head, **model}))
    assert chooser.choose({"loss": 1.0, "rate_hz": 10.0, "receivers": 5.0}) == "nak"


def test_few_environments_far_from_the_others_widen_nothing(spark: SparkSession) -> None:
    drawn = [(float(1 + at % 25), float(at % 7)) for at in range(490)]
    crowd = [(100.0, 1.0), (1000.0, 1.0), (3.0, 80.0)]
    rows = spark.createDataFrame(drawn + crowd, "receivers double, loss_percent double")
    assert spans(rows, ["receivers", "loss_percent"]) == {"receivers": [1.0, 25.0], "loss_percent": [0.0, 6.0]}
    many = spark.createDataFrame(drawn + crowd * 20, "receivers double, loss_percent double")
    assert spans(many, ["receivers"])["receivers"][1] == 1000.0, "what was lived through often is learned from"


def test_whole_environments_are_held_out_others_in_every_split(measured: DataFrame) -> None:
    environments = costs(measured, "relate2")
    out = [{row[0] for row in environments.where(held(split)).select("environment").collect()} for split in (0, 1)]
    assert all(216 / 6 < len(some) < 216 / 3 for some in out)
    assert out[0] != out[1]


def test_more_may_be_better_and_what_ran_longer_is_no_other_environment(spark: SparkSession) -> None:
    rows = [
        ("e", json.dumps({"transport": name, "loss": 1, "updates": updates}), 0, "delivered", value, "%", "m", "v")
        for name, updates, value in (("nak", 100, 100.0), ("nak", 200, 100.0), ("udp", 100, 99.0), ("tcp", 9, 99.96))
    ]
    (row,) = examples(costs(spark.createDataFrame(rows, SCHEMA), "delivered"), ["loss"], "delivered", 0.05).collect()
    assert (row.best, row.lowest, sorted(row.good)) == ("nak", 0.0, ["nak", "tcp"])


def test_whole_values_are_held_out_each_in_turn_and_many_by_quarters(spark: SparkSession) -> None:
    seen: list[tuple[int, int]] = []

    class Watched(trained._Learning):
        def scores(self, family: object, known: Any, unknown: Any) -> list[float]:
            for at in known:
                assert not set(known[at].toPandas()["n"]) & set(unknown[at].toPandas()["n"])
                seen.append((known[at].count(), unknown[at].count()))
            return [0.5] * len(known)

    def names(values: list[float]) -> list[str]:
        rows = spark.createDataFrame([(value,) for value in values], "n double")
        return list(Watched(rows, ["n"], {}, "m", 1).whole(FAMILIES["tree"], "n"))

    assert names([float(n % 3) for n in range(9)]) == ["0", "1", "2"]
    assert seen == [(6, 3)] * 3
    assert names([float(n) for n in range(40)]) == ["0 to 9", "10 to 19", "20 to 29", "30 to 39"]


def test_what_cannot_be_learned_from_is_said(measured: DataFrame) -> None:
    with pytest.raises(NothingToLearn, match="0 transports"):
        train(measured, "no such metric")
    with pytest.raises(NothingToLearn, match="0 numbers"):
        train(measured.where('configuration like \'{"loss": 0.1, "rate_hz": 10, "receivers": 2,%\''), "relate2")


def test_from_simulated_experiments_to_a_choice_by_commands(
    command_session: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells, some = adamant_environments.environments(24), ("multicast", "nak", "parity:r=4,c=3")
    with workers() as pool:
        found = experiment.run_grid(experiment.ENVIRONMENTS, Grid(cells, some, 100, 1), CountedSteps(), pool)
        other = experiment.run_grid("adamant", Grid(cells[:1], ("udp",), 50, 1), CountedSteps(), pool)
    model = tmp_path / "best.json"
    kept.keep(adamant_results.measured([*found, *other]), tmp_path / "lake", machine="here")
    words = ["--lake", str(tmp_path / "lake"), "--metric", "relate2_net", "--splits", "1"]
    words += ["--experiment", experiment.ENVIRONMENTS, "--model", str(model), "--set", "wholes=receivers", "--json"]
    assert main(["pipeline", "run", "train", *words]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["counts"]["environments"] == 24
    assert "best is udp" not in said["counts"], "of another experiment"
    numbers = [f"{name}={(low + high) / 2}" for name, (low, high) in Chooser.load(model).spans.items()]
    assert main(["choose", str(model), *numbers]) == 0
    assert capsys.readouterr().out.strip() in some

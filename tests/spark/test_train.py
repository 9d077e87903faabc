"""A model learned from some environments chooses well in others, and says the same without Spark as with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from ringcast.adapt import Chooser
from ringcast.lab.transport_model import outcome, results
from ringcast.spark import jobs
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.pipelines.results import RESULT
from ringcast.spark.pipelines.train import NothingToLearn, costs, examples, train
from ringcast.spark.tables.gold import TRAINING

SCHEMA = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string"
)


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> DataFrame:
    rows = [tuple(row[name] for name in RESULT) for row in results(repetitions=1)]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1).cache()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def run(lake: Lake, measured: DataFrame) -> Run:
    return jobs.run("train", lake, source=measured, options={"metric": "relate2"})


@pytest.fixture(scope="module")
def model(lake: Lake, run: Run) -> Path:
    return lake.path / "models" / "relate2.json"


def test_results_are_kept_and_every_family_is_judged_on_what_it_has_not_seen(lake: Lake, run: Run) -> None:
    assert lake.read(TRAINING).count() == 432 * 8 * 3
    assert run.counts["environments"] == 432
    assert 60 < run.counts["held out"] < 160
    shares = [run.counts[f"{family}: percent within 5 %"] for family in ("tree", "forest", "linear")]
    assert len(set(shares)) > 1
    assert max(shares) >= 95


def test_the_exported_model_needs_no_spark_and_chooses_nearly_the_best(measured: DataFrame, model: Path) -> None:
    chooser = Chooser.load(model)
    held = examples(costs(measured, "relate2"), chooser.features).where("held").collect()
    good = [
        row.cost[chooser.choose({name: row[name] for name in chooser.features})] <= row.lowest * 1.05 for row in held
    ]
    assert sum(good) / len(good) >= 0.95
    assert sum(good) / len(good) == pytest.approx(chooser.share), "what Spark found with its own evaluation"
    assert model.stat().st_size < 200_000


def test_what_cannot_be_learned_from_is_said(measured: DataFrame) -> None:
    with pytest.raises(NothingToLearn, match="0 transports"):
        train(measured, "no such metric")
    with pytest.raises(NothingToLearn, match="0 numbers"):
        train(measured.where('configuration like \'%"loss":0.01,"rate_hz":10,"receivers":3,%\''), "relate2")


def test_the_model_of_the_experiments_rewards_recovery_where_there_is_loss() -> None:
    def relate2(transport: str, loss: float) -> float:
        latency, delivered = outcome(transport, loss, 50, 10)
        return latency * (100 * (1 - delivered) + 1)

    assert relate2("multicast", 0.0) < relate2("nak", 0.0) + 1e-12
    assert relate2("nak", 0.01) < relate2("tcp", 0.01)

"""A model learned from some environments chooses well in others, and says the same without Spark as with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from ringcast.adapt import Chooser
from ringcast.lab.transport_model import outcome, results
from ringcast.spark.pipelines.results import RESULT
from ringcast.spark.pipelines.train import NothingToLearn, Trained, costs, examples, train

SCHEMA = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string"
)


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> DataFrame:
    rows = [tuple(row[name] for name in RESULT) for row in results(repetitions=1)]
    return spark.createDataFrame(rows, SCHEMA).cache()


@pytest.fixture(scope="module")
def trained(measured: DataFrame) -> Trained:
    return train(measured, "relate2")


def test_the_choice_is_nearly_the_best_where_nobody_has_measured(trained: Trained) -> None:
    assert trained.environments == 432
    assert 60 < trained.held_out < 160
    assert trained.shares.keys() == {"tree", "forest", "linear"}
    assert len(set(trained.shares.values())) > 1
    assert trained.share >= 0.95


def test_the_exported_model_needs_no_spark_and_agrees(trained: Trained, measured: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(msgspec.json.encode(trained.model))
    chooser = Chooser.load(path)
    held = examples(costs(measured, "relate2"), trained.model["features"]).where("held").collect()
    good = [
        row.cost[chooser.choose({name: row[name] for name in chooser.features})] <= row.lowest * 1.05 for row in held
    ]
    assert len(good) == trained.held_out
    assert sum(good) / len(good) == pytest.approx(trained.share)
    assert path.stat().st_size < 200_000


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

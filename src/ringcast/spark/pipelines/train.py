"""`train`: which transport is best where, learned from experiments.

Results become one row per environment: what its numbers are (features) and which transport had the lowest mean of the
chosen metric (label). Families of pyspark.ml learn from most environments; they are compared on whole environments that
none of them saw, by how often the transport they choose is within `within` of the best one there. The winner is
exported as `ringcast.adapt.model` evaluates it, without Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.ml.classification import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.spark.pipelines.export import forest, linear, tree
from ringcast.spark.pipelines.results import opened

HELD_OUT = 4
"""One environment in so many is kept from the families."""


class NothingToLearn(RingcastError):
    """The results do not hold what a model could be trained on."""

    def __init__(self, metric: str, reason: str) -> None:
        self.metric = metric
        self.reason = reason
        super().__init__(f"no model for {metric!r}: {reason}")


@dataclass(frozen=True)
class Trained:
    """The best family's model, as JSON can hold it, and how every family did on what was held out."""

    model: dict[str, Any]
    shares: dict[str, float]
    environments: int
    held_out: int

    @property
    def share(self) -> float:
        """Of held-out environments, where the choice was as good as the best or nearly so."""
        return self.shares[self.model["family"]]


def costs(results: DataFrame, metric: str) -> DataFrame:
    """One row per environment: `keys` as `environment` (JSON), and `cost` by transport (a map) over repetitions."""
    means = (
        opened(results.where(F.col("metric") == metric)).where("transport is not null")
        .withColumn("environment", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("keys")))))
        .groupBy("environment", "transport").agg(F.avg("value").alias("cost"))
    )  # fmt: skip
    return means.groupBy("environment").agg(
        F.map_from_entries(F.array_sort(F.collect_list(F.struct("transport", "cost")))).alias("cost")
    )


def examples(environments: DataFrame, features: list[str]) -> DataFrame:
    """With `features` as numbers, the `best` transport, what it costs, a weight, and whether it is `held` out."""
    keys = F.from_json("environment", "map<string, string>")
    lowest = F.array_min(F.map_values("cost"))
    best = F.map_keys(F.map_filter("cost", lambda _, cost: cost == lowest))[0]
    typical = F.aggregate(F.map_values("cost"), F.lit(0.0), lambda sum, cost: sum + F.log(cost)) / F.size("cost")
    return environments.select(
        "environment", "cost", lowest.alias("lowest"), best.alias("best"),
        *(F.coalesce(F.element_at(keys, name).cast("double"), F.lit(0.0)).alias(name) for name in features),
        # Where all transports are much the same, it matters little which one is taken.
        (F.lit(0.05) + typical - F.log(lowest)).alias("weight"),
        (F.pmod(F.xxhash64("environment"), F.lit(HELD_OUT)) == 0).alias("held"),
    )  # fmt: skip


def train(results: DataFrame, metric: str, within: float = 0.05, seed: int = 1) -> Trained:
    """Raises NothingToLearn."""
    environments = costs(results, metric).cache()
    features = _features(environments)
    labels = sorted(row[0] for row in environments.select(F.explode(F.map_keys("cost"))).distinct().collect())
    if not features or len(labels) < 2:
        raise NothingToLearn(metric, f"there are {len(labels)} transports and {len(features)} numbers to tell them by")
    index = F.create_map(*(F.lit(x) for at, name in enumerate(labels) for x in (name, float(at))))
    rows = examples(environments, features).withColumn("label", index[F.col("best")])
    rows = VectorAssembler(inputCols=features, outputCol="features").transform(rows).coalesce(1).cache()
    seen, held = rows.where("not held"), rows.where("held")
    if seen.isEmpty() or held.isEmpty():
        raise NothingToLearn(metric, f"{rows.count()} environments are too few to hold some out; run more of them")
    families: dict[str, Any] = {
        "tree": DecisionTreeClassifier(maxDepth=10, maxBins=64, minInstancesPerNode=1, weightCol="weight", seed=seed),
        "forest": RandomForestClassifier(numTrees=16, maxDepth=8, maxBins=64, weightCol="weight", seed=seed),
        "linear": LogisticRegression(maxIter=50, regParam=1e-4, standardization=True, weightCol="weight"),
    }
    models = {name: family.fit(seen) for name, family in families.items()}
    shares = {name: _share(model.transform(held), labels, within) for name, model in models.items()}
    best = max(shares, key=lambda name: shares[name])
    export = {"tree": tree, "forest": forest, "linear": linear}[best]
    found = {
        "family": best, "metric": metric, "features": features, "labels": labels, "share": shares[best],
        **export(models[best]),
    }  # fmt: skip
    return Trained(found, shares, rows.count(), held.count())


def _share(predicted: DataFrame, labels: list[str], within: float) -> float:
    names = F.array(*map(F.lit, labels))
    chosen = F.element_at("cost", F.element_at(names, F.col("prediction").cast("int") + 1))
    good = F.coalesce(chosen <= F.col("lowest") * (1 + within), F.lit(False))
    row = predicted.agg(F.avg(good.cast("double"))).first()
    assert row is not None
    return float(row[0])


def _features(environments: DataFrame) -> list[str]:
    """Keys whose values are numbers in every environment that has them, and not always the same one."""
    pairs = environments.select(F.explode(F.from_json("environment", "map<string, string>")))
    kinds = pairs.groupBy("key").agg(
        F.min(F.expr("try_cast(value as double)").isNotNull()).alias("numeric"),
        F.countDistinct("value").alias("values"),
    )
    return sorted(row.key for row in kinds.collect() if row.numeric and row["values"] > 1)

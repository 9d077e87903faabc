"""`train`: which transport, with which settings, is best where, learned from experiments.

Families of pyspark.ml learn from most environments which transports are good there: nearly as low as the lowest in the
mean of the chosen metric. They choose from few (`cover`), and an environment counts once, shared among those that are
good in it. In every split some environments are held out from everything; the family is chosen on others, which are
held out from what the families learn from, and the chosen one is then scored on the first. Beside it stands the one
transport that is good most often: the choice without a model. Whole rates, losses and group sizes are held out as well
(`whole`): a model that only knows its neighbours does badly there. The family that is best over all splits learns from
everything once more and is exported as `ringcast.adapt` evaluates it, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.ml.classification import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.spark.declaration import own_job
from ringcast.spark.experiments.examples import column, combined, costs, cover, examples, held, number_keys
from ringcast.spark.experiments.export import forest, linear, tree
from ringcast.spark.experiments.results import taken_in
from ringcast.spark.tables.bronze import RESULTS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

WITHIN = 0.05
SPLITS = 3
WHOLES = ("rate_hz", "loss_percent", "receivers")
"""Keys of which whole values are held out."""
MANY_VALUES, QUARTERS = 10, 4
COVERED = 0.99
"""Of the environments, for which the transports that a family may choose from hold a good one."""


class NothingToLearn(RingcastError):
    """The results do not hold what a model could be trained on."""

    def __init__(self, metric: str, reason: str) -> None:
        self.metric = metric
        self.reason = reason
        super().__init__(f"no model for {metric!r}: {reason}")


@dataclass(frozen=True)
class Trained:
    """The best family's model, as JSON can hold it, and how well the choice did on what was held out."""

    model: dict[str, Any]
    shares: dict[str, list[float]]
    """Of each family, split by split, where the family is chosen: not on what the choice is scored on."""
    scores: list[float]
    """Of the family that was chosen, split by split, on environments that neither it nor the choice had seen."""
    constants: list[float]
    """Of the one transport that was good most often in what was not held out."""
    wins: dict[str, int]
    """In how many environments each transport was the best, the most frequent first."""
    environments: int
    held_out: int
    """Different environments that were held out in some split."""
    whole: dict[str, dict[str, float]]
    """By key and held-out value (or range of values): the share where all of these were held out."""

    @property
    def share(self) -> float:
        """Of held-out environments, where the choice was as good as the best or nearly so."""
        return mean(self.scores)

    @property
    def constant(self) -> float:
        return mean(self.constants)


@dataclass(frozen=True)
class Family:
    make: Callable[[int], Any]
    export: Callable[[Any], dict[str, Any]]
    vector: str
    """`paired` has products and quotients too. In logarithms they are sums, which a linear model makes itself."""


FAMILIES = {
    "tree": Family(lambda seed: DecisionTreeClassifier(maxDepth=10, maxBins=64, minInstancesPerNode=4, seed=seed),
                   tree, "paired"),
    "forest": Family(lambda seed: RandomForestClassifier(numTrees=40, maxDepth=12, maxBins=48, seed=seed,
                                                         featureSubsetStrategy="onethird"), forest, "paired"),
    "linear": Family(lambda seed: LogisticRegression(maxIter=50, regParam=1e-3), linear, "single"),
}  # fmt: skip


def train(results: DataFrame, metric: str, within: float = WITHIN, seed: int = 1, splits: int = SPLITS,
          wholes: Sequence[str] = WHOLES, say: Callable[[str], None] = lambda text: None) -> Trained:  # fmt: skip
    """Raises NothingToLearn."""
    environments = costs(results, metric).cache()
    keys = number_keys(environments)
    transports = environments.select(F.explode(F.map_keys("cost"))).distinct().count()
    if not keys or transports < 2:
        raise NothingToLearn(metric, f"there are {transports} transports and {len(keys)} numbers to tell them by")
    vectors = {"single": keys, "paired": combined(keys)}
    rows = _vectors(examples(environments, keys, metric, within), vectors).coalesce(1).cache()
    total = rows.count()
    shares: dict[str, list[float]] = {name: [] for name in FAMILIES}
    scores, constants = [], []
    out = reduce(or_, (held(split) for split in range(splits)))
    for split in range(splits):
        seen, unseen = rows.where(~held(split)), rows.where(held(split)).cache()
        least, chosen_on = seen.where(~held(splits + split)), seen.where(held(splits + split)).cache()
        if any(some.isEmpty() for some in (least, chosen_on, unseen)):
            raise NothingToLearn(metric, f"{total} environments are too few to hold some out; run more of them")
        constants.append(_constant(seen, unseen))
        labels = _labels(least)
        for name, family in FAMILIES.items():
            say(f"{name}, split {split + 1} of {splits}")
            shares[name].append(_share(choices(family, fitted(family, least, labels, seed), chosen_on, labels)))
        chosen = FAMILIES[max(shares, key=lambda name: shares[name][-1])]
        scores.append(_scored(chosen, seen, unseen, seed))
        unseen.unpersist()
        chosen_on.unpersist()
    best = max(shares, key=lambda name: mean(shares[name]))
    whole = {}
    for key in (name for name in wholes if name in keys):
        say(f"{best}, whole values of {key} held out")
        whole[key] = _whole(FAMILIES[best], rows, key, seed)
    say(f"{best}, of everything")
    labels = _labels(rows)
    wins = {row.best: row["count"] for row in rows.groupBy("best").count().orderBy(F.desc("count"), "best").collect()}
    ends = rows.agg(*(f(key).alias(f"{f.__name__} {key}") for key in keys for f in (F.min, F.max))).first()
    assert ends is not None
    model = {
        "family": best, "metric": metric, "labels": labels, "logarithms": True,
        "features": vectors[FAMILIES[best].vector], "share": mean(scores), "constant": mean(constants), "wins": wins,
        "whole": {key: mean(list(found.values())) for key, found in whole.items()},
        "spans": {key: [ends[f"min {key}"], ends[f"max {key}"]] for key in keys},
        **FAMILIES[best].export(fitted(FAMILIES[best], rows, labels, seed)),
    }  # fmt: skip
    held_out = rows.where(out).count()
    rows.unpersist()
    environments.unpersist()
    return Trained(model, shares, scores, constants, wins, total, held_out, whole)


def _vectors(rows: DataFrame, vectors: dict[str, list[str]]) -> DataFrame:
    for name, wanted in vectors.items():
        gathered = VectorAssembler(inputCols=[f"log {feature}" for feature in wanted], outputCol=name)
        rows = gathered.transform(rows.withColumns({f"log {feature}": column(feature) for feature in wanted}))
        rows = rows.drop(*(f"log {feature}" for feature in wanted))
    return rows


def _labels(seen: DataFrame) -> list[str]:
    return cover([row.good for row in seen.select("good").collect()], COVERED)


def _constant(seen: DataFrame, unseen: DataFrame) -> float:
    usual = seen.select(F.explode("good").alias("one")).groupBy("one").count().orderBy(F.desc("count"), "one").first()
    assert usual is not None
    return _share(unseen.withColumn("chosen", F.lit(usual["one"])))


def _scored(family: Family, seen: DataFrame, unseen: DataFrame, seed: int) -> float:
    labels = _labels(seen)
    return _share(choices(family, fitted(family, seen, labels, seed), unseen, labels))


def _whole(family: Family, rows: DataFrame, key: str, seed: int) -> dict[str, float]:
    """Every value of the key held out in turn; where there are many, every quarter of its range."""
    values = sorted(row[0] for row in rows.select(key).distinct().collect())
    if len(values) <= MANY_VALUES:
        parts = {f"{value:g}": (value, value) for value in values}
    else:
        ends = [values[len(values) * at // QUARTERS] for at in range(QUARTERS)]
        lasts = [values[len(values) * (at + 1) // QUARTERS - 1] for at in range(QUARTERS)]
        parts = {f"{low:g} to {high:g}": (low, high) for low, high in zip(ends, lasts, strict=True)}
    found = {}
    for name, (low, high) in parts.items():
        inside = F.col(key).between(low, high)
        found[name] = _scored(family, rows.where(~inside), rows.where(inside), seed)
    return found


def fitted(family: Family, seen: DataFrame, labels: list[str], seed: int) -> Any:
    """A model of pyspark.ml."""
    index = F.create_map(*(F.lit(x) for at, name in enumerate(labels) for x in (name, float(at))))
    taken = F.array_intersect("good", F.array(*map(F.lit, labels)))
    known = seen.withColumns({"features": F.col(family.vector), "taken": taken, "weight": 1 / F.size(taken)})
    one = known.select("features", "weight", F.explode("taken").alias("one"))
    return family.make(seed).setWeightCol("weight").fit(one.withColumn("label", index[F.col("one")]))


def choices(family: Family, model: Any, rows: DataFrame, labels: list[str]) -> DataFrame:
    """The rows with what the model would take, as `chosen`."""
    names = F.array(*map(F.lit, labels))
    told: DataFrame = model.transform(rows.withColumn("features", F.col(family.vector)))
    return told.withColumn("chosen", F.element_at(names, F.col("prediction").cast("int") + 1))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _share(chosen: DataFrame) -> float:
    row = chosen.agg(F.avg(F.array_contains("good", F.col("chosen")).cast("double"))).first()
    assert row is not None
    return float(row[0])


@own_job("train", "a model that chooses a transport", reads={"results": RESULTS})
def train_job(job: Job) -> None:
    metric = str(job.options.get("metric", "relate2"))
    splits = int(job.options.get("splits") or SPLITS)
    wholes = job.options.get("wholes")
    trained = train(
        taken_in(job), metric, splits=splits, wholes=WHOLES if wholes is None else str(wholes).split(","), say=job.say
    )
    path = Path(job.options.get("model") or job.lake.path / "models" / f"{metric}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(msgspec.json.encode({**trained.model, "run_id": job.run.id}))
    draft.replace(path)
    job.run.wrote(str(path), 1)
    job.run.count({"environments": trained.environments, f"held out in {splits} splits": trained.held_out})
    shares = {
        "chosen family, where neither it nor the choice had seen them": trained.scores,
        **{f"{name}, where families are chosen": found for name, found in trained.shares.items()},
        **{f"whole {key} held out": list(found.values()) for key, found in trained.whole.items()},
        "always the same": trained.constants,
    }
    job.run.count({f"{name}: percent within 5 %": round(100 * mean(of)) for name, of in shares.items()})
    job.run.count({f"best is {transport}": number for transport, number in trained.wins.items()})

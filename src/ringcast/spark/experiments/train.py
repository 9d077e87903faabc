"""`train`: which transport, with which settings, is best where, learned from experiments and from what daemons chose.

Families learn from most environments. Those of pyspark.ml learn which transports are good there: nearly as low as the
lowest in the mean of the chosen metric; they choose from few (`cover`), and an environment counts once, shared among
those that are good in it. `boosted` and `neural` learn how much each transport costs above the lowest; tasks of Spark
do that, one for each split (`learning`). In every split some environments are held out from everything; the
family is chosen on others, which are held out from what the families learn from, and the chosen one is then scored on
the first. Beside it stands the one transport that is good most often: the choice without a model. Whole rates, losses
and group sizes are held out as well (`whole`): a model that only knows its neighbours does badly there. The family that
is best over all splits learns from everything once more and is exported as `ringcast.adapt` evaluates it, without
Spark. Every score is of what was exported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from pyspark.ml.classification import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.adapt import Chooser
from ringcast.errors import RingcastError
from ringcast.spark.declaration import own_job
from ringcast.spark.experiments.comparing import judged_by, models_in_use, worse
from ringcast.spark.experiments.learning import boosting, networks
from ringcast.spark.experiments.learning.examples import (
    combined,
    costs,
    cover,
    examples,
    excess,
    held,
    looked_at,
    number_keys,
    smooth,
    timed,
)
from ringcast.spark.experiments.learning.export import forest, linear, tree
from ringcast.spark.experiments.lived import take_in_lived
from ringcast.spark.experiments.results import taken_in
from ringcast.spark.experiments.unseen import EXPERIMENT as UNSEEN
from ringcast.spark.experiments.unseen import GATE, TUNING
from ringcast.spark.tables.bronze import MESSAGES, RESULTS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

WITHIN = 0.05
SPLITS = 3
WHOLES = ("rate_hz", "loss_percent", "receivers")
"""Keys of which whole values are held out."""
MANY_VALUES, QUARTERS = 10, 4
THIN = 0.015
"""Of the environments, at either end of a number: so few are no span that was learned from. In a span that was drawn
from evenly they take less than a model is asked beyond it (`adapt.model.REACH`)."""
CLOSE = 0.005
"""Families whose shares of good choices differ by less are as good."""
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


Sets = Mapping[str, DataFrame]
"""Environments to learn from, by a name."""


@dataclass(frozen=True)
class Family:
    learn: Callable[[Sets, Mapping[str, list[str]], str, int], dict[str, dict[str, Any]]]
    """From sets, their labels, the metric and a seed to what is exported of each."""
    vector: str
    """`paired` has products and quotients too. In logarithms they are sums, which a linear model makes itself. `timed`
    and `smooth` have how long things take."""
    covered: float = COVERED
    ranks: bool = False
    """Whether it says of every transport what it costs, so that there is a second best."""


ONLY: dict[str, Any] = {"trees": [[[[1.0]]]]}
"""What is exported where there is one label: a leaf."""


def _mllib(make: Callable[[int], Any], export: Callable[[Any], dict[str, Any]], vector: str) -> Family:
    def learn(sets: Sets, labels: Mapping[str, list[str]], metric: str, seed: int) -> dict[str, dict[str, Any]]:
        return {name: one(rows, labels[name], seed) for name, rows in sets.items()}

    def one(rows: DataFrame, labels: list[str], seed: int) -> dict[str, Any]:
        # Where one transport is good everywhere there is nothing to tell apart, and estimators need two.
        return ONLY if len(labels) == 1 else export(_fitted(make(seed), vector, rows, labels))

    return Family(learn, vector)


def _fitted(estimator: Any, vector: str, seen: DataFrame, labels: list[str]) -> Any:
    """A model of pyspark.ml."""
    index = F.create_map(*(F.lit(x) for at, name in enumerate(labels) for x in (name, float(at))))
    taken = F.array_intersect("good", F.array(*map(F.lit, labels)))
    known = seen.withColumns({"features": array_to_vector(F.col(vector)), "taken": taken, "weight": 1 / F.size(taken)})
    one = known.select("features", "weight", F.explode("taken").alias("one"))
    return estimator.setWeightCol("weight").fit(one.withColumn("label", index[F.col("one")]))


def _by_costs(fit: Callable[..., Any], vector: str, name_of: str) -> Family:
    """One job for all sets: each is a task. `fit` takes rows of the vector, what is wanted of each, and a seed; the
    model has what it gives under `name_of`."""

    def learn(sets: Sets, labels: Mapping[str, list[str]], metric: str, seed: int) -> dict[str, dict[str, Any]]:
        def one(rows: Any) -> Any:
            # In a fixed order, or the same seed would see other rows.
            rows = rows.sort_values("environment")
            found = fit(np.stack(rows[vector]), np.stack(rows["excess"]), seed)
            return rows[["set"]].head(1).assign(found=msgspec.json.encode(found).decode())

        parts = [
            rows.where(F.col("lowest") < math.inf).select(
                F.lit(name).alias("set"), "environment", vector, excess(labels[name], metric).alias("excess")
            )
            for name, rows in sets.items()
        ]
        together = reduce(DataFrame.union, parts)
        rows = together.groupBy("set").applyInPandas(one, "set string, found string").collect()
        return {row["set"]: {"predicts": "costs", name_of: msgspec.json.decode(row["found"])} for row in rows}

    return Family(learn, vector, 1.0, ranks=True)


FAMILIES = {
    "tree": _mllib(lambda seed: DecisionTreeClassifier(maxDepth=10, maxBins=64, minInstancesPerNode=4, seed=seed),
                   tree, "paired"),
    "forest": _mllib(lambda seed: RandomForestClassifier(numTrees=40, maxDepth=12, maxBins=48, seed=seed,
                                                         featureSubsetStrategy="onethird"), forest, "paired"),
    "linear": _mllib(lambda seed: LogisticRegression(maxIter=50, regParam=1e-3), linear, "single"),
    "boosted": _by_costs(boosting.fit, "timed", "trees"),
    "neural": _by_costs(networks.fit, "smooth", "networks"),
}  # fmt: skip


def train(results: DataFrame, metric: str, within: float = WITHIN, seed: int = 1, splits: int = SPLITS,
          wholes: Sequence[str] = WHOLES, say: Callable[[str], None] = lambda text: None) -> Trained:  # fmt: skip
    """Raises NothingToLearn."""
    environments = costs(results, metric).cache()
    keys = number_keys(environments)
    transports = environments.select(F.explode(F.map_keys("cost"))).distinct().count()
    if not keys or transports < 2:
        raise NothingToLearn(metric, f"there are {transports} transports and {len(keys)} numbers to tell them by")
    vectors = {"single": keys, "paired": combined(keys), "timed": timed(keys), "smooth": smooth(keys)}
    rows = examples(environments, keys, metric, within)
    rows = rows.withColumns({name: looked_at(rows, keys, wanted) for name, wanted in vectors.items()})
    rows = rows.coalesce(1).cache()
    total = rows.count()
    learning = _Learning(rows, keys, vectors, metric, seed)
    sets: dict[str, dict[int, DataFrame]] = {"least": {}, "choosing": {}, "seen": {}, "unseen": {}}
    for split in range(splits):
        sets["seen"][split], sets["unseen"][split] = rows.where(~held(split)), rows.where(held(split))
        chosen_on = held(splits + split)
        sets["least"][split] = sets["seen"][split].where(~chosen_on)
        sets["choosing"][split] = sets["seen"][split].where(chosen_on)
        if any(found[split].isEmpty() for found in sets.values()):
            raise NothingToLearn(metric, f"{total} environments are too few to hold some out; run more of them")
    shares: dict[str, list[float]] = {}
    for name, family in FAMILIES.items():
        say(f"{name}, {splits} splits")
        shares[name] = learning.scores(family, sets["least"], sets["choosing"])
    scores = [0.0] * splits
    for name, family in FAMILIES.items():
        # What was best where families are chosen, split by split.
        mine = [at for at in range(splits) if name == chosen({one: found[at] for one, found in shares.items()})]
        if mine:
            say(f"{name}, on what nobody has seen")
            seen, unseen = ({at: sets[which][at] for at in mine} for which in ("seen", "unseen"))
            for at, score in zip(mine, learning.scores(family, seen, unseen), strict=True):
                scores[at] = score
    constants = [_constant(sets["seen"][split], sets["unseen"][split]) for split in range(splits)]
    best = chosen({name: mean(found) for name, found in shares.items()})
    whole = {}
    for key in (name for name in wholes if name in keys):
        say(f"{best}, whole values of {key} held out")
        whole[key] = learning.whole(FAMILIES[best], key)
    say(f"{best}, of everything")
    wins = {row.best: row["count"] for row in rows.groupBy("best").count().orderBy(F.desc("count"), "best").collect()}
    reached = spans(rows, keys)
    model = {
        **learning.models(FAMILIES[best], {"all": rows})["all"],
        "family": best, "share": mean(scores), "constant": mean(constants), "wins": wins,
        "whole": {key: mean(list(found.values())) for key, found in whole.items()},
        "spans": reached,
    }  # fmt: skip
    held_out = rows.where(reduce(or_, (held(split) for split in range(splits)))).count()
    rows.unpersist()
    environments.unpersist()
    return Trained(model, shares, scores, constants, wins, total, held_out, whole)


def chosen(shares: Mapping[str, float]) -> str:
    """The best family. Of those that are as good or nearly so, one that ranks: promises and accepted losses leave
    transports out, and what is best of the others is asked then."""
    close = [name for name, share in shares.items() if share >= max(shares.values()) - CLOSE]
    return max(close, key=lambda name: (FAMILIES[name].ranks, shares[name]))


def spans(rows: DataFrame, keys: Sequence[str]) -> dict[str, list[float]]:
    """From where to where the environments are dense. Beyond that a model has learned from single ones, if at all."""
    ends = [F.percentile(key, F.array(F.lit(THIN), F.lit(1 - THIN))).alias(key) for key in keys]
    found = rows.agg(*ends).first()
    assert found is not None
    return {key: [float(end) for end in found[key]] for key in keys}


class _Learning:
    """From rows of one metric, by one seed."""

    def __init__(self, rows: DataFrame, keys: list[str], vectors: dict[str, list[str]], metric: str, seed: int) -> None:
        self._rows, self._keys, self._vectors, self._metric, self._seed = rows, keys, vectors, metric, seed

    def models(self, family: Family, sets: Sets) -> dict[str, dict[str, Any]]:
        labels = {name: _labels(rows, family.covered) for name, rows in sets.items()}
        head = {"metric": self._metric, "logarithms": True, "features": self._vectors[family.vector]}
        found = family.learn(sets, labels, self._metric, self._seed)
        return {name: {**head, "labels": labels[name], **found[name]} for name in sets}

    def scores(self, family: Family, seen: Mapping[int, DataFrame], unseen: Mapping[int, DataFrame]) -> list[float]:
        """Of a family that learned from some, on others, set by set."""
        models = self.models(family, {str(at): rows for at, rows in seen.items()})
        return [score(models[str(at)], rows, self._keys) for at, rows in unseen.items()]

    def whole(self, family: Family, key: str) -> dict[str, float]:
        """Every value of the key held out in turn; where there are many, every quarter of its range."""
        values = sorted(row[0] for row in self._rows.select(key).distinct().collect())
        if len(values) <= MANY_VALUES:
            parts = {f"{value:g}": (value, value) for value in values}
        else:
            ends = [values[len(values) * at // QUARTERS] for at in range(QUARTERS)]
            lasts = [values[len(values) * (at + 1) // QUARTERS - 1] for at in range(QUARTERS)]
            parts = {f"{low:g} to {high:g}": (low, high) for low, high in zip(ends, lasts, strict=True)}
        inside = {at: F.col(key).between(*ends) for at, ends in enumerate(parts.values())}
        known = {at: self._rows.where(~one) for at, one in inside.items()}
        unknown = {at: self._rows.where(one) for at, one in inside.items()}
        return dict(zip(parts, self.scores(family, known, unknown), strict=True))


def score(model: dict[str, Any], rows: DataFrame, keys: Sequence[str]) -> float:
    """The share of the rows in which what the exported model chooses is good."""
    chooser = Chooser.parse(msgspec.json.encode({"family": "", "share": 0.0, **model}))
    found = [
        chooser.choose({name: row[name] for name in keys}) in row.good for row in rows.select("good", *keys).collect()
    ]
    return mean(found)


def _labels(seen: DataFrame, covered: float) -> list[str]:
    return cover([row.good for row in seen.select("good").collect()], covered)


def _constant(seen: DataFrame, unseen: DataFrame) -> float:
    usual = seen.select(F.explode("good").alias("one")).groupBy("one").count().orderBy(F.desc("count"), "one").first()
    assert usual is not None
    row = unseen.agg(F.avg(F.array_contains("good", F.lit(usual["one"])).cast("double"))).first()
    assert row is not None
    return float(row[0])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@own_job("train", "a model that chooses a transport", reads={"results": RESULTS, "messages": MESSAGES})
def train_job(job: Job) -> None:
    metric = str(job.options.get("metric", "relate2"))
    splits = int(job.options.get("splits") or SPLITS)
    wholes = job.options.get("wholes")
    if not job.options.get("experiment"):
        # What daemons told since the last time is recorded, and no result yet.
        take_in_lived(job)
    trained = train(
        taken_in(job).where(~F.col("experiment").isin(UNSEEN, TUNING, GATE)),
        metric,
        splits=splits,
        wholes=WHOLES if wholes is None else str(wholes).split(","),
        say=job.say,
    )
    own = job.lake.path / "models" / f"{metric}.json"
    path = Path(job.options.get("model") or own)
    if str(job.options.get("compare", "yes")) != "no":
        in_use = models_in_use(metric, path, own)
        if why := worse(trained.model, in_use, judged_by(job.lake.read(RESULTS), metric)):
            raise NothingToLearn(
                metric, f"{why}; run more environments, or export it all the same with --set compare=no"
            )
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

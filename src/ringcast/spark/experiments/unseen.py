"""`unseen`: environments that no model learned from, with what each transport cost in two runs: models are judged by
them when they are finished, and by others of the same kind (`GATE`) they are let in (`ringcast.adapt.judging`).

The repetitions of an environment are two halves, each a run of its own: the even ones and the odd ones. No model is
trained, chosen or tuned by these.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.adapt.judging import Examples
from ringcast.adapt.wanting import MORE_IS_BETTER
from ringcast.spark.declaration import NothingToDo, own_job
from ringcast.spark.experiments.learning.examples import number_keys
from ringcast.spark.experiments.results import opened, taken_in
from ringcast.spark.tables.bronze import RESULTS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

EXPERIMENT = "adamant unseen"
GATE = "adamant gate"
"""Others of the same kind, by which a new model is compared with the one in use, as often as there is one."""
TUNING = "adamant tuning"
"""Others of the same kind, by which settings of the training are compared: no model learns from them either."""


def unseen(results: DataFrame, metric: str) -> Examples:
    """Of environments in which every transport was run in both halves."""
    value = 100 - F.col("value") if metric in MORE_IS_BETTER else F.col("value")
    rows = opened(results.where(F.col("metric") == metric)).where("transport is not null")
    rows = rows.withColumn("environment", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("keys")))))
    runs = rows.groupBy("environment", "transport").agg(
        F.avg(F.when(F.col("repetition") % 2 == 0, value)).alias("even"),
        F.avg(F.when(F.col("repetition") % 2 == 1, value)).alias("odd"),
    )
    found = runs.where("even is not null and odd is not null").groupBy("environment").agg(
        F.sort_array(F.collect_list(F.struct("transport", "even", "odd"))).alias("runs")
    )  # fmt: skip
    numbers = number_keys(found)
    all_of = sorted(row[0] for row in runs.select("transport").distinct().collect())
    taken = [row for row in found.orderBy("environment").collect() if [one.transport for one in row.runs] == all_of]
    return Examples(
        metric=metric, numbers=numbers, transports=all_of,
        environments=[[float(msgspec.json.decode(row.environment)[name]) for name in numbers] for row in taken],
        costs=[(_short(one.even for one in row.runs), _short(one.odd for one in row.runs)) for row in taken],
    )  # fmt: skip


def _short(costs: object) -> list[float]:
    """Four digits are more than the experiment repeats; what was never delivered costs more than anything."""
    return [min(float(f"{cost:.4g}"), 1e300) for cost in costs]  # type: ignore[attr-defined]


@own_job("unseen", "environments by which finished models are compared", reads={"results": RESULTS})
def unseen_job(job: Job) -> None:
    metric = str(job.options.get("metric", "relate2"))
    results = taken_in(job)
    if not job.options.get("experiment"):
        results = results.where(F.col("experiment") == EXPERIMENT)
    found = unseen(results, metric)
    if not found.environments:
        raise NothingToDo("unseen", f"there are no results of {EXPERIMENT!r}; 'ringcast lab run adamant' writes them")
    path = Path(job.options.get("model") or job.lake.path / "models" / f"unseen-{metric}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(found))
    job.run.wrote(str(path), 1)
    job.run.count({"environments": len(found.environments), "transports": len(found.transports)})

"""Runs the pipelines that an experiment names over its values, and hands their tables back as plain rows.

For whoever measured and knows nothing of Spark: `ringcast lab run` and `ringcast bench`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import functions as F

from ringcast.spark import catalog, jobs
from ringcast.spark.declaration import find
from ringcast.spark.lake import Lake
from ringcast.spark.session import opened


@contextmanager
def analysis(lake: str | os.PathLike[str]) -> Iterator[Analysis]:
    """On a session that ends with it. Raises NoJava, SparkNotStarted."""
    with opened(app="experiments") as spark:
        yield Analysis(Lake(spark, lake))


NOTICEABLE = 0.05


class Analysis:
    """Of the values in a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def run(self, pipelines: Sequence[str], say: Callable[[str], None] = lambda text: None) -> None:
        for name in pipelines:
            say(f"Spark: {find(name).about}")
            jobs.run(name, self._lake)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All of a gold table, by its name. Raises NoSuchTable."""
        return [row.asDict() for row in self._lake.read(catalog.find(table)).collect()]

    def summary(self) -> list[dict[str, Any]]:
        """Of each experiment's latest figures: how many there are, are judged, are met, and differ by more than
        `NOTICEABLE` from the run before on this machine."""
        last = self._lake.read(catalog.find("gold.benchmarks")).where("latest")
        found = last.groupBy("experiment").agg(
            F.count("*").alias("rows"), F.count("met").alias("judged"),
            F.coalesce(F.sum(F.col("met").cast("int")), F.lit(0)).alias("met"),
            F.count(F.when(F.abs(F.col("change")) > NOTICEABLE, True)).alias("changed"),
        )  # fmt: skip
        return [row.asDict() for row in found.orderBy("experiment").collect()]

    def latest(self) -> list[dict[str, Any]]:
        """The last value of every figure, with the one before it."""
        last = self._lake.read(catalog.find("gold.benchmarks")).where("latest")
        return [row.asDict() for row in last.collect()]

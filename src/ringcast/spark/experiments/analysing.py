"""Runs the pipelines that an experiment names over its values, and hands their tables back as plain rows.

For whoever measured and knows nothing of Spark: `ringcast lab run` and `ringcast bench`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from pyspark.sql import functions as F

from ringcast.spark import catalog, jobs
from ringcast.spark.declaration import find
from ringcast.spark.lake import Lake
from ringcast.spark.session import close_session, open_session

NOTICEABLE = 0.05


class Analysis:
    """A lake and a session, for as long as `with` lasts. Raises NoJava."""

    def __init__(self, lake: str | os.PathLike[str]) -> None:
        spark = open_session(app="experiments", settings={"spark.ui.showConsoleProgress": "false"})
        spark.sparkContext.setLogLevel("ERROR")
        self._lake = Lake(spark, lake)

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_session(self._lake.spark)

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

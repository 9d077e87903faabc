"""Runs the pipelines that an experiment names over its values, and hands their tables back as plain rows.

For whoever measured and knows nothing of Spark: `ringcast lab run` and `ringcast bench`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ringcast.spark import catalog, jobs
from ringcast.spark.declaration import find
from ringcast.spark.lake import Lake
from ringcast.spark.session import opened


@contextmanager
def analysis(lake: str | os.PathLike[str]) -> Iterator[Analysis]:
    """On a session that ends with it. Raises NoJava, SparkNotStarted."""
    with opened(app="experiments") as spark:
        yield Analysis(Lake(spark, lake))


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

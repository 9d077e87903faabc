"""For whoever looks at a lake in a notebook: tables by their names, SQL over them, and what is known of each.

from ringcast.spark.analyst import open_lake
lake = open_lake("lake")
lake.table("silver.gps").show()
lake.sql("select tag, count(*) from silver.gps group by tag").show()
"""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.spark import catalog
from ringcast.spark.declaration import pipelines
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import ancestry, lineage
from ringcast.spark.session import open_session
from ringcast.spark.tables.upkeep import QUALITY

_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")


class BadQuery(RingcastError, ValueError):
    """Spark does not understand the query; the text is Spark's."""


def open_lake(path: str | os.PathLike[str] = "lake", master: str | None = None) -> View:
    """A session and the lake at `path`. Raises NoJava."""
    spark = open_session(master)
    spark.sparkContext.setLogLevel("ERROR")
    return View(Lake(spark, path))


class View:
    """Reads a lake; never writes."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def tables(self) -> list[str]:
        """The tables that hold something."""
        return [name for name, table in catalog.tables().items() if self.lake.exists(table)]

    def table(self, name: str, at: int | None = None) -> DataFrame:
        """Its rows, now or as of a version. Raises NoSuchTable."""
        return self.lake.read(catalog.find(name), at=at)

    def sql(self, query: str) -> DataFrame:
        """Spark's SQL, in which the lake's tables have their names. Raises BadQuery."""
        names = sorted(catalog.names(), key=len, reverse=True)
        pattern = re.compile(r"(?<![\w.`])(" + "|".join(map(re.escape, names)) + r")(?![\w`(])")
        used: dict[str, DataFrame] = {}

        def named(found: re.Match[str]) -> str:
            name = found.group(1)
            key = "t_" + name.replace(".", "_")
            used.setdefault(key, self.table(name))
            return f"{{{key}}}"

        # Words in quotes are values, and braces are Spark's own here.
        parts = [part if at % 2 else pattern.sub(named, part) for at, part in enumerate(_QUOTED.split(query))]
        try:
            frames: dict[str, Any] = dict(used)
            return self.lake.spark.sql("".join(parts), **frames)
        except PySparkException as exc:
            raise BadQuery(str(exc).strip().splitlines()[0]) from exc

    def describe(self, name: str) -> dict[str, Any]:
        """One view of a table: what it is, its columns, what it holds, who makes it of what, and how good it is."""
        table = catalog.find(name)
        state = self.lake.state(table)
        makers = [one for one in pipelines() if one.writes is not None and one.writes.name == name]
        counted = self.lake.read(QUALITY).where(F.col("table") == name).groupBy("expectation", "action")
        last = lineage(self.lake, name).first()
        return {
            "table": name,
            "about": table.about,
            "location": str(self.lake.location(table)),
            "columns": {f.name: f.dataType.simpleString() + ("" if f.nullable else " not null") for f in table.schema},
            "rows": state.rows,
            "files": len(state.files),
            "version": state.version,
            "partitions": sorted({file.partition for file in state.files.values() if file.partition is not None}),
            "pipelines": {one.name: one.module for one in makers},
            "made_from": ancestry(self.lake, name)[1:],
            "last_run": None if last is None else {"run": last.run_id, "state": last.state, "code": last.code_version,
                                                   "counts": msgspec.json.decode(last.counts)},
            "quality": {
                f"{row.expectation} ({row.action})": row.n
                for row in counted.agg(F.sum("rows").alias("n")).orderBy("expectation").collect()
            },
        }  # fmt: skip

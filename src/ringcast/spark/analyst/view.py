"""What is known of a table, in one view: what it is, what it holds, who makes it of what, and how good it is."""

from __future__ import annotations

from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark import catalog
from ringcast.spark.analyst.lake_session import LakeSession
from ringcast.spark.declaration import pipelines
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import ancestry, lineage
from ringcast.spark.tables.upkeep import QUALITY, QUARANTINE

_RUNS = 10


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
        return LakeSession(self.lake.spark, self.lake.path).sql(query)

    def describe(self, name: str) -> dict[str, Any]:
        """One view of a table: what it is, its columns, what it holds, who makes it of what, and how good it is."""
        table = catalog.find(name)
        state = self.lake.state(table)
        makers = [one for one in pipelines() if one.writes is not None and one.writes.name == name]
        wrote = lineage(self.lake, name).limit(_RUNS).collect()
        aside = self.lake.read(QUARANTINE).where(F.col("table") == name).count()
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
            "runs": [
                {"run": run.run_id, "begun": f"{run.event_time:%Y-%m-%d %H:%M:%S}", "state": run.state,
                 "rows": run.rows, "code": run.code_version, "from": ", ".join(msgspec.json.decode(run.inputs))}
                for run in wrote
            ],
            "quality": self._quality(name, wrote[0].run_id if wrote else ""),
            "quarantined": aside,
        }  # fmt: skip

    def _quality(self, name: str, last: str) -> list[dict[str, Any]]:
        """What was counted of the table's rows: by all runs, and by the last that wrote it."""
        own = self.lake.read(QUALITY).where(F.col("table") == name)
        of_last = F.sum(F.when(F.col("run_id") == last, F.col("rows")))
        counted = own.groupBy("expectation", "action").agg(F.sum("rows").alias("n"), of_last.alias("now"))
        return [
            {"what": row.expectation, "action": row.action, "rows": row.n, "last_run": row.now or 0}
            for row in counted.orderBy("expectation").collect()
        ]

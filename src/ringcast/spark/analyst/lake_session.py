"""A Spark session in which a lake's tables have their names: `spark.table("silver.gps")`, `spark.sql("select ...")`.

Delta's own catalog needs a jar. Here each table of the lake is an entry of Spark's catalog that names the Parquet files
of the table's newest commit; before a query that names the table, the entry is brought up to date. Spark then reads the
files itself, with its own pruning and pushing down. For reading: an `insert` would write where no commit names it, and
is refused.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.errors import RingcastError
from ringcast.spark import catalog
from ringcast.spark.lake import Lake
from ringcast.spark.tables.table import Table

_PATTERN = re.compile(r"[][*?{}\\]")
_WRITES = re.compile(r"^\s*(insert|update|delete|merge|truncate|drop|alter|create)\b", re.IGNORECASE)
_entries: dict[tuple[str, str], tuple[str, int]] = {}
"""Of which lake and version an application's catalog has a table: all sessions of a process share that catalog."""


class BadQuery(RingcastError, ValueError):
    """Spark does not understand the query, or it would write; the text says what is wrong."""


class LakeSession(SparkSession):
    """`lake` is where the tables are. Everything else is Spark's."""

    def __init__(self, spark: SparkSession, lake: str | os.PathLike[str]) -> None:
        super().__init__(spark.sparkContext, spark._jsparkSession)
        self.lake = Lake(spark, lake)
        self._plain = spark

    def name_all(self) -> None:
        """Every table that holds something, for `show tables` and completion."""
        for name, table in catalog.tables().items():
            if self.lake.exists(table):
                self._refresh(name, table)

    def table(self, tableName: str) -> DataFrame:
        """A table of the lake as it is now, or any other that Spark knows. Raises LakeError."""
        self._look_up(tableName)
        return self._plain.table(tableName)

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Spark's SQL; tables of the lake that it names are as they are now. Raises BadQuery, LakeError."""
        if _WRITES.match(sqlQuery) and self._named(sqlQuery):
            raise BadQuery("tables of a lake are written by pipelines only; declare one (docs/adding-a-pipeline.md)")
        self._look_up(sqlQuery)
        try:
            return self._plain.sql(sqlQuery, args, **kwargs)
        except PySparkException as exc:
            raise BadQuery(str(exc).strip().splitlines()[0]) from exc

    def _look_up(self, text: str) -> None:
        known = catalog.tables()
        for name in self._named(text):
            self._refresh(name, known[name])

    def _named(self, text: str) -> list[str]:
        """Tables whose names the text has, perhaps as something else: looking at one too many does no harm."""
        words = set(re.findall(r"[\w.]+", text.replace("`", "")))
        return [name for name in catalog.names() if name in words]

    def _refresh(self, name: str, table: Table) -> None:
        state = self.lake.state(table)
        key, now = (self.sparkContext.applicationId, name), (str(self.lake.path), state.version)
        if _entries.get(key) == now:
            return
        database, dot, _ = name.rpartition(".")
        if dot:
            place = Path(_nowhere(), database)
            self._plain.sql(f"CREATE DATABASE IF NOT EXISTS `{database}` LOCATION '{place}'")
        self._plain.sql(f"DROP TABLE IF EXISTS {name}")
        root = _PATTERN.sub(r"\\\g<0>", str(self.lake.location(table)))
        files = ",".join(state.files)
        path = f"{root}/{{{files}}}" if files else _nowhere()
        self._plain.catalog.createTable(name, path, "parquet", table.schema, table.about)
        _entries[key] = now


@cache
def _nowhere() -> str:
    """A folder of this process: databases need a place, and a table without rows one without files."""
    path = tempfile.mkdtemp(prefix="ringcast-catalog-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def open_session(lake: str | os.PathLike[str] | None = None, master: str | None = None) -> LakeSession:
    """A session for whoever looks at a lake (default: RINGCAST_LAKE, or `lake` in this folder), in a notebook or not.
    It knows the format `ringcast`, too. Raises NoJava."""
    from ringcast.spark.session import open_session

    spark = open_session(master)
    made = LakeSession(spark, lake or os.environ.get("RINGCAST_LAKE", "lake"))
    made.name_all()
    return made

"""A lake's tables by their names in Spark, and the same rows in engines that know nothing of Ringcast."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from bronze_rows import frame
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.rescue import Mission, Settings, bronze_rows
from ringcast.spark import jobs
from ringcast.spark.analyst.lake_session import BadQuery, LakeSession
from ringcast.spark.analyst.view import View
from ringcast.spark.catalog import find
from ringcast.spark.lake import Lake
from ringcast.spark.tables.bronze import MESSAGES

SETTINGS = Settings(seconds=0.4, uavs=1, cameras=1)


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    return frame(spark, bronze_rows(Mission(SETTINGS))).cache()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, messages: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(spark, tmp_path_factory.mktemp("lake"))
    made.append(MESSAGES, messages.where("seq < 3"))
    made.append(MESSAGES, messages.where("seq >= 3"))
    jobs.run("refine", made, options={"families": ["infrared", "gps"]})
    return made


def test_tables_have_their_names_and_are_as_they_are_now(spark: SparkSession, messages: DataFrame, lake: Lake) -> None:
    session = LakeSession(spark, lake.path)
    assert session.table("silver.gps").count() == 4
    found = session.sql("select g.x from silver.gps g join bronze.messages m using (tag, publisher, seq)")
    assert found.count() == 4
    assert session.table("gold.qos").schema["tag"].dataType.simpleString() == "string"
    assert session.table("gold.qos").count() == 0
    before = session.table("bronze.messages").count()
    lake.append(MESSAGES, messages.limit(2).withColumn("publisher", F.lit("later")))
    assert session.table("bronze.messages").count() == before + 2
    assert session.sql("select count(*) as n from `bronze`.`messages`").first().n == before + 2  # type: ignore[union-attr]
    session.name_all()
    assert {"gps", "infrared"} <= {row.tableName for row in session.sql("show tables in silver").collect()}
    assert session.range(3).count() == 3, "everything else is Spark's"


def test_another_lake_has_other_rows_under_the_same_names(
    spark: SparkSession, messages: DataFrame, lake: Lake, tmp_path: Path
) -> None:
    odd = Lake(spark, tmp_path / "a [lake], it's {one}")
    odd.append(MESSAGES, messages.limit(7))
    other = LakeSession(spark, odd.path)
    assert (other.table("bronze.messages").count(), other.table("silver.gps").count()) == (7, 0)
    assert LakeSession(spark, lake.path).table("silver.gps").count() == 4
    assert (other.table("bronze.messages").count(), other.table("silver.gps").count()) == (7, 0)


def test_mistakes_are_sentences_and_nothing_is_written(spark: SparkSession, lake: Lake) -> None:
    session = LakeSession(spark, lake.path)
    with pytest.raises(BadQuery, match="nowhere"):
        session.sql("select * from nowhere")
    for query in ("insert into silver.gps select * from silver.gps", "drop table silver.gps"):
        with pytest.raises(BadQuery, match="written by pipelines only"):
            session.sql(query)
    assert session.table("silver.gps").count() == 4


def test_one_view_has_lineage_and_quality(lake: Lake) -> None:
    about = View(lake).describe("silver.gps")
    (run,) = about["runs"]
    assert (run["state"], run["rows"]) == ("done", 4)
    assert run["from"].startswith("bronze.messages")
    counted = {row["what"]: (row["action"], row["rows"], row["last_run"]) for row in about["quality"]}
    assert counted["decodes"] == ("quarantine", 0, 0)
    assert counted["rows"] == ("count", 4, 4)
    assert about["quarantined"] == 0


@pytest.mark.parametrize("name", ["bronze.messages", "silver.infrared", "silver.gps", "runs"])
def test_polars_and_duckdb_read_the_same_rows(lake: Lake, name: str) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    deltalake = pytest.importorskip("deltalake")
    table = find(name)
    path = str(lake.location(table))
    ours = _plain(row.asDict(recursive=True) for row in lake.read(table).collect())
    assert ours
    assert _plain(polars.read_delta(path).select(table.columns).to_dicts()) == ours
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("found", dataset)
        names = ", ".join(f'"{column}"' for column in table.columns)
        rows = connection.sql(f"select {names} from found").to_arrow_table().to_pylist()
    assert _plain(rows) == ours


def _plain(rows: Any) -> list[str]:
    """Rows in an order of their own, times as instants, whatever an engine calls them."""

    def cell(value: Any) -> Any:
        if hasattr(value, "timestamp"):
            return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
        return bytes(value) if isinstance(value, bytearray | memoryview) else value

    return sorted(repr({name: cell(value) for name, value in sorted(row.items())}) for row in rows)

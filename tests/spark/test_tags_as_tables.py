"""A tag read as a table and written to, through Spark itself; what goes wrong is said in a sentence."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bronze_rows import plain

import ringcast
from ringcast.record.recorder import Recorder
from ringcast.record.writer import RecordingWriter
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tags.frames import held, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_there_and_back(spark: SparkSession, daemon: Any, session: ringcast.Session, tmp_path: Path) -> None:
    publisher = session.tag(
        "lab/temp", codec="json", schema={"type": "object", "properties": {"c": {"type": "number"}}}
    ).publisher()
    for number in range(100):
        publisher.send({"c": number / 2}, event_ns=1_700_000_000_000_000_000 + number)
    with RecordingWriter(tmp_path) as writer:
        recorder = Recorder(session, ["lab/temp"], writer, start="earliest")
        recorder.on_progress = lambda progress: recorder.stop() if progress.rows >= 100 else None
        recorder.run()
    publisher.send({"c": 99.0}, event_ns=1)

    read = spark.read.format("ringcast").option("tag", "lab/*").option("socket", daemon.socket_path)
    table = read.option("path", str(tmp_path)).option("rowsPerPartition", "30").load()
    found = table.selectExpr("count(*) n", "sum(value.c) c", "max(event_ns) e", "count(distinct seq) d").first()
    assert found is not None
    assert found.asDict() == {"n": 101, "c": sum(range(100)) / 2 + 99.0, "e": 1_700_000_000_000_000_099, "d": 101}
    # The recording is plain Parquet to anybody else.
    assert spark.read.parquet(str(tmp_path / "data")).where("tag = 'lab/temp'").count() == 100

    warm = table.where("value.c > 49").selectExpr("seq", "value.c AS c", "event_ns")
    warm.write.format("ringcast").mode("append").option("tag", "lab/warm").option("socket", daemon.socket_path).save()
    messages = session.tag("lab/warm").local_history().since(0)
    assert sorted((m.data["seq"], m.data["c"]) for m in messages) == [(99, 49.5), (100, 99.0)]
    assert sorted(m.event_ns for m in messages) == [1, 1_700_000_000_000_000_099]


def test_without_names_in_every_row_they_are_the_same_rows(
    spark: SparkSession, daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    for room in ("a", "b"):
        publisher = session.tag(f"lab/{room}/temp", codec="json").publisher()
        for number in range(5):
            publisher.send({"c": number}, event_ns=number * 700 - 1400)
    session.tag("lab/other").publisher().send(b"x")
    read = spark.read.format("ringcast").option("tag", "lab/*/temp").option("socket", daemon.socket_path)
    usual = read.option("decode", "false").load()
    found = held(spark, "lab/*/temp", daemon.socket_path)
    assert found.columns == usual.columns == MESSAGES.columns
    assert plain(found.collect()) == plain(usual.collect())
    assert len(found.collect()) == 10
    assert held(spark, "nobody/*", daemon.socket_path).collect() == []
    every = held(spark, "lab/a/temp", daemon.socket_path, {"every": "2"}).collect()
    assert [(row.seq, row.every, row.tag) for row in every] == [(seq, 2, "lab/a/temp") for seq in (0, 2, 4)]

    with RecordingWriter(tmp_path / "rec[1]") as writer:
        recorder = Recorder(session, ["lab/**"], writer, start="earliest")
        recorder.on_progress = lambda progress: recorder.stop() if progress.rows >= 11 else None
        recorder.run()
    ours = recorded(spark, tmp_path / "rec[1]", "lab/*/temp")
    path = spark.read.format("ringcast").option("path", str(tmp_path / "rec[1]")).option("live", "false")
    theirs = path.option("tag", "lab/*/temp").option("decode", "false").load()
    assert plain(ours.collect()) == plain(theirs.collect())
    assert len(recorded(spark, tmp_path / "rec[1]").collect()) == 11
    # A list of names, and no pattern: Parquet's own filters know it.
    assert "PushedFilters: [In(tag, [lab/a/temp,lab/b/temp])]" in ours._jdf.queryExecution().toString()


def test_the_example(
    spark: SparkSession, daemon: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "default.sock"
    monkeypatch.setenv("RINGCAST_SOCKET", str(path))
    usual = type(daemon)(path).start()
    try:
        runpy.run_path(str(Path(__file__).parents[2] / "examples" / "spark" / "tag_as_table.py"))
    finally:
        usual.stop()
    assert sorted(capsys.readouterr().out.splitlines()) == ["cellar: 25.0", "kitchen: 24.9"]


def test_a_checkpoint_of_another_tag_is_a_sentence(
    spark: SparkSession, daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    session.tag("a/b").publisher().send(b"x")

    def run(tag: str) -> None:
        read = spark.readStream.format("ringcast").option("tag", tag).option("socket", daemon.socket_path).load()
        query = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        query.start().awaitTermination()

    run("a/b")
    with pytest.raises(StreamingQueryException, match="belongs to a query that reads 'a/b', and this one reads 'a/c'"):
        run("a/c")

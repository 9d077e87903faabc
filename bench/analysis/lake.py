"""What `ringcast bench spark` asks of the lake and of what writes to it: does a log stay small, do other engines read
the same rows, do a job and a stream come to the same rows, and how long after the event is a detection back on a tag?
"""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.rows import Row, at_most, plain
from harness.run import Run

LIMIT_S = 280.0
END_S = 20.0


def commits(run: Run, folder: Path) -> list[Row]:
    """A small table that is committed to again and again: how large its log grows, and how much slower commits get."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ringcast.record.delta import Delta, described

    count = 600 if run.quick else 6_000
    run.expect("commits", count)
    root = folder / "commits"
    (root / "data").mkdir(parents=True)
    schema = {"type": "struct", "fields": [{"name": "value", "type": "long", "nullable": True, "metadata": {}}]}
    table, taken = Delta(root, json.dumps(schema)), []
    for number in range(count):
        name = f"data/{number}.parquet"
        pq.write_table(pa.table({"value": [number]}), root / name)
        begin = time.perf_counter()
        table.commit([described(root, name)], batch=("bench", number))
        taken.append(time.perf_counter() - begin)
        run.advance("commits")
    log = sum(path.stat().st_size for path in (root / "_delta_log").iterdir())
    first, last = (sorted(some)[len(some) // 2] for some in (taken[1:101], taken[-100:]))
    return [
        at_most(f"{count} commits of a small table: metadata", log / 1e6, "MB", 20.0),
        at_most(f"{count} commits of a small table: the last hundred against the first", last / first, "times", 3.0),
        plain(f"{count} commits of a small table: the last hundred", last * 1e3, "ms"),
    ]


def readers(run: Run, spark: Any, folder: Path) -> list[Row]:
    """A table with every kind of column, read by Spark and by engines that know nothing of Ringcast."""
    import duckdb
    import polars
    from deltalake import DeltaTable

    from ringcast.rescue import Mission, Settings, bronze_rows
    from ringcast.rescue.trials import declared
    from ringcast.spark.lake import Lake
    from ringcast.spark.tables.bronze import MESSAGES

    run.expect("readers", 1)
    lake = Lake(spark, folder / "read-by-others")
    lake.append(MESSAGES, declared(spark, bronze_rows(Mission(Settings(seconds=1.0 if run.quick else 4.0))), MESSAGES))
    path, names = str(lake.location(MESSAGES)), list(MESSAGES.columns)

    def in_duckdb() -> Any:
        with duckdb.connect() as connection:
            connection.register("found", DeltaTable(path).to_pyarrow_dataset())
            return connection.sql(f"select {', '.join(names)} from found").to_arrow_table()

    def rows(table: Any) -> set[tuple[object, ...]]:
        listed = table.select(names).to_pylist()
        return {tuple(str(c.timestamp()) if hasattr(c, "timestamp") else c for c in row.values()) for row in listed}

    ours = rows(lake.read(MESSAGES).toArrow())
    found = []
    for who, read in (("Polars", lambda: polars.read_delta(path).to_arrow()), ("DuckDB", in_duckdb)):
        theirs = rows(read())
        found.append(
            at_most(
                f"read by {who}: rows of {len(ours)} that are not the same as Spark's", len(ours ^ theirs), "rows", 0.0
            )
        )
    run.advance("readers")
    return found


def equal_rows(run: Run, spark: Any, folder: Path) -> list[Row]:
    """A recording through jobs at once, and through streams batch by batch: rows that only one of them has."""
    from ringcast.rescue import Mission, Settings, bronze_rows
    from ringcast.rescue.tables import DETECTIONS, SENSORS
    from ringcast.rescue.trials import declared
    from ringcast.spark import jobs
    from ringcast.spark.lake import Lake
    from ringcast.spark.lineage import Run as Running
    from ringcast.spark.streams import Streams
    from ringcast.spark.tables.bronze import MESSAGES
    from ringcast.spark.tables.gold import FITS, QOS
    from ringcast.spark.tables.upkeep import CLOCKS

    parts = 4
    run.expect("batch against stream", 2)
    mission = Mission(Settings(seconds=2.0 if run.quick else 10.0, loss=0.03, duplicates=0.1))
    messages = sorted(bronze_rows(mission), key=lambda row: row["event_ns"])
    end = messages[-1]["event_ns"]
    # A message of each tag a minute later, after which nothing is waited for. What it is part of is not compared.
    closing = [
        {**row, "seq": row["seq"] + 10**6, "lost": 0, "event_ns": row["event_ns"] + 60 * 10**9,
         "received_ns": row["received_ns"] + 60 * 10**9}
        for row in {row["tag"]: row for row in messages}.values()
    ]  # fmt: skip
    for row in closing:
        row["event_time"] = row["event_time"] + dt.timedelta(minutes=1)
    results = [_measured(number) for number in range(40)]
    batch, stream = Lake(spark, folder / "in-one-go"), Lake(spark, folder / "in-batches")
    sensors, clocks = declared(spark, mission.calibration(), SENSORS), declared(spark, [], CLOCKS)
    size = -(-len(messages) // parts)
    for part in range(parts):
        some = messages[part * size : (part + 1) * size] + (closing if part == parts - 1 else [])
        declared(spark, some, MESSAGES).coalesce(1).write.parquet(str(folder / "equal" / "messages" / str(part)))
        few = spark.createDataFrame(results[part::parts], _RESULTS)
        few.coalesce(1).write.parquet(str(folder / "equal" / "results" / str(part)))
    run.advance("batch against stream")
    with Running(stream, "bench") as running:
        streams = Streams(stream, running, folder / "equal" / "checkpoints", every_s=None)

        def arriving(name: str, kind: Any) -> Any:
            read = spark.readStream.schema(kind).option("maxFilesPerTrigger", 1)
            return read.parquet(str(folder / "equal" / name / "*"))

        known = {"clocks": clocks, "sensors": sensors}
        for name in ("fuse", "qos"):
            streams.start(name, arriving("messages", MESSAGES.schema), known)
        streams.start("fit", arriving("results", _RESULTS))
        streams.wait()
        streams.check()
    run.advance("batch against stream")
    batch.append(MESSAGES, declared(spark, [*messages, *closing], MESSAGES))
    batch.replace(SENSORS, sensors)
    for name in ("fuse", "qos"):
        jobs.run(name, batch)
    jobs.run("fit", batch, source=spark.createDataFrame(results, _RESULTS))
    rows = []
    for table in (DETECTIONS, QOS, FITS):
        timed = f"unix_micros(event_time) * 1000 <= {end}" if "event_time" in table.columns else "true"
        made, streamed = (_compared(lake.read(table).where(timed)) for lake in (batch, stream))
        if not made:
            raise RuntimeError(f"{table.name} has no rows to compare")
        differing = len(made.symmetric_difference(streamed))
        rows.append(at_most(f"job against stream, {table.name}: rows that differ", float(differing), "rows", 0.0))
        rows.append(plain(f"job against stream, {table.name}: rows compared", float(len(made)), "rows"))
    return rows


_RESULTS = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string"
)


def _measured(number: int) -> tuple[Any, ...]:
    n = 50 * (number // 2 + 1)
    configuration = json.dumps({"transport": "tcp", "n": n, "dt_s": 0.1, "subscribers": 2})
    if number % 2:
        return ("labmap", configuration, 0, "lost", 0.0, "", "bench", "bench")
    return ("labmap", configuration, 0, "latency_ms", 0.2 + 1e-4 * n + (n % 7) / 100, "ms", "bench", "bench")


def _compared(rows: Any) -> set[tuple[Any, ...]]:
    """Sums in another order differ in their last bits, so numbers are compared to nine digits."""

    def value(cell: Any) -> Any:
        return float(f"{cell:.9g}") if isinstance(cell, float) else tuple(cell) if isinstance(cell, list) else cell

    return {tuple(map(value, row)) for row in rows.drop("run_id").collect()}


def _output(command: list[str]) -> bytes:
    """What a program prints. One that is not done in time is interrupted, so that it ends what it started. Raises
    TimeoutExpired, CalledProcessError."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            output, _ = program.communicate(timeout=LIMIT_S)
        except BaseException:
            program.send_signal(signal.SIGINT)
            try:
                program.wait(END_S)
            except subprocess.TimeoutExpired:
                program.kill()
            raise
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, command)
    return output


def detections(run: Run, folder: Path) -> list[Row]:
    """The demonstration, as `make demo` runs it: from the event to the detection on the other node's subscriber."""
    run.expect("demo", 1)
    command = [sys.executable, "-m", "ringcast", "demo", "--json", "--out", str(folder / "demo")]
    command += ["--seconds", "15"] if run.quick else []
    run.advance("demo")
    found = json.loads(_output(command))
    return [
        at_most("tag -> detection on sar/detections, p50", found["detection_delay_s"], "s", 1.5),
        at_most("tag -> detection on sar/detections, p95", found["detection_delay_p95_s"], "s", 3.0),
        plain("a batch of the fusion, the last one", found["scene"]["batch_s"], "s"),
    ]

"""How fast does Spark read a tag beside Parquet, how long is the way through it, does a recorder keep up, and how well
and how fast do the pipelines fuse and learn?

Ringcast against Spark itself, so no peers take part. All of one run: the same rows, the same session, in turns.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ringcast
from analysis.lake import commits, detections, equal_rows, readers
from analysis.training import trained
from analysis.truth import truth
from harness.command import main
from harness.rows import Row, at_least, at_most, plain, scaled
from harness.run import Run
from harness.stats import quantiles

LIMIT_S = 120.0
PAYLOAD = b"x" * 64
PARTS = 4
RATE = 200_000
PACED_AT = 210_000  # a little more than asked, or no recorder could ever be seen to reach it

PUBLISHER = """
import sys, time, ringcast
socket, count, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with ringcast.connect(socket) as session:
    publisher = session.tag("bench/recorded", depth=65536, capacity_bytes=1 << 24).publisher()
    publisher.wait_for_subscribers(1, 60.0)
    items, began = [b"x" * 64] * 210, time.perf_counter()
    for sent in range(210, count + 1, 210):
        publisher.send_many(items)
        time.sleep(max(0.0, began + sent / rate - time.perf_counter()))
    print(sent / (time.perf_counter() - began), flush=True)
    sys.stdin.read()
"""


def _seconds(table: Any) -> float:
    began = time.perf_counter()
    table.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def _sources(run: Run, spark: Any, session: ringcast.Session, folder: Path) -> list[Row]:
    """Rows per second of live tags as `frames.held` reads them, by batches and by tuples of the format, and of Parquet
    files of the same rows. As many publishers as there are files."""
    from ringcast.record.bronze import format_of, to_arrow
    from ringcast.record.rings import Rings
    from ringcast.record.writer import RecordingWriter
    from ringcast.spark.tags.frames import held

    count = 400_000 if run.quick else 2_000_000
    each = count // PARTS
    rings = Rings(session, "bench/read/*")
    publishers = []
    with RecordingWriter(folder / "parquet") as writer:
        for part in range(PARTS):
            tag = session.tag(f"bench/read/{part}", depth=524_288, capacity_bytes=1 << 26)
            publishers.append(tag.publisher())
            for _ in range(each // 1000):
                publishers[-1].send_many([PAYLOAD] * 1000)
            for stretch in rings.stretches(publishers[-1].info, 0, each - 1):
                writer.write(to_arrow(stretch.columns, [format_of(tag.attributes)]))
            writer.commit()
    live = spark.read.format("ringcast").option("tag", "bench/read/*").option("socket", session.socket_path)
    tables = {
        "held": held(spark, "bench/read/*", session.socket_path),
        "parquet": spark.read.parquet(str(folder / "parquet" / "data")),
        "batches": live.load(),
        "tuples": live.option("arrow", "false").load(),
    }
    for name in ("held", "parquet", "batches"):  # the first read of a session starts workers and compiles
        if (found := tables[name].count()) != count:
            raise RuntimeError(f"{name} has {found} rows of {count}")
        _seconds(tables[name])
    taken: dict[str, list[float]] = {name: [] for name in tables}
    rounds = 3 if run.quick else 5
    run.expect("sources", rounds)
    for number in range(rounds):
        run.advance("sources")
        for name in list(tables) if number % 2 == 0 else reversed(tables):
            if name != "tuples" or number < 2:
                taken[name].append(_seconds(tables[name]))
    for publisher in publishers:
        publisher.close()
    rings.close()
    best = {name: count / min(values) for name, values in taken.items()}
    return [
        at_least(
            "source, 64 B messages: 0.8 of Spark's Parquet source on the same rows", best["held"], "rows/s",
            scaled(best["parquet"], 0.8), best["parquet"],
        ),
        plain("the format itself, which sends all names with every row", best["batches"], "rows/s", best["parquet"]),
        at_least(
            "source, Arrow batches: 3 times the same source yielding tuples", best["batches"], "rows/s",
            scaled(best["tuples"], 3.0), best["tuples"],
        ),
    ]  # fmt: skip


def _way_round(run: Run, spark: Any, session: ringcast.Session, folder: Path) -> list[Row]:
    """From `send` on one tag through a query to `recv` on another."""
    count, warm_up = (40, 10) if run.quick else (200, 30)
    socket = session.socket_path
    publisher = session.tag("bench/in").publisher()
    query = spark.readStream.format("ringcast").option("tag", "bench/in").option("socket", socket).load()
    query = query.select("payload", "event_ns").writeStream.format("ringcast").option("tag", "bench/out")
    query = query.option("socket", socket).option("checkpointLocation", str(folder / "checkpoint")).start()
    run.expect("way round", count + warm_up)
    try:
        deadline = time.monotonic() + LIMIT_S
        while not session.tags("bench/out"):
            publisher.send(b"-1")
            time.sleep(0.2)
            if query.exception() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the query does not run: {query.exception()}")
        subscriber = session.subscribe("bench/out")
        taken = []
        for number in range(count + warm_up):
            run.advance("way round")
            sent = time.perf_counter_ns()
            publisher.send(str(number).encode())
            while int(subscriber.recv(LIMIT_S).data) != number:
                pass
            taken.append(time.perf_counter_ns() - sent)
    finally:
        query.stop()
    p50, p99, *_ = (value * 1e-6 for value in quantiles(taken[warm_up:]))
    return [
        at_most("tag -> Spark -> tag, p50 of the way round: under 150 ms", p50, "ms", 150.0),
        plain("tag -> Spark -> tag, p99 of the way round", p99, "ms"),
    ]


def _recorder(run: Run, session: ringcast.Session, folder: Path) -> list[Row]:
    """A recorder and a publisher, each a process of its own."""
    seconds = 3 if run.quick else 15
    count = PACED_AT * seconds // 210 * 210
    session.tag("bench/recorded", depth=65536, capacity_bytes=1 << 24)
    run.expect("recorder", 1)
    recorder = subprocess.Popen(
        [sys.executable, "-m", "ringcast", "record", "bench/recorded", "--out", str(folder / "recording"), "--json",
         "--count", str(count), "--socket", session.socket_path], stdout=subprocess.PIPE,
    )  # fmt: skip
    publisher = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, session.socket_path, str(count), str(PACED_AT)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert publisher.stdout is not None
        rate = float(publisher.stdout.readline())
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that lost some never counts to the end
            recorder.wait(10.0)
        recorder.send_signal(signal.SIGINT)
        text, _ = recorder.communicate(timeout=LIMIT_S)
    finally:
        for process in (publisher, recorder):
            process.kill()
            process.communicate()
    run.advance("recorder")
    found = json.loads(text)
    kept = rate * found["messages"] / count
    return [
        at_least("recorder keeps up with 200,000 msg/s of 64 B", kept, "msg/s", float(RATE), rate),
        at_most("recorder, messages lost at that rate: none", float(count - found["messages"]), "messages", 0.0),
    ]


def _join(run: Run, spark: Any, folder: Path) -> list[Row]:
    """Two streams of frames joined within 20 ms, for pipelines that join in event time (`pipelines.pairing`)."""
    from pyspark.sql import functions as F

    from ringcast.spark.pipelines.pairing import pair
    from ringcast.spark.pipelines.times import watched

    rigs, files = 20, 4

    def stream(name: str, count: int, shift_us: int) -> Any:
        # Each rig's frames 50 ms apart; those of the other side are 7 ms later.
        us = F.expr(f"1767268800000000 + id div {rigs} * 50000 + id % {rigs} * 137 + {shift_us}")
        rows = spark.range(count).select(
            F.col("id").alias("seq"), (F.col("id") % rigs).alias("rig"), F.timestamp_micros(us).alias("event_time"),
            (us * 1000).alias("event_ns"),
        )  # fmt: skip
        path = folder / f"join-{name}-{count}"
        rows.repartitionByRange(files, "seq").sortWithinPartitions("seq").write.parquet(str(path))
        read = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
        return watched(read.parquet(str(path)))

    def seconds(count: int) -> float:
        joined = pair(stream("left", count, 0), stream("right", count, 7000), ["rig"], 20_000, "other")
        place = str(folder / f"join-checkpoint-{count}")
        began = time.perf_counter()
        query = joined.writeStream.format("noop").option("checkpointLocation", place).trigger(availableNow=True)
        query.start().awaitTermination()
        return time.perf_counter() - began

    count = 60_000 if run.quick else 400_000
    run.expect("fuse join", 2)
    run.advance("fuse join")
    seconds(4_000)
    run.advance("fuse join")
    return [at_least("fuse join, 20 ms bound", 2 * count / seconds(count), "rows/s", 15_000.0)]


PARTS_WITHOUT_SPARK: dict[str, Callable[[Run, ringcast.Session, Path], list[Row]]] = {
    "demo": lambda run, _, folder: detections(run, folder),
    "recorder": _recorder,
    "commits": lambda run, _, folder: commits(run, folder),
}
PARTS_WITH_SPARK: dict[str, Callable[[Run, Any, ringcast.Session, Path], list[Row]]] = {
    "sources": _sources,
    "way-round": _way_round,
    "equal-rows": lambda run, spark, _, folder: equal_rows(run, spark, folder),
    "readers": lambda run, spark, _, folder: readers(run, spark, folder),
    "join": lambda run, spark, _, folder: _join(run, spark, folder),
    "truth": lambda run, spark, _, folder: truth(run, spark, folder),
    "training": lambda run, spark, _, folder: trained(run, spark, folder),
}


def measure(run: Run) -> list[Row]:
    """The issue's lines."""
    from ringcast.spark.session import opened

    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-", dir="/dev/shm") as name:
        folder = Path(name)
        with ringcast.connect(folder / "daemon.sock") as session:
            for part in filter(run.wants, PARTS_WITHOUT_SPARK):
                rows += PARTS_WITHOUT_SPARK[part](run, session, folder)
            if wanted := list(filter(run.wants, PARTS_WITH_SPARK)):
                with opened(app="bench") as spark:
                    for part in wanted:
                        rows += PARTS_WITH_SPARK[part](run, spark, session, folder)
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure], parts=[*PARTS_WITHOUT_SPARK, *PARTS_WITH_SPARK]))

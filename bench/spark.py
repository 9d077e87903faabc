"""How fast does Spark read a tag beside Parquet, how long is the way through it, does a recorder keep up, and how well
and how fast do the pipelines fuse and learn?

Ringcast against Spark itself, so no peers take part. All of one run: the same rows, the same session, in turns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

import ringcast
from harness.command import main
from harness.rows import Row, at_least, at_most, plain, scaled
from harness.run import Run
from harness.stats import quantiles
from lake import commits, detections, equal_rows

LIMIT_S = 120.0
PAYLOAD = b"x" * 64
PARTS = 4
RATE = 200_000
METRICS = ("relate2", "relate", "relate2_net", "latency_mean", "delivered")
LOSING, RECOVERING = "lossy+multicast:loss=3%", "lossy+nak:loss=3%"
PACE = 2.0  # times as fast as it happened: messages carry when that was
AHEAD_S = 0.05
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


def _readers(run: Run, spark: Any, folder: Path) -> list[Row]:
    """A table with every kind of column, read by Spark and by engines that know nothing of Ringcast."""
    import duckdb
    import polars
    from deltalake import DeltaTable

    from ringcast.rescue import Mission, Settings, bronze_rows
    from ringcast.rescue.trials import declared
    from ringcast.spark.lake import Lake
    from ringcast.spark.tables.bronze import MESSAGES

    run.expect("readers", 1)
    lake = Lake(spark, folder / "read by others")
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


def _truth(run: Run, spark: Any, folder: Path) -> list[Row]:
    """How well survivors are found against the truth, and what clocks and loss do to it. Daemons and sensors are on
    nodes of a testbed, a recorder is at the base, and Spark works on what it wrote."""
    from ringcast.lab.testbed.network import unavailable
    from ringcast.rescue import HARD, Settings
    from ringcast.rescue.field import Field
    from ringcast.rescue.trials import SEEDS, recorded_trial, seeded

    what, seconds = "against the truth", 2.0 if run.quick else 6.0
    run.expect(what, 9)
    settings = Settings(seconds=seconds)
    rows = []
    for scene, some, target in (("the scene", settings, 0.95), ("a harder scene", HARD, None)):
        many = seeded(spark, dataclasses.replace(some, seconds=2.0), SEEDS)
        name = f"fuse, {scene}, {SEEDS} seeds, {many.survivors} survivors, no loss, synchronised"
        run.advance(what)
        rows += [
            at_least(f"{name}: recall of a survivor", many.recall, "share", target),
            plain(f"{name}: recall of a survivor, 95 % interval, from", many.low, "share"),
            plain(f"{name}: recall of a survivor, 95 % interval, to", many.high, "share"),
            at_least(f"{name}: precision", many.precision, "share", target),
        ]
    if reason := unavailable():
        run.notes.append(f"fuse against the truth is not measured: {reason}")
        return rows
    scores, losses = {}, {}
    with Field(settings) as field:
        for name, transport in {"calm": "nak", "lossy": LOSING, "recovered": RECOVERING}.items():
            run.advance(what)
            kept = field.record(folder / name, transport, PACE)
            scores[name] = recorded_trial(spark, kept.path, kept.mission)[0]
            losses[name] = 100.0 * (kept.sent - kept.received) / kept.sent
    for name, translated in {"apart": False, "translated": True}.items():
        with Field(settings, ahead_s=AHEAD_S, translated=translated) as field:
            run.advance(what)
            kept = field.record(folder / name, "nak", PACE)
            run.advance(what)
            scores[name] = recorded_trial(spark, kept.path, kept.mission)[0]
            if translated:
                error_us = abs(field.clocks()["eyes"].offset_ns - AHEAD_S * 1e9) / 1e3
    calm = scores["calm"]
    return [
        at_least("fuse, no loss, synchronised: recall", calm.recall, "share", 0.95),
        at_least("fuse, no loss, synchronised: precision", calm.precision, "share", 0.95),
        _lower("fuse, clocks 50 ms apart: recall, lower", scores["apart"].recall, calm.recall),
        at_least(
            "fuse, clocks 50 ms apart, measured and translated: recall", scores["translated"].recall, "share", 0.95,
            calm.recall,
        ),
        plain("how far off the clock was measured that is 50 ms ahead", error_us, "us"),
        _lower(f"fuse, 3 % of packets lost, {LOSING}: recall, lower", scores["lossy"].recall, calm.recall),
        plain(f"messages lost by {LOSING}", losses["lossy"], "%"),
        at_least(
            f"fuse, 3 % of packets lost, {RECOVERING}: recall", scores["recovered"].recall, "share", 0.95, calm.recall
        ),
        plain(f"messages lost by {RECOVERING}", losses["recovered"], "%"),
        *rows,
    ]  # fmt: skip


def _lower(name: str, value: float, reference: float) -> Row:
    return dataclasses.replace(plain(name, value, "share", reference), target=reference, met=value < reference)


def _trained(run: Run, spark: Any, folder: Path) -> list[Row]:
    """From the simulator of `ringcast lab run adamant` to a model, judged where it was not trained."""
    from ringcast.adapt import Chooser
    from ringcast.lab.adamant import experiment
    from ringcast.lab.adamant import results as adamant_results
    from ringcast.lab.adamant.environments import environment_grid
    from ringcast.lab.adamant.grid import paper_grid
    from ringcast.lab.simulation.workers import workers
    from ringcast.record import results as kept
    from ringcast.spark.experiments.grid import repeatable
    from ringcast.spark.experiments.train import mean, train
    from ringcast.spark.lake import Lake
    from ringcast.spark.tables.bronze import RESULTS

    class Steps:
        def expect(self, number: int) -> None:
            run.expect("train", number)

        def step(self, what: str) -> None:
            run.advance("train")

    paper = msgspec.structs.replace(paper_grid(False), updates=2_000, repetitions=2)
    drawn = environment_grid(run.quick)
    Steps().expect(len(paper.cells) + len(drawn.cells))
    rows = []
    for kind, grid in (("paper's", paper), ("drawn", drawn)):
        with workers() as pool:
            results = experiment.run_grid(kind, grid, Steps(), pool)
        lake = folder / f"lake of {grid.updates}"
        kept.keep(adamant_results.measured(results), lake, machine="simulated")
        table = Lake(spark, lake).read(RESULTS)
        for metric in METRICS[:1] if run.quick or grid is paper else METRICS:
            found = train(table, metric)
            name = f"train, {metric}, {kind} environments"
            asked = (
                f"{name}: within 5 % of the best, of {found.held_out} different ones of {found.environments} held out"
            )
            target = 0.95 if metric == "relate2" else None
            rows.append(at_least(asked, found.share, "share", target, found.constant))
            rows += [
                plain(f"{name}: {family}, where families are chosen", mean(of), "share")
                for family, of in found.shares.items()
            ]
            rows.append(plain(f"{name}: the worst split", min(found.scores), "share"))
            for key, shares in found.whole.items():
                rows += [plain(f"{name}: all of {key} {value} held out", one, "share") for value, one in shares.items()]
                rows.append(plain(f"{name}: whole {key} held out, mean", mean(list(shares.values())), "share"))
            rows.append(plain(f"{name}: always the same transport", found.constant, "share"))
            if metric != "delivered":
                again = repeatable(table, metric)
                rows.append(plain(f"{name}: the best of one repetition, within 5 % in the other", again, "share"))
            rows += [plain(f"{name}: best is {label}", number, "environments") for label, number in found.wins.items()]
            text = msgspec.json.encode(found.model)
            rows.append(plain(f"{name}: the model as JSON", len(text) / 1e3, "kB"))
            rows.append(plain(f"{name}: a choice in plain Python", _choice_us(Chooser.parse(text)), "us"))
    return rows


def _choice_us(chooser: Any) -> float:
    """The median over environments inside what the model knows, one after the other."""
    chance = random.Random(1)
    taken = []
    for _ in range(1_000):
        place = {name: chance.uniform(*ends) for name, ends in chooser.spans.items()}
        begin = time.perf_counter_ns()
        chooser.choose(place)
        taken.append(time.perf_counter_ns() - begin)
    return sorted(taken)[len(taken) // 2] / 1e3


def measure(run: Run) -> list[Row]:
    """The issue's lines."""
    from ringcast.spark.session import opened

    with tempfile.TemporaryDirectory(prefix="ringcast-bench-", dir="/dev/shm") as name:
        folder = Path(name)
        with ringcast.connect(folder / "daemon.sock") as session:
            rows = [*detections(run, folder), *_recorder(run, session, folder), *commits(run, folder)]
            with opened(app="bench") as spark:
                rows = [*_sources(run, spark, session, folder), *_way_round(run, spark, session, folder), *rows]
                rows += [*equal_rows(run, spark, folder), *_readers(run, spark, folder)]
                return [*rows, *_join(run, spark, folder), *_truth(run, spark, folder), *_trained(run, spark, folder)]


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

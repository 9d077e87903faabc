"""Lines through measurements equal what NumPy's least squares say, standard errors included."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ringcast.spark import jobs
from ringcast.spark.experiments.fit import by_rate, fit
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.streams import Streams
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import FITS

SCHEMA = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string"
)


def test_lines_equal_least_squares_and_lossy_runs_count_for_whetstones_only(spark: SparkSession) -> None:
    random = np.random.default_rng(4)
    rows, expected = [], {}
    for subscribers in (1, 3):
        x, latency, whetstones = [], [], []
        for n in (1, 10, 100, 500, 1000):
            for dt_s in (0.05, 0.1):
                rate = n / dt_s
                lost = 7.0 if rate > 15_000 else 0.0
                t, w = 0.25 + 5e-5 * rate + random.normal(0, 0.02), 0.74e6 - 36 * rate + random.normal(0, 500)
                configuration = msgspec.json.encode(
                    {"transport": "tcp", "side": "publisher", "load": "stress", "subscribers": subscribers, "n": n,
                     "dt_s": dt_s}
                ).decode()  # fmt: skip
                for metric, value in (("latency_ms", t), ("whetstones", w), ("lost", lost), ("other", 1.0)):
                    rows.append(("labmap", configuration, 0, metric, value, "", "m", "v"))
                x.append(rate)
                latency.append(t if lost == 0 else np.nan)
                whetstones.append(w)
        for model, y in (("latency", latency), ("whetstone", whetstones)):
            good = ~np.isnan(y)
            line, covariance = np.polyfit(np.array(x)[good], np.array(y)[good], 1, cov=True)
            expected[model, subscribers] = (good.sum(), line[1], line[0], *np.sqrt(np.diag(covariance))[::-1])
    found = fit(by_rate(spark.createDataFrame(rows, SCHEMA).withColumn("run_id", F.lit("r")))).collect()
    assert len(found) == 4
    for row in found:
        want = expected[row.model, row.subscribers]
        assert (row.points, row.a, row.b, row.a_error, row.b_error) == pytest.approx(want, rel=1e-6)
        assert (row.transport, row.side, row.load) == ("tcp", "publisher", "stress")
    assert expected["latency", 1][0] == 9
    assert expected["whetstone", 1][0] == 10


def test_streams_and_jobs_draw_the_same_lines(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    rows = []
    for n in (1, 10, 100, 500):
        configuration = msgspec.json.encode({"transport": "tcp", "n": n, "dt_s": 0.1, "subscribers": 2}).decode()
        for metric, value in (("latency_ms", 0.2 + 1e-4 * n + random.normal(0, 0.01)), ("lost", 0.0)):
            rows.append(("labmap", configuration, 0, metric, value, "", "m", "v"))
    results = [spark.createDataFrame(some, SCHEMA).coalesce(1) for some in (rows[:4], rows[4:], rows)]
    for at, some in enumerate(results[:2]):
        some.write.parquet(str(tmp_path / "in" / str(at)))
    streamed, other = Lake(spark, tmp_path / "streamed"), Lake(spark, tmp_path / "in-one-go")
    with Run(streamed, "streams") as run:
        streams = Streams(streamed, run, tmp_path / "checkpoints", every_s=None)
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        streams.start("fit", source.parquet(str(tmp_path / "in" / "*")))
        streams.wait()
    jobs.run("fit", other, source=results[2])
    assert streamed.read(RESULTS).count() == other.read(RESULTS).count() == 8
    (one,), (two,) = (lake.read(FITS).drop("run_id").collect() for lake in (streamed, other))
    assert one.points == two.points == 4
    names = ("a", "b", "a_error", "b_error", "r2")
    assert [one[name] for name in names] == pytest.approx([two[name] for name in names], rel=1e-9), "but for rounding"


def test_two_points_have_a_line_and_no_error(spark: SparkSession) -> None:
    schema = "model string, transport string, side string, load string, subscribers int, experiment string, "
    schema += "proxy string, hops int, rate double, value double, lost double"
    rows = [("latency", "", "", "", 1, None, None, None, x, 1 + 2 * x, 0.0) for x in (1.0, 3.0)]
    row = fit(spark.createDataFrame(rows, schema)).first()
    assert row is not None
    assert (row.a, row.b, row.a_error, row.b_error) == (1.0, 2.0, None, None)

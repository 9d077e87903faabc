"""Planes through latencies equal what NumPy's least squares say, and pairs of equal n/dt are compared."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from pyspark.sql import SparkSession

from ringcast.spark.experiments.planes import planes, runs

SCHEMA = (
    "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    "machine string, version string, run_id string"
)


def test_planes_equal_least_squares_and_lossy_runs_do_not_count(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    rows, sides, values = [], [], []
    for n in (10.0, 100.0, 500.0):
        for dt_s in (0.01, 0.05, 0.1):
            value = 0.2 + 0.001 * n + 0.003 / dt_s + random.normal(0, 0.01)
            lost = n == 500.0 and dt_s == 0.01
            configuration = {"transport": "tcp", "n": n, "dt_s": dt_s, "subscribers": 2, "load": "idle"}
            text = msgspec.json.encode(configuration).decode()
            for metric, one in (("latency_ms", value), ("lost", 7.0 if lost else 0.0)):
                rows.append(("labmap", text, 0, metric, one, "", "", "", "r"))
            if not lost:
                sides.append((1.0, n, 1 / dt_s))
                values.append(value)
    (found,) = planes(runs(spark.createDataFrame(rows, SCHEMA))).collect()
    expected, residual, *_ = np.linalg.lstsq(np.array(sides), np.array(values), rcond=None)
    assert (found.a, found.b, found.c) == pytest.approx(tuple(expected), rel=1e-6)
    assert found.r2 == pytest.approx(1 - residual[0] / (np.var(values) * len(values)), rel=1e-6)
    assert found.points == 8
    assert found.pairs == 2, "10 every 0.01 s and 100 every 0.1 s; 100 every 0.01 s and 500 every 0.05 s"
    assert found.apart > 0

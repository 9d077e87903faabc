"""What daemons told of their choices becomes results, and of these `train` can learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ringcast.spark.experiments.learning.examples import costs
from ringcast.spark.experiments.lived import lived

TOLD = {
    "taken_ns": 10**18, "tag": "cam", "asked": "auto:relate2 unordered", "receivers": 3, "loss_percent": 5.0,
    "burst": 1.0,
    "rate_hz": 100.0, "payload_bytes": 200.0, "delay_us": 500.0, "bandwidth_mbit": 100.0, "messages": 300, "lost": 3,
    "delivered": 99.0, "latency_mean": 1.0, "relate2": 2.0, "predicted": 1.0, "by": "", "changed_to": "",
}  # fmt: skip


def message(tag: str = "@ringcast/a/choices", **told: Any) -> tuple[str, str, bytearray]:
    return tag, "b", bytearray(json.dumps({**TOLD, **told}).encode())


def test_looks_at_transports_in_nearly_the_same_environment_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    messages = spark.createDataFrame(
        [
            message(transport="multicast+nak", relate2=2.0),
            message(transport="multicast+nak", relate2=4.0, loss_percent=5.2, taken_ns=10**18 + 1),
            message(transport="nak", relate2=0.1),
            message(transport="udp", relate2=6.0, rate_hz=103.0),
            message(transport="tcp", rate_hz=10.0),
            message(transport="udp", messages=0),
            message("cam", transport="udp", relate2=1000.0),
        ],
        "tag string, node string, payload binary",
    )
    rows = lived(messages)
    found = {(row.metric, row.repetition) for row in rows.collect()}
    assert found == {(name, at) for name in ("relate2", "latency_mean", "delivered") for at in (0, 1)}
    (one,) = costs(rows, "relate2").collect()
    assert one.cost == pytest.approx({"nak": 3.0, "udp": 6.0}), "alone in its environment, tcp is compared with nothing"
    keys = json.loads(one.environment)
    assert keys["receivers"] == "3"
    assert "real" not in keys, "a daemon that asks a model has no such number"
    assert 80 < float(keys["rate_hz"]) < 125


def test_what_no_clock_measured_has_no_latency(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [message(transport="multicast+nak", relate2=0.0, latency_mean=0.0, loss_percent=0.0)],
        "tag string, node string, payload binary",
    )
    (row,) = lived(rows).collect()
    assert (row.metric, row.value) == ("delivered", 99.0)
    assert json.loads(row.configuration)["loss_percent"] == "0.0"

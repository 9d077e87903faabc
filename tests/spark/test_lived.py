"""What daemons told of their choices becomes results, and of these `train` can learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bronze_rows
import pytest
from pyspark.sql import SparkSession

from ringcast.spark import jobs
from ringcast.spark.declaration import NothingToDo
from ringcast.spark.experiments.learning.examples import costs
from ringcast.spark.experiments.lived import lived
from ringcast.spark.lake import Lake
from ringcast.spark.tables.bronze import MESSAGES, RESULTS
from ringcast.transport.recipe import unordered

TOLD = {
    "taken_ns": 10**18, "tag": "cam", "asked": "auto:relate2 unordered", "receivers": 3, "loss_percent": 5.0,
    "burst": 1.0,
    "rate_hz": 100.0, "payload_bytes": 200.0, "delay_us": 500.0, "bandwidth_mbit": 100.0, "messages": 300, "lost": 3,
    "delivered": 99.0, "latency_mean": 1.0, "relate2": 2.0, "predicted": 1.0, "by": "", "changed_to": "",
}  # fmt: skip

KEYS = {"receivers": 3, "burst": 1, "payload_bytes": 200, "delay_us": 500, "bandwidth_mbit": 100}


def message(tag: str = "@ringcast/a/choices", **told: Any) -> tuple[str, str, bytearray]:
    return tag, "b", bytearray(json.dumps({**TOLD, **told}).encode())


def _told(at: int, **told: Any) -> tuple[str, int, int, bytes]:
    tag, _, payload = message(**told)
    return tag, at, at, bytes(payload)


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


def test_what_was_recorded_of_a_mesh_is_learned_from_beside_experiments(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    looks = [
        (rate, transport, cost)
        for rate in (10.0, 50.0)
        for transport, cost in (("multicast+nak", 2.0), (unordered("multicast+parity:r=4,c=3"), 5.0))
    ]
    there = [
        bronze_rows.message(*_told(at, transport=transport, relate2=cost, rate_hz=rate, taken_ns=10**18 + at))
        for at, (rate, transport, cost) in enumerate(looks)
    ]
    lake.append(MESSAGES, bronze_rows.frame(spark, there), "r")
    simulated = [
        ("e", json.dumps({**KEYS, "loss_percent": loss, "rate_hz": rate, "transport": name}), 0, "relate2", cost,
         "", "", "")
        for loss in (1, 2, 4, 8) for rate in (10, 20, 40, 80, 160, 320)
        for name, cost in (("nak", 1.0 + rate / 100), ("parity:r=4,c=3", 2.0))
    ]  # fmt: skip
    kinds = "experiment string, configuration string, repetition int, metric string, value double, unit string, "
    source = spark.createDataFrame(simulated, kinds + "machine string, version string")
    options = {"metric": "relate2", "splits": 1, "wholes": "", "compare": "no"}
    run = jobs.run("train", lake, source=source, options=options)
    assert run.counts["environments"] == 4 * 6 + 2, "those of the experiment, and two that were lived through"
    assert run.counts["best is nak"] == 4 * 4 + 2, "up to 80 Hz, and where it was lived through"
    results = lake.read(RESULTS)
    assert {row.experiment for row in results.select("experiment").distinct().collect()} == {"lived", "e"}
    with pytest.raises(NothingToDo, match="no choices that are not results yet"):
        jobs.run("lived", lake)


def test_an_older_recording_of_another_node_that_comes_later_is_learned_from_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake")

    def take_in(node: str, *seconds: int) -> int:
        told = [(at, _told(at, transport="multicast+nak", taken_ns=10**18 + at * 10**9)) for at in seconds]
        rows = [bronze_rows.message(*one, node=node, publisher=f"{node}/1") for _, one in told]
        lake.append(MESSAGES, bronze_rows.frame(spark, rows), f"{node} {seconds}")
        jobs.run("lived", lake)
        return lake.read(RESULTS).where("metric = 'relate2'").count()

    assert take_in("a", 10, 20) == 2
    assert take_in("b", 5, 15) == 4, "older than what is known of the other node"
    assert take_in("b", 15, 25) == 5, "what was recorded twice is one look"

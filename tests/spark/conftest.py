"""One Spark session for all of these tests: starting it takes longer than most of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 180.0

# For tests only: what starts fast, not what runs fast for hours.
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.warehouse.dir": "",
    # Rows by the dozen: compiling what handles them takes longer than handling them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.default.parallelism": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}


@pytest.fixture
def patiently() -> Callable[[Callable[[], object]], None]:
    """Wait for something of Spark's, which may have to start first on a machine that does other things."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)

    return wait


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from ringcast.spark.session import open_session

    place: Path = tmp_path_factory.mktemp("spark")
    # Java passes on to its workers the environment it was started in, so what they find by default is decided now.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RINGCAST_SOCKET", str(place / "default.sock"))
        session = open_session("local[2]", "tests", {**SETTINGS, "spark.sql.warehouse.dir": str(place)})
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()

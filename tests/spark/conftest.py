"""One Spark session for all of these tests: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For tests only: what starts fast, not what runs fast for hours.
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.warehouse.dir": "",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from ringcast.spark.session import open_session

    place: Path = tmp_path_factory.mktemp("spark")
    session = open_session("local[2]", "tests", {**SETTINGS, "spark.sql.warehouse.dir": str(place)})
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()

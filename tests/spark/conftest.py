"""One Spark session for all of these tests: starting it takes longer than most of them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ringcast.testing.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 180.0

TIMEOUT_S = 900.0
"""Of a test: several waits of that patience, on a machine that does other things."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# For tests only: what starts fast, not what runs fast for hours.
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
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
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Every query and every batch is planned anew: nothing that pays on more rows only.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.propagateDistinctKeys.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.parquet.compression.codec": "uncompressed",
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:  # those of other folders too, where they are run in one go
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def patiently() -> Callable[[Callable[[], object]], None]:
    """Wait for something of Spark's, which may have to start first on a machine that does other things."""
    return partial(wait_until, patience_s=PATIENCE_S)


@pytest.fixture
def command_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that this process runs take the tests' session, and leave it open."""
    monkeypatch.setattr("ringcast.spark.session.open_session", lambda *args, **settings: spark)
    monkeypatch.setattr("ringcast.spark.session.opened", lambda *args, **settings: contextlib.nullcontext(spark))


@pytest.fixture(scope="session")
def classes() -> Path:
    """Where Java keeps the classes it has loaded, for those who run these tests often: Spark loads thousands before it
    gives its first answer. RINGCAST_KEEP_CLASSES=1 in the environment makes it at the end of a run (some 20 s and
    160 MB), and from then on the start takes half as long."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringcast"
    return cache / f"spark-{metadata.version('pyspark')}-tests.jsa"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, classes: Path) -> Iterator[SparkSession]:
    from pyspark import SparkContext

    from ringcast.spark.session import open_session

    place: Path = tmp_path_factory.mktemp("spark")
    draft = place / "classes.jsa"
    keep = bool(os.environ.get("RINGCAST_KEEP_CLASSES")) and not classes.exists()
    kept = f"-XX:ArchiveClassesAtExit={draft}" if keep else f"-XX:SharedArchiveFile={classes}"
    # Java passes on to its workers the environment it was started in, so what they find by default is decided now.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RINGCAST_SOCKET", str(place / "default.sock"))
        settings = {
            **SETTINGS, "spark.sql.warehouse.dir": str(place),
            "spark.driver.extraJavaOptions": f"{JAVA} -Xshare:auto -Xlog:disable {kept}",
        }  # fmt: skip
        session = open_session("local[2]", "tests", settings)
    yield session
    gateway = SparkContext._gateway
    session.stop()
    if keep:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE_S)
        SparkContext._gateway = SparkContext._jvm = None
        if draft.exists():
            classes.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(draft, classes)

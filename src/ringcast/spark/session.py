"""Opens a Spark session that knows the format `ringcast`. The one place where Spark is configured.

Embedded by default: driver and executors in this process's Java, on all cores, nothing listening beyond loopback. The
same with a master's address. Settings are for latency: what a batch costs is fixed, so small batches pay most.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ringcast.spark.jvm.accumulators import end_without_a_word
from ringcast.spark.jvm.java import java_home
from ringcast.spark.jvm.launch import launch, log_level
from ringcast.spark.jvm.local_files import write_plainly
from ringcast.spark.jvm.workers import Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # A checkpoint on this machine's own disk needs none of the caution that Hadoop's file contexts take.
    "spark.sql.streaming.checkpointFileManagerClass": _MANAGER,
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.python.unix.domain.socket.enabled": "true",
    # What Delta's readers expect; Spark's own default is an older type of 96 bits.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # As many as there are cores: more only cost their starting.
    "spark.sql.shuffle.partitions": str(min(8, os.cpu_count() or 2)),
    "spark.driver.memory": "1g",
}

_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_END_S = 20.0


def open_session(
    master: str | None = None, app: str = "ringcast", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The process's Spark session, made if there is none. `settings` come last and win.

    Raises NoJava, SparkNotStarted.
    """
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    # Workers are to run what this process runs, whatever `python3` is on the machine.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from ringcast.spark.tags.source import RingcastSource

    master = master or "local[*]"
    local = master.startswith("local")
    chosen = {**SETTINGS, "spark.log.level": log_level(), **(LOCAL_SETTINGS if local else {}), **(settings or {})}
    end_without_a_word()
    launch({"spark.master": master, "spark.app.name": app, **chosen}, local)
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if local:
        write_plainly(spark)
    spark.dataSource.register(RingcastSource)
    return spark


@contextlib.contextmanager
def opened(
    master: str | None = None, app: str = "ringcast", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for as long as a command runs. At its end, or when it is interrupted, Spark and all its processes are
    gone, unless the session was there before. Raises NoJava, SparkNotStarted."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        yield open_session(master, app, settings)
        return
    # py4j tells the log of calls that an interrupt breaks off, and Python prints what no handler takes.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    before = signal.getsignal(signal.SIGINT)
    spark = open_session(master, app, settings)
    try:
        if before is not None and threading.current_thread() is threading.main_thread():
            # Spark's own handler calls Java, from wherever the interrupt comes: in the middle of a call, mostly.
            signal.signal(signal.SIGINT, before)
        yield spark
    finally:
        close_session(spark)


def has_delta(spark: SparkSession) -> bool:
    """Whether this Spark brings Delta's own reader, as clusters do that were set up for it. The one place that decides:
    where it does, tables are read by it, and else by the list of files that the package `deltalake` gives."""
    return _DELTA in (spark.conf.get("spark.sql.extensions", None) or "").split(",")


def close_session(spark: SparkSession) -> None:
    """Stop Spark and wait until its Java is gone, which it otherwise is some time after this process, and the Python
    processes that Java started, which end when they find it gone."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    workers = Workers(process.pid) if process is not None else None
    # By a thread, and so by a connection to Java, of its own: an interrupt in the middle of a call leaves an answer
    # unread, which the next call of the interrupted thread would take for its own.
    ending = threading.Thread(target=_stop, args=(spark, gateway if process is not None else None), daemon=True)
    ending.start()
    ending.join(_END_S)
    if process is None or workers is None:  # Java is somebody else's
        return
    workers.look()  # for those that were started while Spark ended
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    workers.await_end(_END_S)


def _stop(spark: SparkSession, gateway: Any) -> None:
    # Whatever fails here, Java is ended all the same.
    with contextlib.suppress(Exception):
        spark.stop()
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.shutdown()

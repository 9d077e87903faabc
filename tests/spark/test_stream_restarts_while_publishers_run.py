"""Spark itself: a query that is stopped and started again while publishers run, and one whose driver is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ringcast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S = 60.0


class Sending:
    """Publishers that send numbers until they are told to stop."""

    def __init__(self, session: ringcast.Session, tags: list[str]) -> None:
        self._stop = threading.Event()
        # So much is held that Spark's slowness on a busy machine is no loss.
        self._publishers = [
            session.tag(tag, codec="json", schema={"type": "object", "properties": {"n": {"type": "integer"}}},
                        depth=65536, capacity_bytes=1 << 22).publisher()
            for tag in tags
        ]  # fmt: skip
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.005):
            for publisher in self._publishers:
                publisher.send({"n": number})
            number += 1

    def stop(self) -> int:
        """How many were sent by each."""
        self._stop.set()
        self._thread.join()
        return self._publishers[0].next_seq


@pytest.fixture
def sending(session: ringcast.Session) -> Iterator[Sending]:
    publishers = Sending(session, ["in/a", "in/b"])
    yield publishers
    publishers.stop()


def stream(spark: SparkSession, daemon: Any, **options: str) -> DataFrame:
    reader = spark.readStream.format("ringcast").option("tag", "in/*").option("socket", daemon.socket_path)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.option("startingOffsets", "earliest").load()


def start(df: DataFrame, daemon: Any, place: Path, **trigger: Any) -> Any:
    writer = df.selectExpr("tag", "seq", "value.n AS n", "event_time").writeStream.format("ringcast")
    writer = writer.option("tag", "out/x").option("socket", daemon.socket_path).option("depth", "65536")
    return writer.option("checkpointLocation", str(place)).trigger(**trigger).start()


def came(session: ringcast.Session) -> list[tuple[str, int]]:
    if not session.tags("out/x"):
        return []
    tag = session.tag("out/x")
    rows = [row.info for row in tag.publishers(left=True)]
    found = [m.data for info in rows for m in tag.local_history(publisher=info).since(0)]
    assert all(row["n"] == row["seq"] for row in found)
    return [(row["tag"], row["seq"]) for row in found]


def test_stopped_and_started_again(
    spark: SparkSession, daemon: Any, session: ringcast.Session, sending: Sending, tmp_path: Path,
    eventually: Callable[..., None],
) -> None:  # fmt: skip
    df = stream(spark, daemon, maxMessagesPerTrigger="500")
    query = start(df, daemon, tmp_path, processingTime="0 seconds")
    eventually(lambda: came(session) or query.exception())
    assert query.exception() is None
    query.stop()
    # Whatever batch was being worked on is done again, and nothing of it twice.
    count = sending.stop()
    query = start(df, daemon, tmp_path, availableNow=True)
    assert query.awaitTermination(PATIENCE_S)
    assert sorted(came(session)) == sorted((tag, n) for tag in ("in/a", "in/b") for n in range(count))


DRIVER = """
    import sys
    from ringcast.spark.session import open_session

    socket, checkpoint = sys.argv[1:]
    spark = open_session("local[2]", settings={
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.adaptive.enabled": "false",
    })
    df = spark.readStream.format("ringcast").option("tag", "in/*").option("socket", socket)
    df = df.option("startingOffsets", "earliest").option("maxMessagesPerTrigger", "200").load()
    out = df.selectExpr("tag", "seq", "value.n AS n", "event_time").writeStream.format("ringcast")
    out = out.option("tag", "out/x").option("socket", socket).option("depth", "65536")
    out.option("checkpointLocation", checkpoint).start().awaitTermination()
"""


def test_driver_killed_while_it_publishes(
    spark: SparkSession, daemon: Any, session: ringcast.Session, sending: Sending, tmp_path: Path,
    eventually: Callable[..., None],
) -> None:  # fmt: skip
    program = tmp_path / "driver.py"
    program.write_text(textwrap.dedent(DRIVER))
    driver = subprocess.Popen(
        [sys.executable, str(program), daemon.socket_path, str(tmp_path / "c")], stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        published = tmp_path / "c" / "ringcast"
        eventually(lambda: driver.poll() is not None or (list(published.glob("*/staged.arrow")) and came(session)))
        assert driver.poll() is None
    finally:
        os.killpg(driver.pid, signal.SIGKILL)  # its Java and its workers, too
        driver.wait(PATIENCE_S)
    count = sending.stop()
    query = start(stream(spark, daemon), daemon, tmp_path / "c", availableNow=True)
    assert query.awaitTermination(PATIENCE_S)
    assert sorted(came(session)) == sorted((tag, n) for tag in ("in/a", "in/b") for n in range(count))

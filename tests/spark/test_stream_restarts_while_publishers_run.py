"""Spark itself: a query that is stopped and started again while publishers run, and one whose driver is killed."""

from __future__ import annotations

import contextlib
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
from spark_programs import quick

import ringcast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S = 180.0
TAGS = ("in/a", "in/b")
HELD = 32
"""How much the ring of results holds: less than a batch, so that a subscriber who does not read stops its publisher."""


class Sending:
    """Publishers that send numbers until they are told to stop."""

    def __init__(self, session: ringcast.Session) -> None:
        self._stop = threading.Event()
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        self._publishers = [session.tag(tag, codec="json", schema=schema).publisher() for tag in TAGS]
        for _ in range(HELD * 2):
            self._send()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _send(self) -> None:
        for publisher in self._publishers:
            publisher.send({"n": publisher.next_seq})

    def _run(self) -> None:
        # Slowly: the rings are to hold everything for as long as a busy machine may take to start Spark.
        while not self._stop.wait(0.1):
            self._send()

    def stop(self) -> list[tuple[str, int]]:
        """What was sent: (tag, number)."""
        self._stop.set()
        self._thread.join()
        return [(tag, n) for tag in TAGS for n in range(self._publishers[0].next_seq)]


class Results:
    """What the query publishes, received so that nothing is overwritten before."""

    def __init__(self, session: ringcast.Session) -> None:
        self.tag = session.tag("out/x", codec="json", depth=HELD, max_wait_s=PATIENCE_S)
        self._subscriber = self.tag.subscribe(reliable=True)
        self.found: list[tuple[str, int]] = []

    def receive(self, until: threading.Event) -> None:
        """Until that is set and everything that was published is here; a new ring takes a moment to be known."""
        while not until.is_set() or len(self.found) < self._published():
            with contextlib.suppress(TimeoutError):
                for message in self._subscriber.recv_many(HELD, 0.05):
                    assert message.data["n"] == message.data["seq"]
                    self.found.append((message.data["tag"], message.data["seq"]))

    def _published(self) -> int:
        return sum(publisher.counters["sent"] for publisher in self.tag.publishers(left=True))


@pytest.fixture
def sending(session: ringcast.Session) -> Iterator[Sending]:
    publishers = Sending(session)
    yield publishers
    publishers.stop()


@pytest.fixture
def results(session: ringcast.Session) -> Results:
    return Results(session)


def start(spark: SparkSession, daemon: Any, place: Path, **trigger: Any) -> Any:
    read = spark.readStream.format("ringcast").option("tag", "in/*").option("socket", daemon.socket_path)
    df: DataFrame = read.option("startingOffsets", "earliest").option("maxMessagesPerTrigger", "200").load()
    writer = df.selectExpr("tag", "seq", "value.n AS n", "event_time").writeStream.format("ringcast")
    writer = writer.option("tag", "out/x").option("socket", daemon.socket_path)
    return writer.option("checkpointLocation", str(place)).trigger(**trigger).start()


def finish(spark: SparkSession, daemon: Any, place: Path, results: Results) -> None:
    """Run the query to the end of what there is, receiving."""
    done = threading.Event()
    receiving = threading.Thread(target=results.receive, args=(done,))
    receiving.start()
    try:
        assert start(spark, daemon, place, availableNow=True).awaitTermination(PATIENCE_S)
    finally:
        done.set()
        receiving.join()


def test_stopped_and_started_again(
    spark: SparkSession, daemon: Any, sending: Sending, results: Results, tmp_path: Path,
    patiently: Callable[..., None],
) -> None:  # fmt: skip
    stopped = threading.Event()
    receiving = threading.Thread(target=results.receive, args=(stopped,))
    receiving.start()
    query = start(spark, daemon, tmp_path, processingTime="0 seconds")
    try:
        patiently(lambda: results.found or query.exception())
        assert query.exception() is None
    finally:
        query.stop()  # whatever batch was being worked on is done again, and nothing of it twice
        stopped.set()
        receiving.join()
    sent = sending.stop()
    finish(spark, daemon, tmp_path, results)
    assert sorted(results.found) == sorted(sent)


DRIVER = """
    import sys
    from ringcast.spark.session import open_session

    socket, checkpoint = sys.argv[1:]
    spark = open_session("local[2]")
    df = spark.readStream.format("ringcast").option("tag", "in/*").option("socket", socket)
    df = df.option("startingOffsets", "earliest").option("maxMessagesPerTrigger", "200").load()
    out = df.selectExpr("tag", "seq", "value.n AS n", "event_time").writeStream.format("ringcast")
    out = out.option("tag", "out/x").option("socket", socket).option("checkpointLocation", checkpoint)
    out.start().awaitTermination()
"""


def test_driver_killed_while_it_publishes(
    spark: SparkSession, daemon: Any, sending: Sending, results: Results, tmp_path: Path,
    patiently: Callable[..., None],
) -> None:  # fmt: skip
    program = tmp_path / "driver.py"
    program.write_text(textwrap.dedent(DRIVER))
    with open(tmp_path / "said", "wb") as said:
        driver = subprocess.Popen(
            [sys.executable, str(program), daemon.socket_path, str(tmp_path / "c")], stdout=said, stderr=said,
            start_new_session=True, env={**os.environ, **quick()},
        )  # fmt: skip
    try:
        # Nobody reads the results: the ring is full and the publisher waits, in the middle of a batch.
        patiently(lambda: driver.poll() is not None or [p for p in results.tag.publishers() if p.counters["waits"]])
        (publisher,) = results.tag.publishers()
        assert publisher.counters["sent"] == HELD
    finally:
        # The driver first: it would start another worker for the one that is gone.
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(publisher.info.pid, signal.SIGKILL)  # Spark's worker is in a session of its own
    patiently(lambda: not results.tag.publishers())
    sent = sending.stop()
    finish(spark, daemon, tmp_path / "c", results)
    assert sorted(results.found) == sorted(sent)
    assert (tmp_path / "said").read_text() == "", "workers whose Java is gone, and Java itself, write to no terminal"

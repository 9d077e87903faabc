"""Spark's source and sink, and the recorder, where something is away: publishers elsewhere, daemons that die."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

import ringcast
from ringcast.errors import DaemonUnavailable, DataLoss
from ringcast.record.recorder import Recorder
from ringcast.record.recording import Recording
from ringcast.record.writer import RecordingWriter
from ringcast.spark.tags import connections
from ringcast.spark.tags.options import write_options
from ringcast.spark.tags.sink import StreamPublisher
from ringcast.spark.tags.source import RingcastSource

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def _worker(make_daemon: Any) -> Iterator[None]:
    """What is opened in this process, as a worker of Spark would, is closed before the daemons end."""
    yield
    connections.close()


class Query:
    def __init__(self, socket: str, **options: str) -> None:
        source = RingcastSource(CaseInsensitiveDict({"socket": socket, "startingOffsets": "earliest", **options}))
        self.reader: Any = source.streamReader(source.schema())
        self.offset = self.reader.initialOffset()
        self.reader.latestOffset(self.offset, ALL)

    def step(self) -> list[tuple[str, int, int]]:
        end = self.reader.latestOffset(self.offset, ALL)
        parts = self.reader.partitions(self.offset, end)
        rows = [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]
        self.offset = end
        return [(row["node"], row["seq"], row["lost"]) for row in rows]


def send(publisher: ringcast.Publisher, count: int) -> None:
    for _ in range(count):
        publisher.send(b"x")


def test_publishers_of_other_nodes_are_read_like_those_of_this_one(
    make_mesh: Any, eventually: Callable[..., None]
) -> None:
    a, b = make_mesh(2)
    far = a.session.tag("x/y", depth=16, capacity_bytes=4096).publisher()
    send(far, 5)
    eventually(lambda: b.knows("x/y"))
    query = Query(b.daemon.socket_path, tag="x/*")
    assert query.step() == [("a", n, 0) for n in range(5)]
    near = b.session.tag("x/y").publisher()
    send(near, 2)
    send(far, 3)
    assert sorted(query.step()) == [("a", n, 0) for n in (5, 6, 7)] + [("b", n, 0) for n in (0, 1)]
    send(far, 12)
    scaled = Query(b.daemon.socket_path, tag="x/*", every="4")
    assert [row for row in scaled.step() if row[0] == "a"] == [("a", n, 0) for n in (4, 8, 12, 16)]
    send(far, 16)
    with pytest.raises(DataLoss, match="12 of the messages 8 to 35"):
        query.step()


def test_daemon_killed_and_started_again(
    daemon: Any, session: ringcast.Session, eventually: Callable[..., None]
) -> None:
    publisher = session.tag("x/y").publisher()
    send(publisher, 3)
    query = Query(daemon.socket_path, tag="x/y")
    assert len(query.step()) == 3
    daemon.kill()
    send(publisher, 2)
    with pytest.raises(DaemonUnavailable):
        query.step()
    daemon.start()
    eventually(lambda: session.connected and session.tags("x/y") and session.tag("x/y").publishers())
    send(publisher, 1)
    rows: list[tuple[str, int, int]] = []

    def asked() -> bool:
        try:
            rows.extend(query.step())
        except DaemonUnavailable:  # its own session attaches a little later
            return False
        return bool(rows)

    eventually(asked)
    assert [(seq, lost) for _, seq, lost in rows] == [(3, 0), (4, 0), (5, 0)]


def test_daemon_killed_in_the_middle_of_a_batch(
    daemon: Any, session: ringcast.Session, eventually: Callable[..., None]
) -> None:
    publisher = session.tag("x/y").publisher()
    send(publisher, 3)
    query = Query(daemon.socket_path, tag="x/y")
    end = query.reader.latestOffset(query.offset, ALL)
    parts = query.reader.partitions(query.offset, end)
    daemon.kill()
    send(publisher, 2)
    connections.close()  # the task is run by a worker that has nothing open yet
    with pytest.raises(DaemonUnavailable):
        [row for part in parts for row in query.reader.read(part)]
    daemon.start()
    eventually(lambda: session.connected and session.tags("x/y") and session.tag("x/y").publishers())
    # Spark plans the batch again from its journal, and runs it: the same numbers, all of them.
    again = Query(daemon.socket_path, tag="x/y")
    parts = again.reader.partitions(query.offset, end)
    rows = [row for part in parts for batch in again.reader.read(part) for row in batch.to_pylist()]
    assert [(row["seq"], row["lost"]) for row in rows] == [(0, 0), (1, 0), (2, 0)]
    again.offset = end
    assert [seq for _, seq, _ in again.step()] == [3, 4]


def test_daemon_killed_between_what_a_sink_publishes(
    daemon: Any, session: ringcast.Session, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    schema = pa.schema([("n", pa.int64())])
    given = {"tag": "x/out", "socket": daemon.socket_path, "checkpointLocation": str(tmp_path)}
    writer = StreamPublisher(write_options(given), from_arrow_schema(schema))
    batches = [
        writer.write(iter([pa.RecordBatch.from_pydict({"n": [2 * n, 2 * n + 1]}, schema=schema)])) for n in range(3)
    ]
    writer.commit([batches[0]], 0)
    subscriber = session.subscribe("x/out", start="earliest")
    daemon.kill()
    # Its ring is its own: what was begun goes on without a daemon, or fails and is done again. Never twice.
    with contextlib.suppress(DaemonUnavailable):
        writer.commit([batches[1]], 1)
    daemon.start()
    eventually(lambda: session.connected and session.tags("x/out"))
    for number in (1, 2):
        eventually(lambda number=number: _committed(writer, batches[number], number))
    assert [m.data["n"] for m in subscriber.recv_many(6, 30.0)] == list(range(6))
    with pytest.raises(TimeoutError):
        subscriber.recv(timeout=0.05)


def _committed(writer: StreamPublisher, staged: Any, number: int) -> bool:
    try:
        writer.commit([staged], number)
    except DaemonUnavailable:  # its own session attaches a little later
        return False
    return True


def test_recorder_waits_for_a_tag_and_does_not_make_it(
    daemon: Any, session: ringcast.Session, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with RecordingWriter(tmp_path) as writer:
        recorder = Recorder(session, ["not/yet"], writer)
        recorder.on_progress = lambda progress: recorder.stop() if progress.rows >= 2 else None
        running = threading.Thread(target=recorder.run)
        running.start()
        assert recorder.reading.wait(30.0)
        assert session.tags("not/yet") == []
        publisher = session.tag("not/yet", codec="json").publisher()
        for number in range(2):
            publisher.send(number)
        running.join(30.0)
    recording = Recording(tmp_path)
    rows = [row for commit in recording.commits for batch in recording.batches(commit) for row in batch.to_pylist()]
    assert [(row["seq"], row["payload"], row["codec"]) for row in rows] == [(0, b"0", "json"), (1, b"1", "json")]


def test_recorder_of_another_node_goes_on_where_it_stopped(
    make_mesh: Any, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    a, b = make_mesh(2)
    publisher = a.session.tag("x/y", codec="json").publisher()
    for number in range(3):
        publisher.send(number)
    eventually(lambda: b.knows("x/y"))
    for goal in (3, 7):
        with RecordingWriter(tmp_path) as writer:
            recorder = Recorder(b.session, ["x/*"], writer, start="earliest")

            def enough(_: Any, goal: int = goal, writer: Any = writer, recorder: Any = recorder) -> None:
                if writer.committed + writer.pending >= goal:
                    recorder.stop()

            recorder.on_progress = enough
            recorder.run()
        for number in range(3, 7):
            publisher.send(number)
    recording = Recording(tmp_path)
    rows = [row for commit in recording.commits for batch in recording.batches(commit) for row in batch.to_pylist()]
    assert [(row["seq"], row["payload"], row["codec"]) for row in rows] == [
        (n, str(n).encode(), "json") for n in range(7)
    ]

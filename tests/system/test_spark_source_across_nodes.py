"""The Spark source and the recorder where something is away: publishers on other nodes, and daemons that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable

import ringcast
from ringcast.errors import DaemonUnavailable, DataLoss
from ringcast.record.recorder import Recorder
from ringcast.record.recording import Recording
from ringcast.record.writer import RecordingWriter
from ringcast.spark import connections
from ringcast.spark.source import RingcastSource

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

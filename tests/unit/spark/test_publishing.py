"""The sink without Spark: its writer called as Spark calls it, and killed where that hurts most."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import ringcast
from ringcast.errors import DecodeError, TagConflict
from ringcast.spark.tags import sink
from ringcast.spark.tags.options import write_options
from ringcast.spark.tags.sink import BatchPublisher, StreamPublisher
from ringcast.testing.waiting import PATIENCE_S

RECORDS = pa.schema([("y", pa.float64()), ("event_ns", pa.int64())])


def stream_writer(daemon: Any, state: Path, schema: pa.Schema = RECORDS, **options: str) -> StreamPublisher:
    given = {"tag": "a/out", "socket": daemon.socket_path, "checkpointLocation": str(state), **options}
    return StreamPublisher(write_options(given), from_arrow_schema(schema))


def records(first: int, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"y": [float(n) for n in range(first, first + count)], "event_ns": list(range(count))}, schema=RECORDS
    )


def published(session: ringcast.Session, count: int) -> list[Any]:
    """What was published by whomever, in the order of sending."""
    rows = [row.info for row in session.tag("a/out", create=False).publishers(left=True)]
    messages = [m for info in rows for m in session.tag("a/out").local_history(publisher=info).since(0)]
    assert len(messages) == count
    return [m.data for m in sorted(messages, key=lambda m: m.sent_ns)]


def test_a_batch_that_comes_again_is_not_published_again(
    daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    writer = stream_writer(daemon, tmp_path)
    first, second = writer.write(iter([records(0, 3)])), writer.write(iter([records(3, 2)]))
    assert session.tags("a/out") == []  # staged, not published
    writer.commit([first, None], 0)
    writer.commit([first, None], 0)
    stream_writer(daemon, tmp_path).commit([second], 1)
    writer.commit([first], 0)
    assert published(session, 5) == [{"y": float(n)} for n in range(5)]
    message = session.tag("a/out").local_history().at(1)
    assert message.event_ns == 1
    assert session.tag("a/out").attributes.codec == "json"


def test_an_empty_batch_is_remembered(daemon: Any, session: ringcast.Session, tmp_path: Path) -> None:
    writer = stream_writer(daemon, tmp_path)
    writer.commit([writer.write(iter([]))], 0)
    writer.commit([writer.write(iter([records(0, 1)]))], 0)
    assert session.tags("a/out") == []


# Where the program kills itself: before the first message, between it and its mark, half-way, before the batch is
# remembered, and after.
PLACES = {
    "staged": "Ledger.stage, after",
    "first sent": "Ledger.begin, before",
    "half-way": "send 5",
    "all sent": "Ledger.done, before",
    "remembered": "Ledger.done, after",
}
PROGRAM = """
    import os, signal, sys
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from ringcast.spark.tags import sink
    from ringcast.spark.tags.ledger import Ledger
    from ringcast.spark.tags.options import write_options

    place, state, socket = sys.argv[1:]
    def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
    def dying(name, when):
        original = getattr(Ledger, name)
        def method(*given):
            if when == "before": die()
            original(*given)
            die()
        setattr(Ledger, name, method)
    if place.startswith("Ledger."):
        dying(*place.removeprefix("Ledger.").split(", "))
    else:
        original = sink._send
        def send(publisher, rows, ledger):
            original(publisher, rows.slice(0, 5), ledger)
            die()
        sink._send = send
    schema = pa.schema([("y", pa.float64()), ("event_ns", pa.int64())])
    rows = {"y": [float(n) for n in range(10)], "event_ns": list(range(10))}
    writer = sink.StreamPublisher(
        write_options({"tag": "a/out", "socket": socket, "checkpointLocation": state}), from_arrow_schema(schema)
    )
    writer.commit([writer.write(iter([pa.RecordBatch.from_pydict(rows, schema=schema)]))], 7)
"""


@pytest.mark.parametrize("place", PLACES)
def test_killed_while_publishing(
    daemon: Any, session: ringcast.Session, tmp_path: Path, place: str, eventually: Callable[..., None]
) -> None:
    keep = session.tag("a/out", codec="json", depth=64)  # the tag's being there is not what is tested
    state = tmp_path / "state"
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, str(path), PLACES[place], str(state), daemon.socket_path],
        capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    eventually(lambda: not keep.publishers())
    writer = stream_writer(daemon, state)
    again = writer.write(iter([records(0, 10)]))
    writer.commit([again], 7)
    writer.commit([again], 7)
    writer.commit([writer.write(iter([records(10, 1)]))], 8)
    assert published(session, 11) == [{"y": float(n)} for n in range(11)]


def test_a_batch_longer_than_its_ring_waits_for_reliable_readers(
    daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    tag = session.tag("a/out", codec="json", depth=8, max_wait_s=PATIENCE_S)
    found: list[float] = []
    subscriber = tag.subscribe(reliable=True)
    reading = threading.Thread(
        target=lambda: found.extend(subscriber.recv(timeout=PATIENCE_S).data["y"] for _ in range(300))
    )
    reading.start()
    # Two rings, each new to the reader, who must have taken it before more is sent than it holds.
    for number in range(2):
        writer = stream_writer(daemon, tmp_path)
        writer.commit([writer.write(iter([records(150 * number, 150)]))], number)
        for publisher in sink._publishers.values():
            publisher.close()
    reading.join(PATIENCE_S)
    assert sorted(found) == [float(n) for n in range(300)]


def test_payloads_go_as_they_are(daemon: Any, session: ringcast.Session) -> None:
    schema = pa.schema([("payload", pa.binary()), ("event_time", pa.timestamp("us", "UTC")), ("other", pa.string())])
    writer = BatchPublisher(write_options({"tag": "a/raw", "socket": daemon.socket_path}), from_arrow_schema(schema))
    batch = pa.RecordBatch.from_pydict({"payload": [b"\x00\x01"], "event_time": [5], "other": ["x"]}, schema=schema)
    writer.commit([writer.write(iter([batch]))])
    message = session.tag("a/raw").local_history().latest()
    assert (message.data, message.event_ns) == (b"\x00\x01", 5000)


def test_what_does_not_fit_the_tag_is_refused_before_the_first_is_sent(
    daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    tag = session.tag("a/out", codec="json", schema=dict[str, str])
    writer = stream_writer(daemon, tmp_path)
    with pytest.raises(DecodeError):
        writer.commit([writer.write(iter([records(0, 1)]))], 0)
    assert [row.counters.get("sent", 0) for row in tag.publishers()] == [0]
    raw = stream_writer(daemon, tmp_path, pa.schema([("payload", pa.binary())]), codec="numpy")
    with pytest.raises(TagConflict):
        raw.commit([raw.write(iter([pa.RecordBatch.from_pydict({"payload": [b"x"]})]))], 1)


def test_a_state_that_is_elsewhere(daemon: Any) -> None:
    writer = stream_writer(daemon, Path("x"), checkpointLocation="hdfs://somewhere/else")
    with pytest.raises(ValueError, match="stateLocation"):
        writer.commit([writer.write(iter([records(0, 1)]))], 0)

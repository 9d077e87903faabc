"""The source without Spark: its reader called as Spark calls it, against a real daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import ringcast
from ringcast.errors import CheckpointMismatch, DataLoss
from ringcast.record.bronze import SCHEMA
from ringcast.record.recorder import Recorder
from ringcast.record.writer import RecordingWriter
from ringcast.spark.tags.source import RingcastSource, StreamReader, _as_held

ALL = ReadAllAvailable()


class Query:
    """A query: keeps its offset as a checkpoint would."""

    def __init__(self, daemon: Any, offset: Any = None, **options: str) -> None:
        source = RingcastSource(CaseInsensitiveDict({"socket": daemon.socket_path, **options}))
        reader = source.streamReader(source.schema())
        assert isinstance(reader, StreamReader)
        self.reader = reader
        if offset is None:
            offset = self.reader.initialOffset()
            assert self.reader.latestOffset(offset, ALL) is offset
        self.offset = offset

    def step(self, limit: Any = ALL) -> list[dict[str, Any]]:
        end = self.reader.latestOffset(self.offset, limit)
        rows = self.between(self.offset, end)
        self.offset = end
        return rows

    def between(self, start: Any, end: Any) -> list[dict[str, Any]]:
        return [
            row
            for part in self.reader.partitions(start, end)
            for batch in self.reader.read(part)
            for row in batch.to_pylist()
        ]


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["seq"] for row in rows]


def send(publisher: ringcast.Publisher, count: int) -> None:
    for _ in range(count):
        publisher.send(b"x")


def test_each_message_once_across_steps_and_restarts(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b").publisher()
    send(publisher, 5)
    query = Query(daemon, tag="a/b", startingOffsets="earliest")
    assert numbers(query.step()) == [0, 1, 2, 3, 4]
    assert query.step() == []
    send(publisher, 3)
    before = query.offset
    assert numbers(query.step()) == [5, 6, 7]
    # The same batch again, as after a crash; and then on, in another process with the checkpoint's offset.
    assert numbers(query.between(before, query.offset)) == [5, 6, 7]
    send(publisher, 2)
    assert numbers(Query(daemon, query.offset, tag="a/b").step()) == [8, 9]


def test_publishers_and_tags_come_and_go(daemon: Any, session: ringcast.Session) -> None:
    query = Query(daemon, tag="a/*")
    assert query.step() == []
    first = session.tag("a/one").publisher()
    send(first, 2)
    assert [(row["tag"], row["seq"], row["lost"]) for row in query.step()] == [("a/one", 0, 0), ("a/one", 1, 0)]
    send(first, 1)
    first.close()
    second = session.tag("a/two").publisher()
    again = session.tag("a/one").publisher()
    send(second, 1)
    send(again, 1)
    rows = query.step()
    assert sorted((row["tag"], row["seq"]) for row in rows) == [("a/one", 0), ("a/one", 2), ("a/two", 0)]
    assert len({row["incarnation"] for row in rows}) == 3
    assert query.step() == []


def test_beginnings(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b").publisher()
    send(publisher, 3)
    middle_ns = session.tag("a/b").local_history().latest().sent_ns + 1
    while datetime.now(UTC).timestamp() * 1e9 < middle_ns + 10_000:
        pass
    middle = datetime.now(UTC)
    while datetime.now(UTC) == middle:
        pass
    send(publisher, 3)
    begin = {
        "latest": [], "earliest": [0, 1, 2, 3, 4, 5], "4": [4, 5], "99": [], middle.isoformat(): [3, 4, 5],
        f'{{"{publisher.incarnation:x}": 2}}': [2, 3, 4, 5],
    }  # fmt: skip
    for where, expected in begin.items():
        assert numbers(Query(daemon, tag="a/b", startingOffsets=where).step()) == expected, where


def test_limits_and_available_now(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b").publisher()
    send(publisher, 10)
    query = Query(daemon, tag="a/b", startingOffsets="earliest", maxMessagesPerTrigger="4")
    limit = query.reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    query.reader.prepareForTriggerAvailableNow()
    send(publisher, 5)
    session.tag("a/b").publisher().send(b"later")
    assert [len(query.step(limit)) for _ in range(4)] == [4, 4, 2, 0]


def test_overwritten_before_it_was_read(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b", depth=8, capacity_bytes=4096).publisher()
    send(publisher, 1)
    strict = Query(daemon, tag="a/b")
    lenient = Query(daemon, tag="a/b", failOnDataLoss="false")
    send(publisher, 20)
    with pytest.raises(DataLoss, match=r"12 of the messages 1 to 20.*failOnDataLoss") as caught:
        strict.step()
    assert (caught.value.lost, caught.value.first, caught.value.last) == (12, 1, 20)
    rows = lenient.step()
    assert numbers(rows) == list(range(13, 21))
    assert [row["lost"] for row in rows] == [12] + [0] * 7


def test_what_was_held_at_the_beginning_may_go(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b", depth=8, capacity_bytes=4096).publisher()
    send(publisher, 8)
    query = Query(daemon, tag="a/b", startingOffsets="earliest")
    send(publisher, 4)
    assert numbers(query.step()) == list(range(4, 12))
    send(publisher, 20)
    with pytest.raises(DataLoss):
        query.step()


def test_scaling_is_not_loss(daemon: Any, session: ringcast.Session) -> None:
    publisher = session.tag("a/b").publisher()
    send(publisher, 10)
    rows = Query(daemon, tag="a/b", startingOffsets="earliest", every="4").step()
    assert [(row["seq"], row["lost"], row["every"]) for row in rows] == [(0, 0, 4), (4, 0, 4), (8, 0, 4)]


def test_checkpoint_of_another_tag(daemon: Any, session: ringcast.Session) -> None:
    send(session.tag("a/b").publisher(), 1)
    offset = Query(daemon, tag="a/b", startingOffsets="earliest").offset
    other = Query(daemon, offset, tag="a/c")
    with pytest.raises(CheckpointMismatch, match=r"'a/b'.*'a/c'.*checkpointLocation"):
        other.step()


def test_a_tag_that_is_not_there_yet(daemon: Any, session: ringcast.Session) -> None:
    query = Query(daemon, tag="not/yet")
    assert query.step() == []
    # Reading must not have made it: its publisher chooses the codec.
    assert session.tags("not/yet") == []
    publisher = session.tag("not/yet", codec="json").publisher()
    publisher.send({"a": 1})
    assert [row["payload"] for row in query.step()] == [b'{"a":1}']


def test_values_and_those_that_do_not_decode(daemon: Any, session: ringcast.Session) -> None:
    tag = session.tag("a/b", codec="json", schema=dict[str, int])
    tag.publisher().send({"x": 1})
    tag.publisher(encoded=True).send(b"nonsense")
    rows = Query(daemon, tag="a/b", startingOffsets="earliest").step()
    assert sorted((row["payload"], row["value"]) for row in rows) == [(b"nonsense", None), (b'{"x":1}', [("x", 1)])]


def test_a_tag_that_is_made_anew_with_another_schema(daemon: Any, session: ringcast.Session) -> None:
    tag = session.tag("a/b", codec="json", schema={"type": "object", "properties": {"x": {"type": "integer"}}})
    tag.publisher().send({"x": 1})
    query = Query(daemon, tag="a/b", startingOffsets="earliest")
    assert [row["value"] for row in query.step()] == [{"x": 1}]
    tag.destroy(force=True)
    other = session.tag("a/b", codec="json", schema={"type": "object", "properties": {"x": {"type": "string"}}})
    other.publisher().send({"x": "one"})
    # The query goes on with the columns it has: what does not fit them is null, and the bytes are beside it.
    (row,) = query.step()
    assert (row["payload"], row["value"], row["lost"]) == (b'{"x":"one"}', None, 0)
    anew = Query(daemon, tag="a/b", startingOffsets="earliest").step()
    assert [row["value"] for row in anew] == [{"x": "one"}]


def test_recording_and_ring_are_one_table(
    daemon: Any, session: ringcast.Session, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    publisher = session.tag("a/b", depth=8, capacity_bytes=4096).publisher()
    with RecordingWriter(tmp_path) as writer:
        recorder = Recorder(session, ["a/b"], writer, start="earliest")
        for _ in range(2):
            send(publisher, 8)
            recorder = Recorder(session, ["a/b"], writer, start="earliest")
            recorder.on_progress = lambda progress, goal=publisher.next_seq: (
                recorder.stop() if writer.committed + writer.pending >= goal else None  # noqa: B023
            )
            recorder.run()
    send(publisher, 5)
    together = Query(daemon, tag="a/b", path=str(tmp_path), startingOffsets="earliest")
    begin = together.offset
    assert numbers(together.step()) == list(range(21))
    only = Query(daemon, path=str(tmp_path))
    assert numbers(only.step()) == list(range(16))
    scaled = Query(daemon, path=str(tmp_path), every="5").step()
    assert [(row["seq"], row["lost"]) for row in scaled] == [(0, 0), (5, 0), (10, 0), (15, 0)]
    # By time, in what only the recording has, and in what only the ring has.
    sent = {row["seq"]: row["sent_ns"] for row in together.between(begin, together.offset)}
    for seq in (3, 18):
        at = datetime.fromtimestamp(sent[seq] // 1000 / 1e6, UTC).isoformat()
        first = min(n for n in sent if sent[n] >= sent[seq] // 1000 * 1000)
        later = Query(daemon, tag="a/b", path=str(tmp_path), startingOffsets=at)
        assert numbers(later.step()) == list(range(first, 21))


def record(session: ringcast.Session, path: Path, goal: int, **how: Any) -> None:
    """Until that many rows are committed there."""
    with RecordingWriter(path) as writer:
        recorder = Recorder(session, ["a/b"], writer, **how)
        recorder.on_progress = lambda _: recorder.stop() if writer.committed + writer.pending >= goal else None
        recorder.run()


def test_a_recorder_that_came_late_does_not_hide_what_the_ring_has(
    daemon: Any, session: ringcast.Session, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    publisher = session.tag("a/b").publisher()
    send(publisher, 5)
    with RecordingWriter(tmp_path) as writer:
        recorder = Recorder(session, ["a/b"], writer, start="new")
        recorder.on_progress = lambda _: recorder.stop() if writer.committed + writer.pending >= 3 else None
        thread = threading.Thread(target=recorder.run)
        thread.start()
        recorder.reading.wait(30)
        send(publisher, 3)
        thread.join(30)
    send(publisher, 2)
    query = Query(daemon, tag="a/b", path=str(tmp_path), startingOffsets="earliest")
    assert numbers(query.step()) == list(range(10))


def test_a_recording_that_left_messages_out_does_not_stand_in_for_the_ring(
    daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    publisher = session.tag("a/b", depth=16, capacity_bytes=8192).publisher()
    send(publisher, 16)
    record(session, tmp_path, 4, start="earliest", every=5)
    held = Query(daemon, tag="a/b", path=str(tmp_path), startingOffsets="earliest").step()
    assert [(row["seq"], row["every"]) for row in held] == [(n, 1) for n in range(16)]
    send(publisher, 6)  # and six of those that it left out are overwritten
    options = {"tag": "a/b", "path": str(tmp_path), "startingOffsets": "earliest"}
    some = Query(daemon, **options, failOnDataLoss="false").step()
    assert [(row["seq"], row["every"]) for row in some] == [(0, 5), (5, 5), *((n, 1) for n in range(6, 22))]
    scaled = Query(daemon, **options, every="10").step()
    assert [(row["seq"], row["every"]) for row in scaled] == [(0, 10), (10, 10), (20, 10)]


def test_a_stream_that_stalled_goes_on_from_the_recording_or_stops_with_numbers(
    daemon: Any, session: ringcast.Session, tmp_path: Path
) -> None:
    publisher = session.tag("a/b", depth=8, capacity_bytes=4096).publisher()
    send(publisher, 4)
    RecordingWriter(tmp_path / "kept").close()
    query = Query(daemon, tag="a/b", path=str(tmp_path / "kept"), startingOffsets="earliest")
    assert numbers(query.step()) == [0, 1, 2, 3]
    send(publisher, 8)
    record(session, tmp_path / "kept", 8, start="earliest")
    send(publisher, 8)  # the ring has 12 to 19 now, the recording 4 to 11
    assert numbers(query.step()) == list(range(4, 20))
    send(publisher, 20)
    with pytest.raises(DataLoss, match=r"12 of the messages 20 to 39") as caught:
        query.step()
    assert caught.value.lost == 12


def test_what_was_received_live_has_no_time_of_the_pull(daemon: Any, session: ringcast.Session) -> None:
    send(session.tag("a/b").publisher(), 3)
    rows = Query(daemon, tag="a/b", startingOffsets="earliest").step()
    again = Query(daemon, tag="a/b", startingOffsets="earliest").step()
    assert [row["received_ns"] for row in rows] == [row["sent_ns"] for row in rows]
    assert rows == again, "however late it is pulled"


def test_what_is_pulled_from_another_node_has_no_time_of_the_pull_either() -> None:
    values = {name: [None, None] for name in SCHEMA.names} | {"sent_ns": [100, 900], "received_ns": [500, 500]}
    rows = pa.RecordBatch.from_pydict(values, pa.schema([field.with_nullable(True) for field in SCHEMA]))
    # The second one's clock is ahead: it was received at the latest when it was pulled.
    assert _as_held(rows, local=False)["received_ns"].to_pylist() == [100, 500]


def test_columns_may_be_chosen(daemon: Any, session: ringcast.Session) -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    send(session.tag("a/b").publisher(), 2)
    source = RingcastSource(CaseInsensitiveDict({"socket": daemon.socket_path, "tag": "a/b"}))
    chosen = StructType([StructField("seq", LongType(), False), StructField("tag", StringType(), False)])
    reader = source.reader(chosen)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"seq": 0, "tag": "a/b"}, {"seq": 1, "tag": "a/b"}]
    with pytest.raises(ValueError, match="no column 'sequence'"):
        source.reader(StructType([StructField("sequence", LongType())]))

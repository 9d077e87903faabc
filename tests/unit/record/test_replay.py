"""Replay keeps bytes, event times and the time between messages; MCAP and back gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import ringcast
from ringcast.errors import RecordingError
from ringcast.model.tag import TagAttributes
from ringcast.record.bronze import SCHEMA, schema_id
from ringcast.record.mcap_file import McapSink, read_mcap
from ringcast.record.replay import AS_FAST_AS_POSSIBLE, Renaming, Replay, Timeline, open_recording
from ringcast.record.writer import RecordingWriter


class Pose(msgspec.Struct):
    x: float


ATTRIBUTES = TagAttributes(
    codec="json", schema={"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
)
ID = schema_id(ATTRIBUTES.schema)


def rows(times_ms: list[int], incarnation: str = "00000000000000aa", first: int = 0) -> pa.RecordBatch:
    made = [
        {
            "tag": "uav/pose", "publisher": "n/p/1", "incarnation": incarnation, "node": "n", "seq": first + number,
            "every": 1, "event_time": at * 1000, "event_ns": at * 1_000_000 - 5, "sent_ns": at * 1_000_000 - 5,
            "received_ns": at * 1_000_000 + 7, "lost": 0, "discardable": False, "codec": "json", "schema_id": ID,
            "payload": b'{"x":%d}' % at,
        }
        for number, at in enumerate(times_ms)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(made, SCHEMA).set_column(
        6,
        SCHEMA.field("event_time"),
        pa.array([row["event_ns"] // 1000 for row in made]).view(pa.timestamp("us", "UTC")),
    )


class FakeClock:
    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def __call__(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def test_timeline_scales_and_never_waits_backwards() -> None:
    timeline = Timeline(2.0, 1000)
    assert [timeline.due_ns(at) for at in (500, 700, 400)] == [1000, 1100, 950]
    assert Timeline(AS_FAST_AS_POSSIBLE, 5).due_ns(10**18) == 5
    with pytest.raises(ValueError, match="above 0"):
        Timeline(0, 0)


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_time_between_messages_is_kept(session: ringcast.Session, speed: float) -> None:
    clock = FakeClock()
    subscriber = session.subscribe("**")
    sent_at: list[int] = []
    replay = Replay(session, speed=speed, clock_ns=clock, sleep=clock.sleep)
    batches = [rows([0, 100, 5000]), rows([5300], first=3)]
    original = ringcast.Publisher.__init__

    def watched(publisher: Any, *arguments: Any, **named: Any) -> None:
        original(publisher, *arguments, **named)
        send = publisher.send

        def noting(*arguments: Any, **named: Any) -> int:
            sent_at.append(clock.now_ns)
            return send(*arguments, **named)

        publisher.send = noting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ringcast.Publisher, "__init__", watched)
        assert replay.run(iter([(batch, {"uav/pose": ATTRIBUTES}) for batch in batches])) == 4
    began = sent_at[0]
    assert [round((at - began) / 1e6 * speed) for at in sent_at] == [0, 100, 5000, 5300]
    messages = subscriber.recv_many(4, 5.0)
    assert [message.data for message in messages] == [{"x": at} for at in (0, 100, 5000, 5300)]
    assert [message.event_ns for message in messages] == [at * 1_000_000 - 5 for at in (0, 100, 5000, 5300)]


def test_streams_stay_apart_under_new_names(session: ringcast.Session, tmp_path: Path) -> None:
    with RecordingWriter(tmp_path) as writer:
        assert ID is not None
        assert ATTRIBUTES.schema is not None
        writer.add_schema(ID, ATTRIBUTES.schema)
        writer.write(rows([0, 2]))
        writer.write(rows([1, 3], "00000000000000bb"))
        writer.commit()
    subscriber = session.subscribe("old/**")
    replay = Replay(session, speed=AS_FAST_AS_POSSIBLE, rename=Renaming(prefix="old/"))
    assert replay.run(open_recording(str(tmp_path))) == 4
    messages = subscriber.recv_many(4, 5.0)
    by_stream: dict[int, list[float]] = {}
    for message in messages:
        assert message.tag == "old/uav/pose"
        by_stream.setdefault(message.publisher.incarnation, []).append(message.data["x"])
    assert sorted(by_stream.values()) == [[0, 2], [1, 3]]
    assert session.tag("old/uav/pose").attributes.schema == ATTRIBUTES.schema


def test_mcap_and_back(tmp_path: Path) -> None:
    path = tmp_path / "f.mcap"
    batch = rows([10, 20, 30])
    sink = McapSink(path)
    sink(batch, {"uav/pose": ATTRIBUTES})
    assert not path.exists()
    sink.close()
    (found, attributes), *rest = list(read_mcap(path))
    assert not rest
    assert found.to_pylist() == batch.to_pylist()
    assert attributes == {"uav/pose": ATTRIBUTES}


def test_half_an_mcap_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "f.mcap"
    with McapSink(path) as sink:
        sink(rows([10, 20, 30]), {})
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RecordingError, match="no whole MCAP"):
        list(read_mcap(path))

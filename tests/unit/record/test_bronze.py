"""Rows of the bronze schema, straight from a ring's columns."""

from __future__ import annotations

import pyarrow as pa

import ringcast
from ringcast.record.bronze import NAMES, SCHEMA, Format, schema_id, to_arrow

MANY = 3


def test_schema_is_the_agreed_one() -> None:
    assert NAMES == [
        "tag", "publisher", "incarnation", "node", "seq", "every", "event_time", "event_ns", "sent_ns", "received_ns",
        "lost", "discardable", "codec", "schema_id", "payload",
    ]  # fmt: skip
    assert [field.name for field in SCHEMA if field.nullable] == ["schema_id"]
    assert SCHEMA.field("event_time").type == pa.timestamp("us", "UTC")


def test_rows_hold_what_was_sent(session: ringcast.Session) -> None:
    tag = session.tag("a/b")
    subscriber = tag.subscribe()
    publishers = [tag.publisher() for _ in range(MANY)]
    for number, publisher in enumerate(publishers):
        publisher.send(b"x" * number, event_ns=1_234_567 + number, discardable=number == 1)
    columns = subscriber.recv_columns(10, 5.0)
    assert len(columns) == MANY
    batch = to_arrow(columns, [Format("json", "s")] * len(columns.rings), every=4)
    batch.validate(full=True)
    rows = sorted(batch.to_pylist(), key=lambda row: row["event_ns"])
    assert [row["payload"] for row in rows] == [b"", b"x", b"xx"]
    assert [row["incarnation"] for row in rows] == [f"{p.incarnation:016x}" for p in publishers]
    assert [row["discardable"] for row in rows] == [False, True, False]
    assert {row["event_time"].microsecond for row in rows} == {1234}
    assert {(row["tag"], row["every"], row["codec"], row["schema_id"]) for row in rows} == {("a/b", 4, "json", "s")}


def test_columns_stop_at_bytes_and_rows_and_go_on(session: ringcast.Session) -> None:
    tag = session.tag("a/b")
    subscriber = tag.subscribe()
    publisher = tag.publisher()
    for _ in range(10):
        publisher.send(b"x" * 100)
    assert len(subscriber.recv_columns(4, 1.0)) == 4
    assert list(subscriber.recv_columns(100, 1.0, most_bytes=250).seq) == [4, 5]
    # The first one is taken however large it is, or nothing would ever be.
    assert list(subscriber.recv_columns(100, 1.0, most_bytes=1).seq) == [6]
    assert list(subscriber.recv_columns(100, 1.0).seq) == [7, 8, 9]


def test_range_tells_what_is_gone(session: ringcast.Session) -> None:
    tag = session.tag("a/b", depth=8, capacity_bytes=4096)
    publisher = tag.publisher()
    for _ in range(20):
        publisher.send(b"x")
    history = tag.local_history()
    columns = history.range_columns(0, 15)
    assert (list(columns.seq), list(columns.lost[:2]), columns.following) == ([12, 13, 14, 15], [12, 0], 16)
    gone = history.range_columns(2, 9)
    assert (len(gone), gone.lost_at_end, gone.following) == (0, 8, 10)
    # Scaling is not loss: of 0..19 every fourth is due, and of those 12 and 16 are held.
    scaled = history.range_columns(1, 19, every=4)
    assert (list(scaled.seq), list(scaled.lost)) == ([12, 16], [2, 0])
    ahead = history.range_columns(18, 100)
    assert (list(ahead.seq), ahead.following, ahead.lost_at_end) == ([18, 19], 20, 0)


def test_equal_schemas_have_one_id() -> None:
    assert schema_id({"a": 1, "b": [2]}) == schema_id({"b": [2], "a": 1})
    assert schema_id({"a": 1}) != schema_id({"a": 2})
    assert schema_id(None) is None

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from ringcast.daemon.table.compact import compact
from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, Row, SubscriberRow, TagRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Setting, Wanted
from ringcast.model.tag import TagAttributes


def tag(name: str, **more: object) -> TagRow:
    return TagRow(name=name, attributes=TagAttributes(depth=8, transport="tcp"), primary="n2", born=1, **more)


def publisher(number: int, name: str) -> PublisherRow:
    info = PublisherInfo(id=number, node="n2", tag=name, incarnation=7, pid=90_000, user="u", program="camera")
    return PublisherRow(info=info, depth=8, capacity_bytes=4096)


def subscriber(number: int, pattern: str, wanted: Wanted) -> SubscriberRow:
    info = SubscriberInfo(id=number, node="n2", pattern=pattern, pid=90_000, user="u", program="viewer")
    return SubscriberRow(info=info, wanted=wanted)


def received(*rows: Row) -> Delta:
    """As it comes from another node: nothing in one row is an object of another."""
    entries = [Entry(row.key, version, row) for version, row in enumerate(rows, 1)]
    delta = Delta(node="n2", incarnation=1, since=0, through=len(rows), floor=0, entries=entries)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(delta), type=Delta)


def compacted(*rows: Row) -> list[Row | None]:
    return [entry.row for entry in compact(received(*rows), lambda name: name).entries]


@pytest.mark.parametrize(
    "row",
    [
        tag("a"),
        tag("a", settings={"": Setting(at="publisher")}, stamps={"": (1, "n1")}, backup="n3", destroyed=True),
        TagRow(name="a", attributes=TagAttributes(schema={"type": "object"}), primary="n2"),
        publisher(1, "a"),
        subscriber(1, "a/*", Wanted(size=(640, 480), range_size=((320, 240), (640, 480)), rate_hz=2.5)),
    ],
)
def test_a_compact_row_is_the_row(row: Row) -> None:
    assert compacted(row) == [row]


def test_a_tombstone_stays_one() -> None:
    delta = Delta(node="n2", incarnation=1, since=0, through=1, floor=0, entries=[Entry("tag:a", 1, None)])
    assert compact(delta, lambda name: name) == delta


def test_what_rows_have_in_common_is_held_once() -> None:
    wanted = Wanted(rate_hz=2.0, range_hz=(1.0, 4.0))
    one, pub, sub, other, another = compacted(
        tag("a/b"), publisher(1, "a/b"), subscriber(2, "a/b", wanted), tag("c"), subscriber(3, "c", wanted)
    )
    assert isinstance(one, TagRow)
    assert isinstance(other, TagRow)
    assert isinstance(pub, PublisherRow)
    assert isinstance(sub, SubscriberRow)
    assert isinstance(another, SubscriberRow)
    assert one.attributes is other.attributes
    assert one.settings is other.settings is one.placed
    assert one.primary is other.primary is pub.info.node is sub.info.node
    assert one.name is pub.info.tag is sub.info.pattern
    assert sub.wanted is another.wanted
    assert pub.info.pid is another.info.pid
    assert sub.info.program is another.info.program


def test_a_table_holds_one_name_whenever_its_rows_come() -> None:
    table = TagTable("n1", 1)
    delta = received(tag("a/b"), publisher(1, "a/b"), subscriber(2, "a/b", Wanted()))
    for entry in delta.entries:
        table.apply([replace(delta, since=entry.version - 1, through=entry.version, entries=[entry])])
    held = table.tag("a/b")
    assert held is not None
    assert table.publishers("a/b")[0].info.tag is held.name
    assert table.subscribers("a/b")[0].info.pattern is held.name

"""Rows of other nodes: which are taken in, and that the others of the same delta are not lost with a bad one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from ringcast.control.limits import MAX_BORN, MAX_LABEL_CHARS, MAX_SETTINGS_PER_TAG, MAX_TERM
from ringcast.daemon.table.admission import admit
from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, Row, SubscriberRow, TagRow
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.place import Setting
from ringcast.model.tag import TagAttributes

TAG = TagRow(name="lab/temp", attributes=TagAttributes(), primary="a", backup="b", settings={"": Setting(at="x")})
PUBLISHER = PublisherRow(
    info=PublisherInfo(id=1, node="a", tag="lab/temp", incarnation=2**64 - 1, pid=1, user="u", program="p"),
    depth=8, capacity_bytes=64,
)  # fmt: skip
SUBSCRIBER = SubscriberRow(info=SubscriberInfo(id=1, node="a", pattern="lab/*", pid=1, user="u"))


def changed(row: Any, **fields: Any) -> Row:
    """The row with other fields, its own or those of its info."""
    own = {name: value for name, value in fields.items() if name in row.__struct_fields__}
    rest = {name: value for name, value in fields.items() if name not in own}
    if rest:
        own["info"] = msgspec.structs.replace(row.info, **rest)
    found: Row = msgspec.structs.replace(row, **own)
    return found


BAD_NAMES = [
    changed(TAG, name="a\nb"), changed(TAG, name=""), changed(TAG, name="x" * 256), changed(TAG, name="a/*"),
    changed(TAG, backup="b\x1b[2J"), changed(TAG, backup="x" * 65), changed(TAG, settings={"b\n": Setting()}),
    changed(TAG, settings={"": Setting(transport="u\x07dp")}), changed(TAG, settings={"": Setting(at="x" * 256)}),
    changed(TAG, settings={f"n{i}": Setting() for i in range(MAX_SETTINGS_PER_TAG + 1)}),
    changed(PUBLISHER, tag="a//b"), changed(PUBLISHER, tag="**"), changed(PUBLISHER, user="u\x00"),
    changed(PUBLISHER, program="p" * (MAX_LABEL_CHARS + 1)), changed(SUBSCRIBER, pattern="a*"),
    changed(SUBSCRIBER, program="\x1b]0;owned\x07"),
]  # fmt: skip
BAD_NUMBERS = [
    changed(TAG, born=-1), changed(TAG, born=MAX_BORN + 1), changed(TAG, term=MAX_TERM + 1), changed(TAG, term=-1),
    changed(TAG, attributes=TagAttributes(depth=0)), changed(TAG, attributes=TagAttributes(capacity_bytes=2**50)),
    changed(TAG, attributes=TagAttributes(schema={"x": "y" * 40_000})), changed(PUBLISHER, depth=0),
    changed(PUBLISHER, capacity_bytes=-1), changed(PUBLISHER, end=-1), changed(PUBLISHER, incarnation=-1),
    changed(PUBLISHER, id=-1), changed(SUBSCRIBER, id=2**63), changed(SUBSCRIBER, pid=-5),
    changed(PUBLISHER, since=-1), changed(SUBSCRIBER, since=MAX_BORN + 1), changed(SUBSCRIBER, transport="x" * 4000),
    changed(SUBSCRIBER, transport="nak\n"),
]  # fmt: skip


def delta(*rows: Row | None) -> Delta:
    entries = [Entry(row.key if row else "tag:gone", number, row) for number, row in enumerate(rows, 1)]
    return Delta(node="a", incarnation=1, since=0, through=len(rows), floor=0, entries=entries)


def test_good_rows_and_tombstones_are_taken_in() -> None:
    refused: Counter[str] = Counter()
    good = delta(TAG, PUBLISHER, SUBSCRIBER, None, changed(TAG, name="@ringcast/x", backup="", born=MAX_BORN))
    assert admit(good, refused) is good
    assert not refused


@pytest.mark.parametrize("row", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_a_bad_name_costs_its_row_only(row: Row) -> None:
    refused: Counter[str] = Counter()
    assert [entry.row for entry in admit(delta(PUBLISHER, row, None), refused).entries] == [PUBLISHER, None]
    assert refused == {"bad name in a row": 1}


@pytest.mark.parametrize("row", BAD_NUMBERS, ids=range(len(BAD_NUMBERS)))
def test_a_number_that_cannot_be_costs_its_row_only(row: Row) -> None:
    refused: Counter[str] = Counter()
    assert [entry.row for entry in admit(delta(PUBLISHER, row, None), refused).entries] == [PUBLISHER, None]
    assert refused == {"implausible row": 1}

"""Places and wishes in rows of other nodes: taken in when an honest node could have written them."""

from __future__ import annotations

from collections import Counter

import pytest

from ringcast.control.limits import MAX_PLACED_PER_TAG, MAX_WHY_CHARS
from ringcast.daemon.table.admission import admit, is_receiver
from ringcast.daemon.table.rows import Delta, Entry, Row, SubscriberRow, TagRow
from ringcast.model.identity import SubscriberInfo
from ringcast.model.place import Placed, Setting, Wanted
from ringcast.model.tag import TagAttributes


def admitted(row: Row) -> bool:
    delta = Delta(node="a", incarnation=1, since=0, through=1, floor=0, entries=[Entry(row.key, 1, row)])
    return bool(admit(delta, Counter()).entries)


def tag(**fields: object) -> TagRow:
    return TagRow(name="t", attributes=TagAttributes(), primary="a", **fields)


def subscriber(wanted: Wanted) -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=1, node="a", pattern="t", pid=1, user="u"), wanted=wanted)


@pytest.mark.parametrize("key", ["b", "b#1", "b.c#123456"])
def test_receivers(key: str) -> None:
    assert is_receiver(key)
    assert admitted(tag(settings={key: Setting(at="publisher")}, placed={key: Placed("node:c", "why")}))


@pytest.mark.parametrize("key", ["b#", "#1", "b#x", "b#1#2", "b#-1", "b c", "b#\u0661", "b#" + "1" * 20])
def test_what_is_no_receiver(key: str) -> None:
    assert not is_receiver(key)
    assert not admitted(tag(settings={key: Setting(at="publisher")}))
    assert not admitted(tag(placed={key: Placed("publisher")}))


@pytest.mark.parametrize(
    "placed",
    [
        {"b#1": Placed("x" * 300)},
        {"b#1": Placed("publisher", "y" * (MAX_WHY_CHARS + 1))},
        {"b#1": Placed("publisher", "a\x1b[2J")},
        {f"b#{i}": Placed("publisher") for i in range(MAX_PLACED_PER_TAG + 1)},
    ],
)
def test_places_that_are_not_taken_in(placed: dict[str, Placed]) -> None:
    assert not admitted(tag(placed=placed))


@pytest.mark.parametrize(
    ("wanted", "good"),
    [
        (Wanted(), True),
        (Wanted(every=4, at="node:b", size=(640, 480)), True),
        (Wanted(every=0), False),
        (Wanted(size=(0, 1)), False),
        (Wanted(rate_hz=-1.0), False),
        (Wanted(rate_hz=float("nan")), False),
        (Wanted(at="x\n"), False),
    ],
)
def test_wishes(wanted: Wanted, good: bool) -> None:
    assert admitted(subscriber(wanted)) == good

"""Chunks go from rings into the tables of those who sent them."""

from __future__ import annotations

from typing import Any

import pytest

import ringcast
from ringcast import _core
from ringcast.client.decoding import Undecoded
from ringcast.client.rings.subscribed import SubscribedRings
from ringcast.testing.waiting import PATIENCE_S


@pytest.fixture
def tag(session: ringcast.Session) -> Any:
    return session.tag("plant", codec="variables")


@pytest.fixture
def rings(session: ringcast.Session, tag: Any) -> Any:
    made = SubscribedRings(session.attachment, "plant", Undecoded(), tag=tag)
    yield made
    made.close()


def chunks(**values: float) -> list[bytes]:
    table = _core.VariableTable()
    for name, value in values.items():
        table.add(name, value)
    return table.collect(full=True, period_ns=0, frame_ms=0, limit=1350)


def received(rings: Any, find: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while sum(len(part[1]) for part in found) < count:
        found += rings.recv_chunks(find, 100, PATIENCE_S)
    return found


def test_each_owners_chunks_go_into_its_table_which_is_asked_for_once(tag: Any, rings: Any) -> None:
    tables: dict[int, _core.VariableTable] = {}

    def find(publisher: Any) -> _core.VariableTable:
        assert publisher.incarnation not in tables, "asked for again"
        return tables.setdefault(publisher.incarnation, _core.VariableTable())

    owners = [tag.publisher(encoded=True) for _ in range(2)]
    for turn in range(3):
        for number, owner in enumerate(owners):
            owner.send_many(chunks(**{f"v{number}": 10.0 * turn + number}))
        parts = received(rings, find, 2)
        assert {id(part[0]) for part in parts} == {id(table) for table in tables.values()}
        assert all(part[1].indices().tolist() == [0] for part in parts)
        for number, owner in enumerate(owners):
            assert tables[owner.incarnation].get(f"v{number}") == 10.0 * turn + number


def test_what_is_no_chunk_is_counted_and_disturbs_nothing(tag: Any, rings: Any) -> None:
    table = _core.VariableTable()
    owner = tag.publisher(encoded=True)
    owner.send_many([b"", b"no chunk", *chunks(rpm=800.0), b"\xff" * 64])
    received(rings, lambda _: table, 1)
    owner.send_many(chunks(rpm=900.0))
    received(rings, lambda _: table, 1)
    assert table.get("rpm") == 900.0
    assert table.counters()["malformed"] == 3


def test_what_is_no_table_is_refused_and_nothing_is_lost_by_it(tag: Any, rings: Any) -> None:
    owner = tag.publisher(encoded=True)
    owner.send_many(chunks(rpm=800.0))
    with pytest.raises(TypeError, match="received into a VariableTable"):
        rings.recv_chunks(lambda _: {}, 100, PATIENCE_S)
    table = _core.VariableTable()
    received(rings, lambda _: table, 1)
    assert table.get("rpm") == 800.0
    with pytest.raises(TimeoutError):
        rings.recv_chunks(lambda _: table, 100, 0)

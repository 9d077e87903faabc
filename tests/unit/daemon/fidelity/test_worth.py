"""Which stream is the best, by what its publisher says, declares, and its tag holds."""

from __future__ import annotations

import pytest

from ringcast.daemon.fidelity.worth import best_tag
from ringcast.daemon.table.rows import PublisherRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo
from ringcast.model.profile import Profile


@pytest.fixture
def table():
    return TagTable("n1", 1)


def published(table, tag, number, *, schema=None, codec="bytes", **row):
    if table.tag(tag) is None:
        table.open_tag(tag, {"codec": codec, "schema": schema}, create=True)
    info = PublisherInfo(id=number, node="n1", tag=tag, incarnation=number, pid=1, user="", program="")
    table.put(PublisherRow(info=info, depth=1, capacity_bytes=1, **row))


def test_nobody_is_the_best_of_none(table):
    assert best_tag(table, "cam/*") == ""
    published(table, "cam/a", 1, alive=False)
    published(table, "arm/a", 2)
    assert best_tag(table, "cam/*") == ""


def test_of_equals_the_present_one_stays(table):
    published(table, "cam/a", 1)
    published(table, "cam/b", 2)
    assert best_tag(table, "cam/*") == "cam/a"
    assert best_tag(table, "cam/*", "cam/b") == "cam/b"
    assert best_tag(table, "cam/*", "cam/c") == "cam/a"


def test_what_a_publisher_says_counts_before_what_it_declares_and_that_before_the_schema(table):
    published(table, "cam/a", 1, codec="numpy", schema={"dtype": "u1", "shape": [1000, 1000]})
    published(table, "cam/b", 2, codec="numpy", schema={"dtype": "u1", "shape": [10, 10]})
    assert best_tag(table, "cam/*", "cam/b") == "cam/a"
    published(table, "cam/b", 3, declared=Declared(0.1, 1000))
    assert best_tag(table, "cam/*", "cam/a") == "cam/b"
    published(table, "cam/c", 4, declared=Declared(0.1, 1001))
    assert best_tag(table, "cam/*") == "cam/c"
    published(table, "cam/d", 5, offered=Profile(fidelity=1))
    assert best_tag(table, "cam/*") == "cam/d"


@pytest.mark.parametrize(
    "schema", [{"rate_hz": "x"}, {"shape": "x"}, {"shape": [None, 3]}, {"rate_hz": 8000, "channels": None}]
)
def test_a_schema_that_does_not_tell_is_worth_nothing(table, schema):
    published(table, "cam/a", 1, schema=schema, codec="json")
    published(table, "cam/b", 2)
    assert best_tag(table, "cam/*", "cam/b") == "cam/b"


def test_audio_counts_by_its_samples(table):
    published(table, "mic/a", 1, codec="audio", schema={"rate_hz": 8000})
    published(table, "mic/b", 2, codec="audio", schema={"rate_hz": 8000, "channels": 2})
    assert best_tag(table, "mic/*") == "mic/b"

"""Channels of a tag have the class and schedule that its admitted deadlines ask for, below anything that was said."""

from __future__ import annotations

import pytest

from ringcast.control.status import InForce
from ringcast.daemon.observe.channels import bound_of
from ringcast.daemon.rings.demand import SubscribeOptions
from ringcast.daemon.streams import routes
from ringcast.daemon.table.promised import Promises, promised
from ringcast.daemon.table.rows import PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.declared import Declared
from ringcast.model.identity import PublisherInfo, SubscriberInfo


@pytest.fixture
def table():
    made = TagTable("n1", 1)
    made.open_tag("t", {}, create=True)
    return made


def publisher(said: Declared | None = Declared(0.1, 10)) -> PublisherRow:
    info = PublisherInfo(id=1, node="n1", tag="t", incarnation=1, pid=1, user="", program="")
    return PublisherRow(info=info, depth=1, capacity_bytes=1, declared=said)


def subscriber(deadline_s: float, number: int = 2, pattern: str = "t", pulls_s: float = 0.0) -> SubscriberRow:
    info = SubscriberInfo(id=number, node="n1", pattern=pattern, pid=1, user="", reliable=False, program="")
    return SubscriberRow(info=info, deadline_s=deadline_s, pulls_s=pulls_s)


def test_the_shortest_deadline_of_a_declared_stream_decides(table):
    table.put(subscriber(0.005))
    assert promised(table, "t") == ""  # nobody declared what is sent, so nothing was promised
    table.put(publisher())
    assert promised(table, "t") == "critical fifo:32"
    table.put(subscriber(0.0005, 3, pattern="*"))
    assert promised(table, "t") == "critical fifo:45"
    table.put(subscriber(0.05, 3))
    assert promised(table, "t") == "critical fifo:32"


def test_by_deadline_without_a_schedule_or_without_anything(table):
    table.put(publisher())
    assert promised(table, "t") == ""
    table.put(subscriber(0.08))
    assert promised(table, "t") == "high fifo:17"
    table.put(subscriber(1.0))
    assert promised(table, "t") == ""  # normal, as everybody is
    table.put(subscriber(0.02, pulls_s=0.1))
    assert promised(table, "t") == "high fifo:25"  # an answer to a pull has its deadline too


def test_a_newcomer_moves_nobody_elses_threads(table):
    promises = Promises(table)
    assert promises.changed([*table.put(publisher()), *table.put(subscriber(0.005))]) == ["t"]
    assert promises.words("t") == "critical fifo:32"
    table.open_tag("u", {}, create=True)
    info = PublisherInfo(id=7, node="n1", tag="u", incarnation=7, pid=1, user="", program="")
    more = [
        *table.put(PublisherRow(info=info, depth=1, capacity_bytes=1, declared=Declared(0.1, 10))),
        *table.put(subscriber(0.001, 8, "u")),
    ]
    assert promises.changed(more) == ["u"]
    assert promises.words("t") == "critical fifo:32"


def test_it_goes_with_the_deadline(table):
    promises = Promises(table)
    promises.changed([*table.put(publisher()), *table.put(subscriber(0.005))])
    assert promises.changed(table.put(subscriber(0.005))) == []
    assert promises.changed(table.remove("sub:2")) == ["t"]
    assert promises.words("t") == ""


@pytest.mark.parametrize(
    ("asked", "attribute", "has"),
    [
        ("", "", "critical fifo:32"),
        ("low", "", "low fifo:32"),
        ("", "high other", "high"),
        ("normal other", "", ""),
        ("fifo:20", "", "critical fifo:20"),
    ],
)
def test_whatever_was_said_comes_first(asked, attribute, has):
    table = TagTable("n1", 1)
    row, _ = table.open_tag("t", {"priority": attribute} if attribute else {}, create=True)
    found = routes.demand(SubscribeOptions(priority=asked), row, "n2", 1, "critical fifo:32")
    assert found.priority == has


@pytest.mark.parametrize(
    ("asked", "promise", "found", "says"),
    [
        ("high", "", InForce(), ""),
        ("critical fifo:32", "critical fifo:32", InForce(sched="fifo:32"), "backed"),
        ("critical fifo:45", "critical fifo:32", InForce(sched="fifo:45"), "backed"),
        ("critical fifo:32", "critical fifo:32", InForce(refused="no CAP_SYS_NICE"), "not backed: no CAP_SYS_NICE"),
        ("critical fifo:32", "critical fifo:32", None, "not backed: its transport knows no priorities"),
        ("", "high fifo:17", InForce(), "not backed: it is set to normal, and its deadline asks for high fifo:17"),
    ],
)
def test_whether_a_bound_is_backed(asked, promise, found, says):
    assert bound_of(asked, promise, found) == says

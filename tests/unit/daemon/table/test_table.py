"""The tag table of one node: tags, publishers, subscribers, and the changes it reports."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ringcast.control import limits
from ringcast.daemon.table import replica
from ringcast.daemon.table.rows import Change, ChangeKind, Delta, Entry, PublisherRow, SubscriberRow, TagRow
from ringcast.daemon.table.succession import Succession
from ringcast.daemon.table.table import MAX_DESTROYED, TagTable
from ringcast.errors import BadMessage, QosMismatch, ResourceLimit, TagConflict, UnknownTag
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes, matches


def publisher(number: int, tag: str, node: str = "n1", alive: bool = True) -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=tag, incarnation=number + 1000, pid=1, user="u")
    return PublisherRow(info=info, depth=16, capacity_bytes=4096, alive=alive)


def subscriber(number: int, pattern: str, node: str = "n1") -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=number, node=node, pattern=pattern, pid=1, user="u"))


def synchronise(*tables: TagTable) -> None:
    for _ in tables:
        for ours in tables:
            for theirs in tables:
                ours.apply(theirs.delta(ours.digest()))


@pytest.fixture
def table() -> TagTable:
    return TagTable("n1", incarnation=1)


def test_opening_a_tag_creates_it_once(table: TagTable) -> None:
    row, changes = table.open_tag("lab/temp", {"depth": 8})
    assert row.attributes == TagAttributes(depth=8)
    assert row.primary == "n1"
    assert changes == [Change(ChangeKind.ADDED, row)]
    assert table.open_tag("lab/temp", {}) == (row, [])
    assert table.tags() == [row]
    assert len(table) == 1


def test_an_unknown_tag_is_not_created_unless_asked(table: TagTable) -> None:
    with pytest.raises(UnknownTag):
        table.open_tag("lab/temp", {}, create=False)
    assert table.tags() == []


def test_a_conflict_leaves_the_tag_as_it_is(table: TagTable) -> None:
    table.open_tag("lab/temp", {"depth": 8})
    with pytest.raises(TagConflict) as conflict:
        table.open_tag("lab/temp", {"depth": 9})
    assert (conflict.value.attribute, conflict.value.existing, conflict.value.requested) == ("depth", 8, 9)
    with pytest.raises(QosMismatch):
        table.open_tag("lab/other", {"depth": 0})
    assert [row.name for row in table.tags()] == ["lab/temp"]


@pytest.mark.parametrize("pattern", ["lab/**", "lab/*", "lab", "**", "*/temp", "@system/**", "gone/**", "nobody/*"])
def test_a_pattern_finds_what_a_look_at_every_name_would(table: TagTable, pattern: str) -> None:
    other = TagTable("n2", incarnation=1)
    other.open_tag("lab/far", {})
    for name in ("lab", "lab/temp", "labs/temp", "gone/temp", "@system/clock"):
        table.open_tag(name, {})
    synchronise(table, other)
    table.destroy("gone/temp")
    table.set_present("n2", present=False)  # its tag is an orphan now

    def by_hand() -> list[TagRow]:
        names = ["@system/clock", "gone/temp", "lab", "lab/far", "lab/temp", "labs/temp"]
        return [row for name in names if matches(pattern, name) and (row := table.tag(name)) is not None]

    assert table.tags(pattern) == by_hand()
    assert table.tag("lab/far") is not None
    table.give_up("lab/far")
    assert table.tag("lab/far") is None
    assert table.tags(pattern) == by_hand()


def test_publishers_are_found_by_pattern(table: TagTable) -> None:
    rows = [publisher(1, "lab/a"), publisher(2, "lab/a", alive=False), publisher(3, "lab/b"), publisher(4, "yard")]
    for row in rows:
        table.put(row)
    assert table.publishers_matching("lab/a") == rows[:2]
    assert table.publishers_matching("lab/*") == rows[:3]
    assert table.publishers_matching("nobody") == []


def test_tags_are_found_by_pattern(table: TagTable) -> None:
    for name in ("lab/b/temp", "lab/a/temp", "lab/a/hum", "@system/clock"):
        table.open_tag(name, {})
    assert [row.name for row in table.tags("lab/*/temp")] == ["lab/a/temp", "lab/b/temp"]
    assert [row.name for row in table.tags()] == ["lab/a/hum", "lab/a/temp", "lab/b/temp"]
    assert [row.name for row in table.tags("@system/*")] == ["@system/clock"]
    assert [row.name for row in table.tags("lab/a/hum")] == ["lab/a/hum"]
    assert table.tags("nowhere") == []


def test_subscribers_are_found_by_the_pattern_they_gave(table: TagTable) -> None:
    for number, pattern in enumerate(["lab/temp", "lab/*", "**", "other"]):
        table.put(subscriber(number, pattern))
    assert {row.info.pattern for row in table.subscribers("lab/temp")} == {"lab/temp", "lab/*", "**"}
    table.remove(subscriber(1, "lab/*").key)
    assert {row.info.pattern for row in table.subscribers("lab/temp")} == {"lab/temp", "**"}


def test_a_publisher_lives_and_leaves_its_ring_behind(table: TagTable) -> None:
    row = publisher(5, "lab/temp")
    assert table.put(row) == [Change(ChangeKind.ADDED, row)]
    left = publisher(5, "lab/temp", alive=False)
    assert table.put(left) == [Change(ChangeKind.CHANGED, left)]
    assert table.publishers("lab/temp") == [left]
    assert table.remove(row.key) == [Change(ChangeKind.REMOVED, left)]
    assert table.remove(row.key) == []
    assert table.publishers("lab/temp") == []


def test_a_node_writes_its_own_rows_only(table: TagTable) -> None:
    with pytest.raises(ValueError, match="belongs to node 'n2'"):
        table.put(publisher(1, "a", node="n2"))


# ---------------------------------------------------------------------- several nodes


def test_rows_of_other_nodes_arrive_as_changes(table: TagTable) -> None:
    other = TagTable("n2", incarnation=1)
    row, _ = other.open_tag("lab/temp", {"depth": 8})
    other.put(subscriber(1, "lab/*", node="n2"))
    changes = table.apply(other.delta(table.digest()))
    assert {(change.kind, change.row.owner) for change in changes} == {(ChangeKind.ADDED, "n2")}
    assert table.open_tag("lab/temp", {}) == (row, [])
    assert len(table.subscribers("lab/temp")) == 1
    assert table.apply(other.delta({})) == []
    assert other.delta(table.digest()) == []


def test_a_tag_created_on_two_nodes_at_once_is_the_same_everywhere() -> None:
    one, two = TagTable("n1", 1), TagTable("n2", 1)
    two.open_tag("older", {})
    two.open_tag("lab/temp", {"depth": 2})
    one.open_tag("lab/temp", {"depth": 1})
    synchronise(one, two)
    first, second = one.tag("lab/temp"), two.tag("lab/temp")
    assert first == second
    assert first is not None
    assert first.attributes.depth == 1  # n2's was its second tag: born later


def test_the_backup_takes_over_and_the_old_primary_yields() -> None:
    one, two = TagTable("n1", 1), TagTable("n2", 1)
    row, _ = one.open_tag("lab/temp", {"depth": 8})
    synchronise(one, two)
    assert two.set_present("n1", False) == []
    assert two.orphans() == [row]
    assert two.open_tag("lab/temp", {"depth": 8}) == (row, []), "until somebody has taken it over it is as it was"
    mine = TagRow(name=row.name, attributes=row.attributes, primary="n2", born=row.born, term=row.term + 1)
    assert two.put(mine) == [Change(ChangeKind.CHANGED, mine)]
    assert two.orphans() == []
    two.set_present("n1", True)
    synchronise(one, two)
    assert one.tag("lab/temp") == two.tag("lab/temp") == mine


def test_an_absent_nodes_rows_are_hidden_and_come_back(table: TagTable) -> None:
    other = TagTable("n2", 1)
    other.open_tag("lab/temp", {})
    row = publisher(1, "lab/temp", node="n2")
    other.put(row)
    table.apply(other.delta({}))
    gone = table.set_present("n2", False)
    assert {change.kind for change in gone} == {ChangeKind.REMOVED}
    assert len(gone) == 1
    assert [change.kind for change in table.give_up("lab/temp")] == [ChangeKind.REMOVED]
    assert table.give_up("lab/temp") == []
    assert table.tags() == []
    assert table.set_present("n2", False) == []
    assert table.publishers("lab/temp") == []
    other.put(subscriber(2, "**", node="n2"))
    assert table.apply(other.delta(table.digest())) == []
    assert len(table.set_present("n2", True)) == 3
    assert table.publishers("lab/temp") == [row]


def test_an_orphan_whose_node_returns_was_never_gone(table: TagTable) -> None:
    other = TagTable("n2", 1)
    row, _ = other.open_tag("lab/temp", {})
    table.apply(other.delta({}))
    assert table.set_present("n2", False) == table.set_present("n2", True) == []
    assert (table.tag("lab/temp"), table.orphans(), len(table)) == (row, [], 1)


def test_a_node_long_gone_is_forgotten_and_may_still_return(table: TagTable) -> None:
    other = TagTable("n2", 1)
    other.put(publisher(1, "lab/temp", node="n2"))
    table.apply(other.delta({}))
    table.forget("n2")
    assert "n2" in table.digest(), "it is here"
    table.set_present("n2", False)
    table.forget("n2")
    assert "n2" not in table.digest()
    table.apply(other.delta(table.digest()))
    assert [row.info.id for row in table.publishers("lab/temp")] == [1]


def test_a_node_that_restarts_replaces_what_it_had(table: TagTable) -> None:
    before = TagTable("n2", incarnation=1)
    before.put(publisher(1, "a", node="n2"))
    before.put(publisher(2, "a", node="n2"))
    old = before.delta({})
    table.apply(old)
    after = TagTable("n2", incarnation=2)
    after.put(publisher(2, "a", node="n2"))
    changes = table.apply(after.delta(table.digest()))
    assert [(change.kind, change.row.key) for change in changes] == [(ChangeKind.REMOVED, "pub:1")]
    assert table.apply(old) == []
    assert [row.info.id for row in table.publishers("a")] == [2]


def test_a_node_whose_clock_went_back_outlives_its_earlier_self(table: TagTable) -> None:
    earlier = TagTable("n2", incarnation=50)
    earlier.put(publisher(1, "a", node="n2"))
    table.apply(earlier.delta({}))
    later = TagTable("n2", incarnation=7)
    later.put(publisher(2, "b", node="n2"))
    synchronise(table, later)
    assert later.incarnation == 51
    assert table.publishers("a") == []
    assert [row.info.id for row in table.publishers("b")] == [2]


@pytest.mark.parametrize(
    "delta",
    [
        Delta(node="n2", incarnation=1, since=0, through=1, floor=0, entries=[Entry("pub:1", 1, publisher(1, "a"))]),
        Delta(
            node="n2", incarnation=1, since=0, through=1, floor=0, entries=[Entry("pub:2", 1, publisher(1, "a", "n2"))]
        ),
        Delta(node="n2", incarnation=1, since=0, through=1, floor=0, entries=[Entry("pub:1", 2, None)]),
        Delta(node="n2", incarnation=1, since=5, through=1, floor=0, entries=[]),
    ],
    ids=["another's row", "another key", "version outside", "backwards"],
)
def test_a_delta_that_lies_changes_nothing(table: TagTable, delta: Delta) -> None:
    good = TagTable("n3", 1)
    good.open_tag("a", {})
    with pytest.raises(BadMessage):
        table.apply([*good.delta({}), delta])
    assert table.tags() == []


def test_destroying_a_tag_reaches_the_others() -> None:
    one, two = TagTable("n1", 1), TagTable("n2", 1)
    row, _ = one.open_tag("a", {})
    synchronise(one, two)
    assert one.destroy("a") == [Change(ChangeKind.REMOVED, row)]
    synchronise(one, two)
    assert two.tags() == []


def test_a_destroyed_tag_stays_destroyed_when_an_old_row_of_it_returns() -> None:
    one, two, three = (TagTable(name, 1) for name in ("n1", "n2", "n3"))
    row, _ = one.open_tag("a", {})
    synchronise(one, two)
    two.put(replace(row, primary="n2", term=1))
    two.destroy("a")
    synchronise(two, three)
    synchronise(one, three)
    assert (two.tag("a"), three.tag("a")) == (None, None)
    again, changes = three.open_tag("a", {"depth": 9})
    assert [change.kind for change in changes] == [ChangeKind.ADDED]
    synchronise(two, three)
    assert two.tag("a") == again, "one that is made anew is another"


def test_a_row_withdrawn_for_another_is_seen_until_that_is_there() -> None:
    one, two = TagTable("n1", 1), TagTable("n2", 1)
    row, _ = one.open_tag("a", {})
    synchronise(one, two)
    one.remove(row.key)
    assert two.apply(one.delta(two.digest())) == []
    assert (two.tag("a"), two.orphans()) == (row, [row])


def test_only_so_many_destroyed_tags_are_remembered() -> None:
    table = TagTable("n1", 1)
    for number in range(MAX_DESTROYED + 10):
        table.open_tag(str(number), {})
        table.destroy(str(number))
    rows = [entry.row for entry in table.delta({})[0].entries if entry.row is not None]
    assert len(rows) == MAX_DESTROYED
    assert len(table) == 0


def test_a_tag_made_again_where_it_was_destroyed() -> None:
    table = TagTable("n1", 1)
    table.open_tag("a", {})
    table.destroy("a")
    row, _ = table.open_tag("a", {"depth": 3})
    assert table.tag("a") == row
    assert table.destroy("b") == []


# ------------------------------------------------------------------ what others may claim


def _delta_of(node: str, life: int, *rows: Any, since: int = 0) -> Delta:
    entries = [Entry(row.key, since + number, row) for number, row in enumerate(rows, 1)]
    return Delta(node=node, incarnation=life, since=since, through=since + len(rows), floor=0, entries=entries)


def test_a_life_that_cannot_be_is_not_outlived_and_a_plausible_one_is() -> None:
    table = TagTable("a", 5)
    table.apply([_delta_of("a", limits.MAX_LIFE)])
    assert table.incarnation == 5
    assert table.refused == {"implausible life": 1}
    table.apply([_delta_of("a", limits.PLAUSIBLE_LIFE)])
    assert table.incarnation == limits.PLAUSIBLE_LIFE + 1
    table.apply([_delta_of("a", limits.MAX_LIFE)])
    assert table.incarnation == limits.PLAUSIBLE_LIFE + 1
    table.apply([_delta_of("a", limits.PLAUSIBLE_LIFE + 2)])  # a step can always be answered
    assert table.incarnation == limits.PLAUSIBLE_LIFE + 3


@pytest.mark.parametrize("born", [limits.PLAUSIBLE_BORN, limits.PLAUSIBLE_BORN + 1, limits.MAX_BORN])
def test_births_stay_where_others_take_them_in(born: int) -> None:
    table = TagTable("a", 5)
    table.apply([_delta_of("x", 1, TagRow(name="x", attributes=TagAttributes(), primary="x", born=born))])
    row, _ = table.open_tag("mine", {})
    assert row.born <= limits.PLAUSIBLE_BORN + 1
    again, _ = table.open_tag("next", {})
    assert again.born == row.born + 1


def test_terms_stay_where_others_take_them_in() -> None:
    table = TagTable("a", 5)
    table.put(TagRow(name="t", attributes=TagAttributes(), primary="a", born=1, term=limits.MAX_TERM))
    table.destroy("t")
    assert table.tag("t") is None
    (delta,) = table.delta({})
    assert [entry.row.term for entry in delta.entries if isinstance(entry.row, TagRow)] == [limits.MAX_TERM]


def test_a_node_owns_so_many_tags_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replica.MAX_ROWS, TagRow, 3)
    table = TagTable("a", 5)
    rows = [TagRow(name=f"t{i}", attributes=TagAttributes(), primary="x", born=1) for i in range(5)]
    table.apply([_delta_of("x", 1, *rows)])
    assert len(table.tags()) == 3
    assert table.refused["too many rows"] == 2
    assert table.digest()["x"] == (1, 5)
    other = TagRow(name="t0", attributes=TagAttributes(), primary="y", born=1)
    table.apply([_delta_of("y", 1, other)])  # others are not the worse for it
    assert table.refused["too many rows"] == 2
    removed = Delta(node="x", incarnation=1, since=5, through=6, floor=0, entries=[Entry("tag:t1", 6, None)])
    table.apply([removed, _delta_of("x", 1, rows[3], since=6)])
    assert {row.name for row in table.tags()} == {"t0", "t2", "t3"} | {"t1"}  # t1 is an orphan until given up


def test_rows_of_all_others_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.daemon.table.table.MAX_ROWS_OF_OTHERS", 4)
    table = TagTable("a", 5)
    for node in ("x", "y", "z"):
        rows = [TagRow(name=f"{node}{i}", attributes=TagAttributes(), primary=node, born=1) for i in range(3)]
        table.apply([_delta_of(node, 1, *rows)])
    assert len(table.tags()) == 4
    assert table.refused["too many rows"] == 5
    table.set_present("x", False)
    table.forget("x")
    for orphan in table.orphans():
        table.give_up(orphan.name)
    table.apply([_delta_of("w", 1, TagRow(name="w", attributes=TagAttributes(), primary="w", born=1))])
    assert table.tag("w") is not None
    table.apply([_delta_of("w", 2)])  # another life takes no room that it does not use
    table.apply([_delta_of("w", 3, *(TagRow(name=f"w{i}", attributes=TagAttributes(), primary="w") for i in range(3)))])
    assert table.refused["too many rows"] == 5


def test_a_node_with_too_many_tags_says_so_and_takes_over_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.daemon.table.table.MAX_TAGS_PER_NODE", 2)
    table = TagTable("a", 5)
    table.open_tag("one", {})
    table.open_tag("two", {})
    with pytest.raises(ResourceLimit, match="keeps 2 tags already"):
        table.open_tag("three", {})
    assert table.open_tag("one", {})[1] == []
    table.apply([_delta_of("x", 1, TagRow(name="four", attributes=TagAttributes(), primary="x", backup="a"))])
    table.set_present("x", False)
    Succession(table).settle([])
    assert {row.name for row in table.tags()} == {"one", "two"}

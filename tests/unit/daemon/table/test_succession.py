"""Administrators' settings on both sides of a partition: none is lost when the sides meet, whoever hears first."""

from __future__ import annotations

import pytest

from ringcast.daemon.table import settings
from ringcast.daemon.table.rows import Change, TagRow
from ringcast.daemon.table.succession import MOST_AT_ONCE, Succession
from ringcast.daemon.table.table import TagTable
from ringcast.model.place import Setting
from ringcast.model.tag import TagAttributes


class Side:
    """One node's table, and who keeps what there."""

    def __init__(self, name: str) -> None:
        self.table = TagTable(name, 1)
        self._succession = Succession(self.table)

    def noticed(self, changes: list[Change]) -> None:
        self._succession.noticed(changes)
        self._succession.take_over_settings()

    def create(self, name: str, backup: str) -> None:
        self.noticed(self.table.put(TagRow(name=name, attributes=TagAttributes(), primary=self.table.node, born=1)))
        self._succession.settle([backup])

    def hear(self, other: Side) -> bool:
        """Whether there was anything new."""
        deltas = other.table.delta(self.table.digest())
        self.noticed(self.table.apply(deltas))
        return bool(deltas)

    def lose(self, other: Side) -> None:
        self.noticed(self.table.set_present(other.table.node, False))
        self._succession.settle([])

    def find(self, other: Side) -> None:
        self.noticed(self.table.set_present(other.table.node, True))
        self._succession.settle([other.table.node])

    def set(self, node: str = "", at: str | None = None, transport: str | None = None) -> None:
        row = self.table.tag("t")
        assert row is not None
        assert row.primary == self.table.node
        self.noticed(self.table.put(settings.changed(row, node, at, transport, ())))

    @property
    def settings(self) -> dict[str, Setting]:
        row = self.table.tag("t")
        assert row is not None
        return row.settings


def parted() -> tuple[Side, Side]:
    """The tag's keeper, and on the other side of the partition its backup, which has taken over."""
    old, new = Side("a"), Side("b")
    old.create("t", backup="b")
    new.hear(old)
    old.lose(new)
    new.lose(old)
    row = new.table.tag("t")
    assert row is not None
    assert (row.primary, row.term) == ("b", 1)
    return old, new


def healed(old: Side, new: Side, first: str) -> dict[str, Setting]:
    """The settings that both agree on in the end; `first` is who hears of the other first."""
    old.find(new)
    new.find(old)
    order = [(old, new), (new, old)] if first == "old" else [(new, old), (old, new)]
    while any(one.hear(other) for one, other in order):
        pass
    assert old.settings == new.settings
    assert old.table.tag("t") == new.table.tag("t")
    assert not old.table.rivals("t"), "the row that does not count is withdrawn in the end"
    assert not new.table.rivals("t")
    return new.settings


both_orders = pytest.mark.parametrize("first", ["old", "new"])


@both_orders
def test_a_setting_on_the_old_keepers_side_is_kept(first: str) -> None:
    old, new = parted()
    old.set(at="subscriber")
    assert healed(old, new, first) == {"": Setting(at="subscriber")}


@both_orders
def test_settings_for_different_nodes_are_all_kept(first: str) -> None:
    old, new = parted()
    old.set("c", at="subscriber")
    new.set("d", transport="tcp")
    assert healed(old, new, first) == {"c": Setting(at="subscriber"), "d": Setting(transport="tcp")}


@both_orders
def test_of_two_for_one_node_the_one_after_more_settings_wins(first: str) -> None:
    old, new = parted()
    old.set(at="subscriber")
    old.set(at="node:c")
    new.set(at="publisher")
    assert healed(old, new, first) == {"": Setting(at="node:c")}


@both_orders
def test_of_two_with_the_same_number_the_later_name_wins(first: str) -> None:
    old, new = parted()
    old.set(at="subscriber")
    new.set(at="publisher")
    assert healed(old, new, first) == {"": Setting(at="publisher")}


@both_orders
def test_one_that_was_taken_back_stays_so(first: str) -> None:
    old, new = Side("a"), Side("b")
    old.create("t", backup="b")
    old.set(at="subscriber")
    new.hear(old)
    old.lose(new)
    new.lose(old)
    old.set(at="")
    assert new.settings == {"": Setting(at="subscriber")}
    assert healed(old, new, first) == {}


@both_orders
def test_a_tag_destroyed_on_one_side_takes_its_settings_with_it(first: str) -> None:
    old, new = parted()
    old.set(at="subscriber")
    new.noticed(new.table.destroy("t"))
    old.find(new)
    new.find(old)
    order = [(old, new), (new, old)] if first == "old" else [(new, old), (old, new)]
    while any(one.hear(other) for one, other in order):
        pass
    assert old.table.tag("t") is None
    assert new.table.tag("t") is None


def test_backups_of_many_tags_are_appointed_in_portions() -> None:
    table = TagTable("a", 1)
    succession = Succession(table)
    count = 2 * MOST_AT_ONCE + 10
    for number in range(count):
        succession.noticed(table.open_tag(f"t/{number}", {})[1])
    succession.settle([])
    calls = 0
    while calls == 0 or succession.unsettled:
        assert len(succession.settle(["b"])) <= MOST_AT_ONCE
        calls += 1
    assert {row.backup for row in table.tags()} == {"b"}
    assert calls == 3
    assert succession.settle(["b"]) == []


def test_those_whose_backup_went_get_another() -> None:
    table = TagTable("a", 1)
    succession = Succession(table)
    for number in range(20):
        succession.noticed(table.open_tag(f"t/{number}", {})[1])
    succession.settle(["b", "c"])
    of_b = {row.name for row in table.tags() if row.backup == "b"}
    assert 0 < len(of_b) < 20
    changes = succession.settle(["c"])
    assert {change.row.name for change in changes if isinstance(change.row, TagRow)} == of_b
    assert {row.backup for row in table.tags()} == {"c"}

"""Who keeps a tag, who takes it over, and what is seen of those who come and go."""

from __future__ import annotations

from typing import Any

import pytest
from gossip_sides import Side, compare, pair, pub, sub, tag_row

from ringcast.control.peering import NodeRecord
from ringcast.daemon.mesh.core.events import Action, Changed, NodeDown, NodeRestarted, NodeUp, TagContest
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.table.rows import (
    Change,
    ChangeKind,
    Delta,
    Entry,
    TagRow,
)
from ringcast.daemon.table.succession import Succession, first_for, heir
from ringcast.daemon.table.table import TagTable


def test_a_tag_gets_a_backup_as_soon_as_there_is_somebody() -> None:
    a = Side("a")
    _, changes = a.table.open_tag("t", {})
    a.gossip.local(changes)
    a.gossip.finish(0)
    assert a.table.tag("t").backup == ""  # type: ignore[union-attr]
    a.meet(Side("b"))
    assert a.table.tag("t").backup == "b"  # type: ignore[union-attr]
    a.gossip.node_up(NodeRecord("c", 3))
    a.gossip.finish(0)
    assert a.table.tag("t").backup == "b", "it stays while it is here"  # type: ignore[union-attr]
    a.gossip.node_down("b")
    a.gossip.finish(0)
    assert a.table.tag("t").backup == "c"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("backup", "present", "holders", "expected"),
    [
        ("b", {"b", "c"}, {"c"}, "b"),
        ("b", {"c", "d"}, {"c"}, "c"),
        ("b", {"c", "d"}, set(), ""),
        ("", {"c"}, {"x"}, ""),
        ("b", {"c", "d"}, {"c", "d"}, first_for("t", ["c", "d"])),
    ],
)
def test_heirs(backup: str, present: set[str], holders: set[str], expected: str) -> None:
    assert heir(tag_row("a", backup), present, holders) == expected


def test_ranking_spreads_tags_and_moves_few() -> None:
    nodes = [f"n{number}" for number in range(10)]
    before = {tag: first_for(tag, nodes) for tag in map(str, range(300))}
    assert len(set(before.values())) == 10
    after = {tag: first_for(tag, nodes[:-1]) for tag in before}
    assert all(after[tag] == before[tag] for tag in before if before[tag] != "n9")
    assert first_for("t", []) == ""


def test_a_destroyed_tag_is_not_taken_over() -> None:
    a, b = pair()
    _, changes = a.table.open_tag("t", {})
    a.gossip.local(changes)
    a.gossip.finish(0)
    compare(a, b)
    a.gossip.local(a.table.destroy("t"))
    a.gossip.finish(0)
    compare(a, b)
    b.gossip.node_down("a")
    b.gossip.finish(0)
    assert b.table.tag("t") is None


def test_whoever_takes_a_tag_over_does_so_unnoticed() -> None:
    a, b = pair()
    a.gossip.local(a.table.open_tag("t", {})[1])
    a.gossip.finish(0)
    compare(a, b)
    b.gossip.node_down("a")
    actions = b.gossip.finish(0)
    changes = [change for action in actions if isinstance(action, Changed) for change in action.changes]
    assert [(change.kind, change.row.owner) for change in changes] == [(ChangeKind.CHANGED, "b")]


def test_a_tag_without_an_heir_is_seen_to_go_and_waits_for_its_node() -> None:
    a, b = pair()
    a.gossip.node_up(NodeRecord("c", 3))
    row = tag_row("a", backup="c")
    a.put(row)
    compare(a, b)
    b.gossip.node_down("a")
    actions = b.gossip.finish(0)
    changes = [change for action in actions if isinstance(action, Changed) for change in action.changes]
    assert [change.kind for change in changes] == [ChangeKind.REMOVED]
    b.gossip.node_up(a.record)
    b.gossip.finish(0)
    assert b.table.tag("t") == row


def test_a_ring_left_behind_keeps_its_tag() -> None:
    a, b = pair()
    a.gossip.node_up(NodeRecord("c", 3))
    a.put(tag_row("a", backup="c"))
    compare(a, b)
    b.put(pub("b", 1, alive=False))
    b.gossip.node_down("a")
    b.gossip.finish(0)
    assert b.table.tag("t").primary == "b"  # type: ignore[union-attr]


def test_nodes_long_dead_are_forgotten() -> None:
    a, b = pair()
    b.put(pub("b", 1))
    compare(b, a)
    a.gossip.node_down("b")
    a.gossip.tick(5)
    assert a.gossip.version_of("b") != (-1, 0)
    due_ns = a.gossip.due_ns()
    assert due_ns is not None
    a.gossip.tick(5 + Timing().forget_ns)
    assert a.gossip.version_of("b") == (-1, 0)
    assert "b" not in a.table.digest()
    a.gossip.node_up(b.record)
    a.gossip.finish(0)
    compare(a, b)
    assert a.ids() == [1], "and brings everything when it returns after all"


def test_nobody_who_is_here_or_back_is_forgotten() -> None:
    a, b = pair()
    b.put(pub("b", 1))
    compare(b, a)
    a.gossip.node_down("b")
    a.gossip.tick(5)
    a.gossip.node_up(b.record)
    a.gossip.finish(0)
    a.gossip.tick(6)
    a.gossip.tick(6 + Timing().forget_ns)
    assert a.ids() == [1]


@pytest.mark.parametrize(
    ("mine", "theirs", "contested"),
    [
        (tag_row("a", born=1), tag_row("b", born=1, term=1), False),
        (tag_row("a", born=1), tag_row("b", born=1, term=1, depth=16), True),
        (tag_row("a", born=2), tag_row("b", born=1), True),
        (tag_row("b", born=1), tag_row("a", born=1), True),
    ],
)
def test_a_row_that_no_longer_counts_is_withdrawn(mine: TagRow, theirs: TagRow, contested: bool) -> None:
    table = TagTable(mine.primary, 1)
    succession = Succession(table)
    succession.noticed(table.put(mine))
    entry = Entry(theirs.key, 1, theirs)
    changes = table.apply([Delta(node=theirs.primary, incarnation=1, since=0, through=1, floor=0, entries=[entry])])
    contests = succession.noticed(changes)
    assert contests == ([TagContest(won=theirs, lost=mine)] if contested else [])
    assert table.tag("t") == theirs
    assert table.delta({table.node: (1, 1)})[0].entries[-1].row is None


def test_publishers_and_subscribers_come_and_go_once() -> None:
    live = Liveliness()
    added, changed, removed = ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.REMOVED

    def seen(kind: ChangeKind, row: Any) -> list[tuple[str, bool, str]]:
        return [(p.kind, p.came, p.topic) for p in live.of_changes([Change(kind, row)])]

    assert seen(added, pub("a", 1)) == [("publisher", True, "t")]
    assert seen(added, pub("a", 1)) == []
    assert seen(added, sub("a", 2, "t/*")) == [("subscriber", True, "t/*")]
    assert [(p.kind, p.node) for p in live.current()] == [("publisher", "a"), ("subscriber", "a")]
    assert seen(changed, pub("a", 1, alive=False)) == [("publisher", False, "t")]
    assert seen(removed, pub("a", 1, alive=False)) == []
    assert seen(added, pub("b", 1, alive=False)) == []
    assert seen(removed, sub("a", 2, "t/*")) == [("subscriber", False, "t/*")]
    assert seen(added, tag_row("a")) == []
    assert live.current() == []


def test_a_publisher_in_the_place_of_another_is_another() -> None:
    live = Liveliness()
    live.of_changes([Change(ChangeKind.ADDED, pub("a", 1))])
    found = live.of_changes([Change(ChangeKind.CHANGED, pub("a", 1, tag="u"))])
    assert [(p.came, p.topic) for p in found] == [(False, "t"), (True, "u")]


def test_nodes_come_and_go() -> None:
    live = Liveliness()
    first, second = NodeRecord("a", 1), NodeRecord("a", 2)

    def seen(action: Action) -> list[tuple[str, bool]]:
        return [(p.node, p.came) for p in live.of_actions([action])]

    assert seen(NodeUp(first)) == [("a", True)]
    assert seen(NodeRestarted(first, second)) == [("a", False), ("a", True)]
    assert [p.node for p in live.current()] == ["a"]
    assert seen(NodeDown(second)) == [("a", False)]
    assert seen(NodeDown(second)) == []

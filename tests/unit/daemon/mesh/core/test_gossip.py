"""How rows spread between two tables by hand, what is seen of them, and who keeps a tag."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.control.peering import NodeRecord, TableDelta, TableDigest, TableSummary
from ringcast.daemon.mesh.core.events import Action, Changed, NodeDown, NodeRestarted, NodeUp, Send, TagContest
from ringcast.daemon.mesh.core.gossip import MAX_STRANGERS, Gossip
from ringcast.daemon.mesh.core.links import Link, Links
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.observe.liveliness import Liveliness
from ringcast.daemon.table.digest import BUCKETS, KeyedSums, key_of
from ringcast.daemon.table.pages import PAGE_BYTES, cut, decode_page_untrusted
from ringcast.daemon.table.rows import (
    Change,
    ChangeKind,
    Delta,
    Entry,
    PublisherRow,
    SubscriberRow,
    TagRow,
    publisher_key,
)
from ringcast.daemon.table.succession import Succession, first_for, heir
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes

NUMBERS = {"a": 1, "b": 2, "c": 3}


def pub(node: str, number: int, tag: str = "t", alive: bool = True) -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=tag, incarnation=number, pid=1, user="u")
    return PublisherRow(info=info, depth=8, capacity_bytes=64, alive=alive)


def sub(node: str, number: int, pattern: str = "t") -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=number, node=node, pattern=pattern, pid=1, user="u"))


class Side:
    """A node's table and gossip, linked with everybody."""

    def __init__(self, name: str, life: int = 10) -> None:
        self.table = TagTable(name, life)
        self.record = NodeRecord(name, NUMBERS[name], 0, life)
        self.links = Links(self.record.incarnation, Timing(), Random(1))
        self.gossip = Gossip(self.table, self.links, Timing(), Random(1), 0)

    def meet(self, other: Side) -> None:
        link = Link(other.record.incarnation, None, 0, 0)
        self.links.add(link)
        self.links.identify(link, other.record.incarnation)
        self.gossip.node_up(other.record)
        self.gossip.finish(0)

    def put(self, *rows: Any) -> list[Action]:
        self.gossip.local([change for row in rows for change in self.table.put(row)])
        return self.gossip.finish(0)

    def hear(self, other: Side, message: Any) -> list[Action]:
        self.gossip.hear(other.record.incarnation, other.record, message)
        return self.gossip.finish(0)

    def ids(self, tag: str = "t") -> list[int]:
        return sorted(row.info.id for row in self.table.publishers(tag))


def sent(actions: list[Action], kind: type) -> list[Any]:
    return [a.message for a in actions if isinstance(a, Send) and isinstance(a.message, kind)]


def pair() -> tuple[Side, Side]:
    a, b = Side("a"), Side("b")
    a.meet(b)
    b.meet(a)
    return a, b


def compare(a: Side, b: Side) -> None:
    """Carry messages between the two until they have nothing more to say."""
    a.gossip.compare(NUMBERS[b.record.name])
    waiting = [(b, a, action.message) for action in a.gossip.finish(0) if isinstance(action, Send)]
    for _ in range(100):
        if not waiting:
            return
        to, sender, message = waiting.pop(0)
        for action in to.hear(sender, message):
            if isinstance(action, Send):
                waiting.append((sender, to, action.message))
    raise AssertionError("they never stop")


# ------------------------------------------------------------------ spreading


def test_a_change_is_pushed_and_seen() -> None:
    a, b = pair()
    (delta,) = sent(a.put(pub("a", 1)), TableDelta)
    (changed,) = [action for action in b.hear(a, delta) if isinstance(action, Changed)]
    assert [(c.kind, c.row) for c in changed.changes] == [(ChangeKind.ADDED, pub("a", 1))]
    assert b.hear(a, delta) == [], "once is enough"
    assert a.gossip.sum == b.gossip.sum


def test_what_is_known_to_be_known_is_not_pushed() -> None:
    a, b = pair()
    c = Side("c")
    b.meet(c)
    c.meet(b)
    c.meet(a)
    (delta,) = sent(a.put(pub("a", 1)), TableDelta)
    assert sent(b.hear(a, delta), TableDelta) == [], "in a small mesh the owner tells everybody"


def test_comparing_brings_what_is_missing_both_ways() -> None:
    a, b = pair()
    a.put(*[pub("a", number) for number in range(1, 6)])
    b.put(pub("b", 9))
    compare(a, b)
    assert a.ids() == b.ids() == [1, 2, 3, 4, 5, 9]
    assert a.gossip.sum == b.gossip.sum


def test_equal_tables_say_nothing() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    a.gossip.compare(2)
    (summary,) = sent(a.gossip.finish(0), TableSummary)
    assert b.hear(a, summary) == []


def test_nodes_without_rows_are_no_difference() -> None:
    a, b = pair()
    assert a.gossip.sum == b.gossip.sum


def test_gossip_of_one_that_yields_its_name_is_silent() -> None:
    a, _ = pair()
    a.gossip.silent = True
    assert a.put(pub("a", 1)) == []
    a.gossip.tick(10**12)
    assert a.gossip.finish(10**12) == []
    assert a.gossip.due_ns() is None
    a.gossip.silent = False
    assert sent(a.gossip.finish(10**12), TableDelta)


def page_of(node: str, life: int, since: int, *entries: Entry) -> bytes:
    return cut([Delta(node=node, incarnation=life, since=since, through=1, floor=0, entries=list(entries))])[0].content


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\xc1",
        b"\x90\x00",
        page_of("a b", 1, 0),
        page_of("a", 2**63, 0),
        page_of("a", 11, 5),
        page_of("a", 11, 0, Entry("pub:1", 1, pub("c", 1))),
        page_of("a", 11, 0, Entry("pub:2", 1, pub("a", 1))),
        page_of("a", 11, 0, Entry("pub:1", 2, pub("a", 1))),
    ],
    ids=range(9),
)
def test_bad_pages_change_nothing(page: bytes) -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    with pytest.raises(BadMessage):
        b.hear(a, TableDelta(page=page))
    b.gossip.finish(0)
    assert b.ids() == [1]


def test_rows_of_strangers_are_kept_out_of_sight_and_within_bounds() -> None:
    a, b = pair()
    for number in range(MAX_STRANGERS + 10):
        entry = Entry("pub:1", 1, pub(f"s{number}", 1))
        delta = Delta(node=f"s{number}", incarnation=1, since=0, through=1, floor=0, entries=[entry])
        b.hear(a, TableDelta(page=cut([delta])[0].content))
    assert b.ids() == []
    assert len(b.table.digest()) <= MAX_STRANGERS + 3
    b.gossip.node_up(NodeRecord("s3", 77, 0, 1))
    b.gossip.finish(0)
    assert b.ids() == [1]


# ------------------------------------------------------------------ lives


def test_rows_are_seen_while_their_node_is_here() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    b.gossip.node_down("a")
    (changed,) = b.gossip.finish(0)
    assert isinstance(changed, Changed)
    assert [c.kind for c in changed.changes] == [ChangeKind.REMOVED]
    assert b.ids() == []
    b.gossip.node_up(a.record)
    b.gossip.finish(0)
    assert b.ids() == [1]


def test_rows_of_an_earlier_life_are_not_seen() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    again = Side("a", life=20)
    again.meet(b)
    b.gossip.node_down("a")
    b.gossip.node_up(again.record)
    b.gossip.finish(0)
    assert b.ids() == []
    assert again.gossip.sum == b.gossip.sum
    (delta,) = sent(again.put(pub("a", 2)), TableDelta)
    b.hear(again, delta)
    assert b.ids() == [2]


def test_rows_of_a_new_life_may_come_before_the_news_of_it() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    again = Side("a", life=20)
    again.meet(b)
    (delta,) = sent(again.put(pub("a", 2)), TableDelta)
    b.hear(again, delta)
    assert b.ids() == [2]


def test_a_node_whose_clock_was_set_back_outlives_its_former_self() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    again = Side("a", life=5)
    again.meet(b)
    again.put(pub("a", 2))
    compare(again, b)
    assert again.table.incarnation > 10
    assert b.ids() == [2]


def test_a_node_that_lost_some_of_its_own_rows_outlives_them() -> None:
    a, b = pair()
    a.put(pub("a", 1), pub("a", 2), pub("a", 3))
    compare(a, b)
    again = Side("a", life=10)
    again.meet(b)
    again.put(pub("a", 9))
    compare(again, b)
    compare(again, b)
    assert b.ids() == [9]


# ------------------------------------------------------------------ pages

ONE_ROW_BYTES = 400


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=60), st.integers(200, 900), st.randoms()
)
def test_pages_are_bounded_and_bring_everything_in_any_order(
    writes: list[tuple[int, bool]], page_bytes: int, random: Random
) -> None:
    source, copy = TagTable("a", 1, max_tombstones=4), TagTable("b", 1)
    for number, there in writes:
        if there:
            source.put(pub("a", number))
        else:
            source.remove(publisher_key(number))
    pages = cut(source.delta(copy.digest()), page_bytes)
    assert all(len(page.content) <= max(page_bytes, ONE_ROW_BYTES) for page in pages)
    random.shuffle(pages)
    for page in [*pages, *pages[:1]]:
        copy.apply(decode_page_untrusted(page.content))
    assert {r.info.id for r in copy.publishers("t")} == {r.info.id for r in source.publishers("t")}
    assert not source.delta(copy.digest()) or not source.digest()["a"][1]


def test_a_page_says_what_it_covers() -> None:
    table = TagTable("a", 1)
    for number in range(1000):
        table.put(pub("a", number))
    pages = cut(table.delta({}))
    assert len(pages) > 1
    assert all(len(page.content) <= PAGE_BYTES + 256 for page in pages)
    assert pages[-1].covers == {"a": (1, 1000)}


def test_sums_tell_sets_apart() -> None:
    one, other = KeyedSums(), KeyedSums()
    pairs = [(key_of(f"n{number}"), number) for number in range(200)]
    for key, value in pairs:
        one.toggle(key, value)
    for key, value in reversed(pairs):
        other.toggle(key, value)
    assert (one.total, one.sums) == (other.total, other.sums)
    other.toggle(*pairs[7])
    assert one.differing(other.sums) == [pairs[7][0] % BUCKETS]
    assert one.differing([1, 2]) == []


def test_a_large_mesh_compares_buckets_before_versions() -> None:
    a, b = pair()
    for number in range(40):
        for side in (a, b):
            side.gossip.node_up(NodeRecord(f"x{number}", 100 + number, 0, 1))
            side.gossip.finish(0)
    a.put(pub("a", 1))
    a.gossip.compare(2)
    (total,) = sent(a.gossip.finish(0), TableSummary)
    (sums,) = sent(b.hear(a, total), TableSummary)
    assert len(sums.sums) == BUCKETS
    (digest,) = sent(a.hear(b, sums), TableDigest)
    assert digest.buckets == [key_of("a") % BUCKETS]


# ------------------------------------------------------------------ who keeps a tag


def tag_row(primary: str, backup: str = "", **fields: Any) -> TagRow:
    attributes = TagAttributes(depth=fields.pop("depth", 8))
    return TagRow(name="t", attributes=attributes, primary=primary, backup=backup, **fields)


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


# ------------------------------------------------------------------ coming and going


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

"""How rows spread: pushed, compared, in pages; and which life of a node they belong to."""

from __future__ import annotations

from random import Random

import pytest
from gossip_sides import Side, compare, pair, pub, sent
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.control.peering import NodeRecord, TableDelta, TableDigest, TableSummary
from ringcast.daemon.mesh.core.events import Changed, Send
from ringcast.daemon.mesh.core.gossip import CATCH_UP_NS, MAX_STRANGERS
from ringcast.daemon.table.digest import BUCKETS, KeyedSums, key_of
from ringcast.daemon.table.pages import PAGE_BYTES, cut, decode_page_untrusted
from ringcast.daemon.table.rows import (
    ChangeKind,
    Delta,
    Entry,
    publisher_key,
)
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage


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


def test_a_newcomer_asks_one_peer_for_all_and_the_others_afterwards() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    late = Side("c")
    for side in (a, b):
        late.meet(side)
        side.meet(late)
    summary = TableSummary(sums=[a.gossip.sum])
    (digest,) = sent(late.hear(a, summary), TableDigest)
    assert sent(late.hear(b, summary), TableDigest) == [], "it has not heard from the first"
    (delta,) = sent(a.hear(late, digest), TableDelta)
    assert sent(late.hear(a, delta), TableDelta) == [], "what everybody had before is no news"
    assert late.ids() == [1]
    late.gossip.tick(CATCH_UP_NS)
    later = late.gossip.finish(CATCH_UP_NS)
    assert b.record.incarnation in [action.link for action in later if isinstance(action, Send)]
    assert b.hear(late, sent(later, TableSummary)[0]) == [], "they agree"


def test_a_newcomer_whose_peer_says_nothing_asks_the_next() -> None:
    a, b = pair()
    a.put(pub("a", 1))
    compare(a, b)
    late = Side("c")
    for side in (a, b):
        late.meet(side)
        side.meet(late)
    summary = TableSummary(sums=[a.gossip.sum])
    assert sent(late.hear(a, summary), TableDigest)
    assert not sent(late.hear(b, summary), TableDigest)
    late.gossip.tick(CATCH_UP_NS)
    compare(b, late)
    assert late.ids() == [1]


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

"""Copies of a table converge, whatever happens to the deltas between them."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.daemon.table.replica import MAX_SPANS, Replica
from ringcast.daemon.table.rows import Delta, Row, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.model.identity import SubscriberInfo

NODES = ["n1", "n2", "n3"]


def row(node: str, number: int, pattern: str) -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=number, node=node, pattern=pattern, pid=1, user="u"))


def seen(table: TagTable) -> set[str]:
    return {repr(found) for tag in ("a", "b", "c") for found in table.subscribers(tag)}


writes = st.tuples(
    st.just("write"), st.sampled_from(NODES), st.integers(1, 5), st.sampled_from(["a", "b", "c", "*", None])
)
asks = st.tuples(st.just("ask"), st.sampled_from(NODES), st.sampled_from(NODES), st.sampled_from([None, 1, 2]))
deliveries = st.tuples(st.just("deliver"), st.sampled_from(NODES), st.integers(0, 100), st.booleans())
restarts = st.tuples(st.just("restart"), st.sampled_from(NODES), st.integers(0, 3), st.none())


@settings(deadline=None, max_examples=200)
@given(st.lists(writes | asks | deliveries | restarts, max_size=60), st.integers(0, 3))
def test_any_interleaving_converges(steps: list[tuple[str, str, object, object]], max_tombstones: int) -> None:
    """Deltas are delayed, reordered, repeated, lost; nodes restart; few tombstones are kept. In the end all agree."""
    tables = {node: TagTable(node, 2000, max_tombstones) for node in NODES}
    under_way: list[Delta] = []
    for moment, (kind, node, what, more) in enumerate(steps, 1):
        if kind == "write" and isinstance(what, int):
            table = tables[node]
            table.put(row(node, what, more)) if isinstance(more, str) else table.remove(f"sub:{what}")
        elif kind == "ask":
            assert isinstance(what, str)
            under_way += tables[what].delta(tables[node].digest(), more if isinstance(more, int) else None)
        elif kind == "deliver" and under_way and isinstance(what, int):
            at = what % len(under_way)
            tables[node].apply([under_way[at] if more else under_way.pop(at)])
        elif kind == "restart" and isinstance(what, int):
            # By a clock that may have gone back, but never shows one time twice.
            tables[node] = TagTable(node, 1000 * what + moment, max_tombstones)
    for _ in range(8):
        for ours in tables.values():
            for theirs in tables.values():
                ours.apply(theirs.delta(ours.digest()))
    views = [seen(table) for table in tables.values()]
    assert views[0] == views[1] == views[2]
    assert len({repr(sorted(table.digest().items())) for table in tables.values()}) == 1


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Row], list[Delta]]:
    """What an owner ends up with, and deltas cut out of its life at many moments that together tell all of it."""
    owner = Replica("n1", 1, draw(st.integers(0, 4)))
    deltas = []
    for number, pattern in draw(
        st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["a", "b", None])), min_size=1, max_size=25)
    ):
        owner.write(f"sub:{number}", row("n1", number, pattern) if pattern else None)
        since = draw(st.integers(0, owner.through))
        delta = owner.delta(since, draw(st.sampled_from([None, 1, 3])))
        if delta is not None and draw(st.booleans()):
            deltas.append(delta)
    last = owner.delta(draw(st.integers(0, owner.through - 1)))
    assert last is not None
    rest = owner.delta(0)
    assert rest is not None
    return owner.rows(), [*deltas, last, rest]


@settings(deadline=None, max_examples=300)
@given(histories(), st.randoms(use_true_random=False))
def test_order_does_not_matter(history: tuple[dict[str, Row], list[Delta]], shuffle: random.Random) -> None:
    expected, deltas = history
    for _ in range(3):
        copy = Replica("n1", 1, 2)
        order = [*deltas, *shuffle.sample(deltas, len(deltas) // 2)]
        shuffle.shuffle(order)
        for delta in order:
            copy.merge(delta)
        assert copy.rows() == expected
        assert copy.through == max(delta.through for delta in deltas)


@settings(deadline=None, max_examples=200)
@given(histories(), st.randoms(use_true_random=False))
def test_changes_add_up_to_the_rows(history: tuple[dict[str, Row], list[Delta]], shuffle: random.Random) -> None:
    """A shell that only follows what `merge` reports knows the same as one that looks."""
    _, deltas = history
    copy, followed = Replica("n1", 1, 2), dict[str, Row]()
    shuffle.shuffle(deltas)
    for delta in deltas:
        for key, (before, after) in copy.merge(delta).items():
            assert followed.get(key) == before
            if after is None:
                followed.pop(key, None)
            else:
                followed[key] = after
        assert followed == copy.rows()


def test_tombstones_and_spans_are_bounded() -> None:
    owner = Replica("n1", 1, 10)
    deltas = []
    for number in range(500):
        owner.write(f"sub:{number}", row("n1", number, "a"))
        owner.write(f"sub:{number}", None)
        delta = owner.delta(owner.through - 1)
        assert delta is not None
        deltas.append(delta)
    everything = owner.delta(0)
    assert everything is not None
    assert len(everything.entries) <= 10
    copy = Replica("n1", 1, 10)
    for delta in reversed(deltas):
        copy.merge(delta)
    assert len(copy._spans) <= MAX_SPANS
    copy.merge(everything)
    assert copy.rows() == {}
    assert copy.through == owner.through

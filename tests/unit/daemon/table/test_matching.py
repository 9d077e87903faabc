from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringcast.daemon.table.matching import PatternIndex
from ringcast.model.tag import matches

NAMES = ["a", "a/b", "a/c", "b"]
PATTERNS = [*NAMES, "*", "a/*", "**"]
Item = tuple[int, int]
steps = st.tuples(st.booleans(), st.sampled_from(PATTERNS), st.integers(1, 4), st.integers())


@given(st.lists(steps, max_size=40))
def test_what_is_found_is_what_was_added_and_not_discarded(steps: list[tuple[bool, str, int, int]]) -> None:
    index: PatternIndex[int, Item] = PatternIndex(lambda item: item[0])
    held: dict[tuple[str, int], Item] = {}
    for adds, pattern, key, value in steps:
        if adds:
            index.add(pattern, (key, value))
            held[pattern, key] = key, value
        else:
            index.discard(pattern, key)
            held.pop((pattern, key), None)
        assert sorted(index.items()) == sorted(held.values())
        for name in NAMES:
            selected = [item for (under, _), item in held.items() if matches(under, name)]
            assert sorted(index.matching(name)) == sorted(selected)
        for pattern in PATTERNS:
            assert sorted(index.exact(pattern)) == sorted(item for (under, _), item in held.items() if under == pattern)

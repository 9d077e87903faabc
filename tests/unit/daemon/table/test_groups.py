from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringcast.daemon.table.groups import Groups

Item = tuple[int, int]
steps = st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(1, 3), st.integers())


@given(st.lists(steps, max_size=40))
def test_groups_are_dictionaries_of_dictionaries(steps: list[tuple[bool, str, int, int]]) -> None:
    groups: Groups[int, Item] = Groups(lambda item: item[0])
    held: dict[str, dict[int, Item]] = {}
    for adds, group, key, value in steps:
        if adds:
            groups.add(group, (key, value))
            held.setdefault(group, {})[key] = key, value
        else:
            groups.discard(group, key)
            held.get(group, {}).pop(key, None)
        filled = {name: list(items.values()) for name, items in held.items() if items}
        assert {name: list(groups.of(name)) for name in groups} == filled
        assert sorted(groups.items()) == sorted(item for items in filled.values() for item in items)
        assert all((name in groups) == (name in filled) for name in "abc")

"""Tag names, patterns, and which of them match."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.errors import BadTagName
from ringcast.model.tag import MAX_NAME_BYTES, check_name, check_pattern, covers, is_pattern, matches, overlap, tag_id


@pytest.mark.parametrize("name", ["a", "lab/bench1/temp", "@system/clock", "a.b:c+d=e~f-g_h", "x" * MAX_NAME_BYTES])
def test_good_names(name: str) -> None:
    assert check_name(name) == name
    assert check_pattern(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("/a", "empty segment"),
        ("a//b", "empty segment"),
        ("a/", "empty segment"),
        ("a/*", "only subscriptions"),
        ("a b", "letters, digits"),
        ("a\n", "letters, digits"),
        ("ä", "letters, digits"),
        ("\ud800", "letters, digits"),
        ("x" * (MAX_NAME_BYTES + 1), "longer"),
    ],
)
def test_bad_names_say_why(name: str, reason: str) -> None:
    with pytest.raises(BadTagName, match=reason):
        check_name(name)


def test_a_name_must_be_a_string() -> None:
    with pytest.raises(BadTagName, match="must be a string"):
        check_name(b"lab")  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["a/b*", "***", "a/**b", "*a"])
def test_a_wildcard_is_a_whole_segment(pattern: str) -> None:
    with pytest.raises(BadTagName, match="whole segments"):
        check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("lab/temp", "lab/temp", True),
        ("lab/temp", "lab/temp2", False),
        ("*", "lab", True),
        ("*", "lab/temp", False),
        ("lab/*/temp", "lab/b1/temp", True),
        ("lab/*/temp", "lab/temp", False),
        ("lab/*/temp", "lab/a/b/temp", False),
        ("lab/**", "lab", True),
        ("lab/**", "lab/a/b/c", True),
        ("lab/**", "labs/a", False),
        ("**", "anything/at/all", True),
        ("**/temp", "temp", True),
        ("**/temp", "a/b/temp", True),
        ("**/temp", "a/b/temp2", False),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "a/b/c", False),
        ("**/**", "a", True),
        ("a/**/**", "a/b", True),
        ("**/a/**/b", "x/a/a/y/b", True),
        ("*/**", "a", True),
        ("**", "@system/clock", False),
        ("*/clock", "@system/clock", False),
        ("@system/*", "@system/clock", True),
        ("@system/**", "@system", True),
        ("lab/*", "lab/@x", True),
        ("a.b", "aXb", False),
    ],
)
def test_matching(pattern: str, name: str, expected: bool) -> None:
    assert matches(check_pattern(pattern), check_name(name)) is expected


def _reference(pattern: list[str], name: list[str]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return any(_reference(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and pattern[0] in ("*", name[0]) and _reference(pattern[1:], name[1:])


_names = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6)
_patterns = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=5)


@given(_patterns, _names)
def test_matching_agrees_with_its_definition(pattern: list[str], name: list[str]) -> None:
    assert matches("/".join(pattern), "/".join(name)) is _reference(pattern, name)


def test_a_malicious_pattern_is_answered_at_all() -> None:
    """A backtracking regular expression would need longer than the universe has."""
    assert not matches("/".join(["**", "a"] * 40), "/".join("a" * 127) + "/b")


def test_a_tag_has_the_same_number_everywhere() -> None:
    assert tag_id("lab/temp") == tag_id("lab/temp") != tag_id("lab/temp2")
    assert 0 <= tag_id("lab/temp") < 2**63
    assert is_pattern("a/*")
    assert not is_pattern("a/b")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/*", "*/b", True),
        ("a/*", "b/*", False),
        ("**", "a/*/c", True),
        ("a/**/z", "a/*", True),
        ("a/**/z", "*/b", False),
        ("*/*", "*", False),
        ("a/**", "**/z", True),
        ("**", "@system/*", False),
        ("@system/**", "@system/*", True),
    ],
)
def test_which_patterns_overlap(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is expected


_WILD = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4).map("/".join)
_TAGS = ["/".join(path) for size in range(1, 6) for path in itertools.product("abc", repeat=size)]


@given(_WILD, _WILD)
def test_patterns_overlap_exactly_when_a_tag_is_selected_by_both(one: str, other: str) -> None:
    assert overlap(one, other) is any(matches(one, tag) and matches(other, tag) for tag in _TAGS)


@pytest.mark.parametrize(
    ("pattern", "other", "answer"),
    [
        ("a/b", "a/b", True), ("a/*", "a/b", True), ("a/*", "a/*", True), ("a/*", "a/**", False),
        ("a/**", "a/*", True), ("a/**", "a/*/c", True), ("a/**", "a/**", True), ("**", "a/**/b", True),
        ("a/**", "**", False), ("**/c", "a/**/c", True), ("**/c", "a/**", False), ("a/**/c", "a/*/c", True),
        ("*", "**", False), ("**", "@x/**", False), ("@x/**", "@x/*", True), ("@x/**", "**", False),
        ("a/b", "a/*", False), ("*/**", "**", False),
    ],
)  # fmt: skip
def test_a_pattern_covers_another(pattern: str, other: str, answer: bool) -> None:
    assert covers(pattern, other) is answer


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4).map("/".join),
       st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4).map("/".join),
       st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map("/".join))  # fmt: skip
def test_what_is_covered_is_selected(pattern: str, other: str, name: str) -> None:
    if covers(pattern, other) and matches(other, name):
        assert matches(pattern, name)

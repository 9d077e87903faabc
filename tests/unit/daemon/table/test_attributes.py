"""What a tag's attributes may be, and when two callers disagree."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.daemon.table.attributes import MAX_SCHEMA_BYTES, MAX_SCHEMA_NESTING, check_geometry, resolve
from ringcast.errors import QosMismatch, TagConflict
from ringcast.model.tag import TagAttributes


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    "requested",
    [
        {},
        {"depth": 1},
        {"depth": 2**24},
        {"capacity_bytes": 1},
        {"capacity_bytes": 2**40},
        {"max_wait_s": 0},
        {"max_wait_s": 3600.0},
        {"prefault": True},
        {"codec": "no-such-codec"},
        {"schema": None},
        {"schema": {"type": "object", "items": [1, {"x": None}]}},
        {"schema": nested(MAX_SCHEMA_NESTING - 1)},
    ],
)
def test_good_attributes(requested: dict[str, Any]) -> None:
    assert resolve("a", requested, None) == TagAttributes(**requested)


@pytest.mark.parametrize(
    ("requested", "says"),
    [
        ({"depth": 0}, "whole number from 1 to 16777216"),
        ({"depth": 2**24 + 1}, "whole number from 1"),
        ({"depth": True}, "whole number"),
        ({"depth": 1.0}, "whole number"),
        ({"depth": "1"}, "whole number"),
        ({"capacity_bytes": 0}, "whole number from 1"),
        ({"capacity_bytes": 2**40 + 1}, "whole number from 1"),
        ({"max_wait_s": -0.1}, "seconds from 0 to 3600"),
        ({"max_wait_s": 3601}, "seconds from 0 to 3600"),
        ({"max_wait_s": float("nan")}, "seconds from 0"),
        ({"max_wait_s": None}, "seconds from 0"),
        ({"prefault": 1}, "True or False"),
        ({"codec": ""}, "name of a codec"),
        ({"codec": "x" * 65}, "name of a codec"),
        ({"schema": [1]}, "JSON schema"),
        ({"schema": {1: 2}}, "JSON schema"),
        ({"schema": {"x": "y" * MAX_SCHEMA_BYTES}}, "JSON schema"),
        ({"schema": nested(MAX_SCHEMA_NESTING + 1)}, "JSON schema"),
        ({"colour": "red"}, "no such attribute"),
    ],
)
def test_bad_attributes_say_what_is_expected(requested: dict[str, Any], says: str) -> None:
    with pytest.raises(QosMismatch, match=says) as refused:
        resolve("a", requested, None)
    assert len(str(refused.value)) < 500


def test_only_what_the_caller_named_is_compared() -> None:
    existing = TagAttributes(depth=8, codec="json")
    assert resolve("a", {}, existing) is existing
    assert resolve("a", {"codec": "json", "depth": 8}, existing) is existing
    with pytest.raises(TagConflict) as conflict:
        resolve("a", {"depth": 8, "codec": "msgpack"}, existing)
    assert conflict.value.attribute == "codec"


def test_a_bad_value_is_no_conflict() -> None:
    with pytest.raises(QosMismatch):
        resolve("a", {"depth": -1}, TagAttributes())


@pytest.mark.parametrize("geometry", [(0, 1), (1, 0), (2**24 + 1, 1), (1, 2**40 + 1), (-1, -1)])
def test_impossible_geometry(geometry: tuple[int, int]) -> None:
    check_geometry(16, 4096)
    with pytest.raises(QosMismatch):
        check_geometry(*geometry)

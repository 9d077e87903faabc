from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from ringcast.codec.schema import checking_type, describe


class Point(msgspec.Struct):
    """Where it is."""

    x: float
    y: float
    name: str = "here"


class Place(msgspec.Struct):
    """The same, written down by somebody else."""

    y: float
    x: float
    name: str = "there"


@dataclass
class Line:
    start: Point
    end: Point


class Tree(msgspec.Struct):
    value: int
    children: "list[Tree]" = []


class Titled(msgspec.Struct):
    title: str
    default: int


class Wire(TypedDict):
    port: int


def fits(description: dict[str, Any], value: object) -> bool:
    try:
        msgspec.convert(value, checking_type(description))
    except msgspec.ValidationError:
        return False
    return True


def test_equal_shapes_have_equal_descriptions():
    assert describe(Point) == describe(Place)


def test_another_shape_has_another_description():
    assert len({repr(describe(kind)) for kind in (Point, Line, Tree, Titled, Wire, list[int], dict[str, float])}) == 7


def test_a_description_is_plain_values():
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(describe(Line))) == describe(Line)


def test_describing_a_description_changes_nothing():
    assert describe(describe(Line)) == describe(Line)


def test_fields_may_be_called_like_keywords():
    assert fits(describe(Titled), {"title": "a", "default": 1})
    assert not fits(describe(Titled), {"title": 1, "default": 1})


@pytest.mark.parametrize("thing", [object(), 7, {1: object()}])
def test_what_is_no_schema_is_refused(thing):
    with pytest.raises(TypeError):
        describe(thing)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Point, {"x": 1.0, "y": 2}, {"x": 1.0}),
        (Line, {"start": {"x": 1, "y": 2}, "end": {"x": 1, "y": 2, "more": 1}}, {"start": {"x": 1, "y": 2}, "end": 3}),
        (Tree, {"value": 1, "children": [{"value": 2}]}, {"value": "1"}),
        (Wire, {"port": 1}, {"port": 1.5}),
        (list[int], [1, 2], [1, "2"]),
        (dict[str, float], {"a": 1.5}, {"a": "b"}),
        (tuple[int, str], [1, "a"], [1]),
        (int | str, 1, 1.5),
        (Literal["a", "b"], "a", "c"),
        (Annotated[int, msgspec.Meta(ge=3)], 3, 2),
        (Annotated[str, msgspec.Meta(max_length=2)], "ab", "abc"),
        (Annotated[list[int], msgspec.Meta(min_length=1)], [1], []),
        (bool | None, None, 1),
    ],
)
def test_values_are_held_against_a_description(kind, good, bad):
    assert fits(describe(kind), good)
    assert not fits(describe(kind), bad)


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"type": "unheard of"},
        {"type": ["integer", 7]},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$defs": 7, "$ref": "#/$defs/a"},
        {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
        {"enum": [[], {}]},
        {"enum": []},
        {"type": "object", "properties": 7},
        {"type": "string", "maxLength": "many"},
        {"type": "integer", "minimum": 1, "exclusiveMinimum": 1},
    ],
)
def test_what_is_not_understood_is_not_checked(description):
    assert fits(description, {"any": "thing"})


def test_nesting_is_bounded():
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"type": "array", "items": deep}
    assert fits(deep, []) in (True, False)
    with pytest.raises((TypeError, RecursionError)):
        describe(deep)

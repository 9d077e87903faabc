from dataclasses import dataclass

import msgspec
import pytest

from ringcast.codec import find
from ringcast.errors import CodecError, DecodeError, EncodeError


class Point(msgspec.Struct):
    x: float
    y: float


@dataclass
class Reading:
    at: int
    value: float


both = pytest.mark.parametrize("name", ["json", "msgpack"])


def bound(name, schema=None):
    kind = find(name)
    return kind.bind(None if schema is None else kind.describe(schema), schema)


@both
def test_the_type_that_was_given_comes_back(name):
    codec = bound(name, Point)
    assert codec.decode(codec.encode(Point(1.0, 2.0))) == Point(1.0, 2.0)
    codec = bound(name, Reading)
    assert codec.decode(codec.encode(Reading(1, 2.5))) == Reading(1, 2.5)


@both
def test_whoever_joins_without_the_type_gets_plain_values_with_every_field(name):
    kind = find(name)
    sender, joiner = kind.bind(kind.describe(Point), Point), kind.bind(kind.describe(Point))
    assert joiner.decode(sender.encode(Point(1.0, 2.0))) == {"x": 1.0, "y": 2.0}
    assert joiner.decode(joiner.encode({"x": 1.0, "y": 2.0, "z": 3})) == {"x": 1.0, "y": 2.0, "z": 3}


@both
@pytest.mark.parametrize(
    "given", [Point, {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}]
)
def test_a_value_that_does_not_fit_is_refused_when_sent(name, given):
    with pytest.raises(EncodeError, match="schema"):
        bound(name, given).encode({"x": "far"})


@both
def test_bytes_that_do_not_fit_are_refused_when_received(name):
    plain = bound(name)
    with pytest.raises(DecodeError):
        bound(name, Point).decode(plain.encode({"x": 1}))


@both
def test_what_is_no_schema_is_refused_when_the_tag_is_opened(name):
    with pytest.raises(CodecError):
        find(name).describe(object())
    with pytest.raises(CodecError):
        find(name).bind(None, object())


def test_json_refuses_nan_where_the_schema_says_number():
    assert bound("json").encode(float("nan")) == b"null"
    with pytest.raises(EncodeError):
        bound("json", float).encode(float("nan"))

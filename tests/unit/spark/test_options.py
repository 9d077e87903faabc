"""A wrong option is a sentence at once, not an empty table later."""

from __future__ import annotations

import pytest

from ringcast.errors import BadTagName
from ringcast.spark.tags.options import Time, read_options, starting, write_options


def test_defaults_of_a_stream_and_of_a_table() -> None:
    assert read_options({"tag": "a/*"}, streaming=True).starting == "latest"
    assert read_options({"tag": "a/*"}, streaming=False).starting == "earliest"
    only_recorded = read_options({"path": "d"}, streaming=True)
    assert (only_recorded.pattern, only_recorded.live, only_recorded.starting) == ("**", False, "earliest")


def test_where_to_begin() -> None:
    assert starting("17") == 17
    assert starting('{"c0ffee": 5}') == {"0000000000c0ffee": 5}
    assert starting("1970-01-01T00:00:01Z") == Time(1_000_000_000)
    assert starting("1970-01-01T00:00:01.5") == Time(1_500_000_000)
    for wrong in ("soon", '{"a": -1}', "{"):
        with pytest.raises(ValueError, match="startingOffsets"):
            starting(wrong)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "say which tag"),
        ({"tag": "a", "failOnDataLoss": "maybe"}, "true or false"),
        ({"tag": "a", "maxMessagesPerTrigger": "0"}, "from 1 on"),
        ({"tag": "a", "startingOffset": "latest"}, "unknown option startingOffset;"),
    ],
)
def test_wrong_options(options: dict[str, str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_options(options, streaming=True)


def test_names_are_checked() -> None:
    with pytest.raises(BadTagName):
        read_options({"tag": "a//b"}, streaming=True)
    with pytest.raises(BadTagName):
        write_options({"tag": "a/*"})
    with pytest.raises(ValueError, match="on which tag"):
        write_options({})

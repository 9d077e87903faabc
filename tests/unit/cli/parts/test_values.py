from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.cli.parts import values
from ringcast.cli.program import Misuse


def test_text_is_sent_as_its_bytes_on_a_tag_of_bytes() -> None:
    assert values.parse("grün", "bytes") == "grün".encode()


def test_an_argument_that_is_not_utf8_is_sent_as_the_bytes_it_was() -> None:
    assert values.parse(b"\xff\x00".decode(errors="surrogateescape"), "bytes") == b"\xff\x00"


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_records_are_written_as_json(codec: str) -> None:
    assert values.parse('{"on": true, "n": 3}', codec) == {"on": True, "n": 3}


@pytest.mark.parametrize("codec", ["json", "msgpack", "numpy"])
def test_what_is_not_json_is_a_misuse_that_says_how_to_write_a_string(codec: str) -> None:
    with pytest.raises(Misuse, match=r"is not JSON.*'\"hello\"'"):
        values.parse("hello", codec)


def test_arrays_are_written_as_lists() -> None:
    array = values.parse("[[1, 2], [3, 4]]", "numpy")
    assert array.shape == (2, 2)


@pytest.mark.parametrize("text", ["[[1], [2, 3]]", '"text"', '{"a": 1}', "null"])
def test_what_is_no_array_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="array"):
        values.parse(text, "numpy")


@pytest.mark.parametrize("codec", ["bytes", "json", "msgpack", "numpy"])
def test_a_counter_counts_in_every_codec(codec: str) -> None:
    assert values.counted(7, codec) in (b"7", 7)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"21.5", "21.5"), (b"", "(empty)"), (b"a\nb\\", "a\\nb\\\\"), (b"\x00\xff", "0x00ff (2 B)"),
        ({"a": [1, None]}, '{"a":[1,null]}'), ("text", '"text"'), (b"\x1b[31m", "0x1b5b3331 6d (5 B)"),
    ],
)  # fmt: skip
def test_values_are_shown_on_one_line(value: object, shown: str) -> None:
    assert values.show(value) == shown


def test_long_bytes_are_cut_with_their_size() -> None:
    assert values.show(bytes(2048)).endswith("... (2.0 KiB)")
    assert values.show(b"x" * 1000, limit=10) == "xxxxxxxxxx... (1000 characters)"


def test_arrays_are_shown_by_shape_and_range() -> None:
    assert values.show(np.array([1.5, 2.0], dtype=np.float32)) == "float32 2 (8 B) [1.5, 2]"
    assert values.show(np.arange(100, dtype=np.uint8).reshape(10, 10)) == "uint8 10x10 (100 B) min 0, mean 49.5, max 99"
    assert values.show(np.zeros((0, 3))) == "float64 0x3 (0 B)"


@given(st.one_of(st.binary(max_size=400), st.text(max_size=400), st.dictionaries(st.text(), st.integers())))
def test_nothing_shown_can_control_a_terminal(value: object) -> None:
    shown = values.show(value)
    assert shown.isprintable()
    assert len(shown) <= values.SHOWN_CHARACTERS * 10


@given(st.binary(max_size=300))
def test_bytes_survive_json(data: bytes) -> None:
    written = msgspec.json.decode(msgspec.json.encode(values.as_json(data)))
    if written["encoding"] == "utf-8":
        assert written["value"].encode() == data
    else:
        assert msgspec.convert(written["value"], bytes) == data  # base64, as msgspec reads it


def test_arrays_and_strange_values_in_json() -> None:
    array = values.as_json(np.array([[1, 2]], dtype=np.int16))
    assert array == {"encoding": "numpy", "dtype": "int16", "shape": [1, 2], "value": [[1, 2]]}
    assert values.as_json(object())["encoding"] == "repr"
    assert values.as_json([1, None]) == {"encoding": "json", "value": [1, None]}


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_raw_output_is_what_the_codec_writes(codec: str) -> None:
    written = values.encoded({"a": 1}, codec)
    assert (msgspec.json.decode(written) if codec == "json" else msgspec.msgpack.decode(written)) == {"a": 1}
    assert values.encoded(b"as it is", "bytes") == b"as it is"

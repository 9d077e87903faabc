import numpy as np
import pytest

from ringcast.codec import find
from ringcast.errors import CodecError, DecodeError, EncodeError

POINT = np.dtype([("x", "f4"), ("rgb", "u1", (3,)), ("at", [("s", "i8"), ("ns", "i4")])], align=True)


def joined(encoded):
    return b"".join(map(bytes, encoded)) if isinstance(encoded, tuple) else bytes(encoded)


@pytest.fixture
def codec():
    return find("numpy").bind(None)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(10)[::2],
        np.zeros((0, 3), "f4"),
        np.array(7, "u1"),
        np.float32(2.5),
        np.array(["2026-01-01"], "M8[ns]"),
        np.array([1, 2], "m8[ms]"),
        np.array([1, 2], ">i4"),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["é", "long"]),
        np.array([b"ab", b"c"]),
        np.zeros(3, POINT),
    ],
)
def test_shape_dtype_and_values_arrive(codec, array):
    out = codec.decode(joined(codec.encode(array)))
    assert (out.dtype, out.shape) == (np.asarray(array).dtype, np.asarray(array).shape)
    assert out.tobytes() == np.asarray(array).tobytes()


def test_nothing_is_copied_on_the_way_out_or_in(codec):
    array = np.arange(1000.0)
    _, payload = codec.encode(array)
    assert np.shares_memory(np.frombuffer(payload, "u1"), array)
    data = joined(codec.encode(array))
    out = codec.decode(data)
    assert np.shares_memory(out, np.frombuffer(data, "u1"))
    assert not out.flags.writeable
    assert out.ctypes.data % out.itemsize == 0


def test_a_change_of_shape_is_noticed(codec):
    for array in (np.zeros(3), np.zeros((3, 1)), np.zeros(3, "f4"), np.zeros(3)):
        assert codec.decode(joined(codec.encode(array))).shape == array.shape


def test_what_follows_a_header_that_is_known_is_looked_at_as_closely(codec):
    data = joined(codec.encode(np.arange(4.0)))
    for _ in range(2):
        assert codec.decode(data).tolist() == [0.0, 1.0, 2.0, 3.0]
    for forged in (data[:-1], data + b"x", b"\x92" + data[1:], data[:3]):
        with pytest.raises(DecodeError):
            codec.decode(forged)
    assert codec.decode(memoryview(data)).tolist() == [0.0, 1.0, 2.0, 3.0]
    other = codec.decode(data)
    assert not other.flags.writeable


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([1, 2], "numpy.asarray"),
        (np.array([object()]), "Python objects"),
        (np.zeros(2, [("o", "O")]), "Python objects"),
        (np.ma.masked_array([1, 2], [0, 1]), "mask"),
        (np.zeros(2, [(f"f{i}", "f8") for i in range(1000)]), "too many fields"),
    ],
)
def test_what_cannot_be_sent_says_why(codec, value, why):
    with pytest.raises(EncodeError, match=why):
        codec.encode(value)


def test_a_schema_fixes_dtype_and_shape():
    kind = find("numpy")
    description = kind.describe({"dtype": "float32", "shape": [None, 3]})
    codec = kind.bind(description)
    codec.encode(np.zeros((7, 3), "f4"))
    for wrong in (np.zeros((7, 3)), np.zeros((7, 2), "f4"), np.zeros(3, "f4")):
        with pytest.raises(EncodeError, match="schema"):
            codec.encode(wrong)
        with pytest.raises(DecodeError, match="schema"):
            codec.decode(joined(kind.bind(None).encode(wrong)))
    assert kind.describe({"dtype": "<f4", "shape": (-1, 3)}) == description


@pytest.mark.parametrize("schema", [7, {"dtype": "nonsense"}, {"dtype": "O"}, {"type": "number"}])
def test_what_is_no_schema_of_arrays_is_refused(schema):
    with pytest.raises(CodecError):
        find("numpy").describe(schema)


@pytest.mark.parametrize("description", [{"dtype": "O"}, {"dtype": [["a", "O"]]}, {"shape": "x"}, {"other": 1}])
def test_what_another_program_wrote_into_the_tag_is_not_trusted(description):
    with pytest.raises(CodecError):
        find("numpy").bind(description)


@pytest.mark.parametrize(
    "descr", [b'"|O"', b'"<f3"', b'"i4,O"', b'[["a","|O"]]', b"7", b"[]", b'"|V0', b'[["a","<f4",[-1]]]']
)
def test_hostile_dtypes_are_decode_errors(codec, descr):
    head = bytes([0x93, 1, 0, 0]) + len(descr).to_bytes(4, "little") + descr
    with pytest.raises(DecodeError):
        codec.decode(head + bytes(-len(head) % 16) + bytes(64))


def test_a_shape_that_promises_more_than_there_is_is_a_decode_error(codec):
    data = bytearray(joined(codec.encode(np.zeros((4, 4)))))
    for extent in (0, 3, 5, 2**62, 2**63, 2**64 - 1):
        data[8:16] = extent.to_bytes(8, "little")
        with pytest.raises(DecodeError):
            codec.decode(bytes(data))

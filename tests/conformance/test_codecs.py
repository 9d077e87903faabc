"""Every codec keeps the promises of `ringcast.codec.interface`."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

from ringcast.codec import find, installed
from ringcast.codec.audio import AudioBlock
from ringcast.errors import CodecError, DecodeError, EncodeError

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
values: dict[str, st.SearchStrategy[Any]] = {
    "bytes": st.binary(),
    "json": plain,
    "msgpack": plain | st.binary(),
    "audio": st.builds(
        AudioBlock,
        arrays(st.sampled_from([np.int16, np.float32]), array_shapes(min_dims=1, max_dims=2, max_side=5)),
        st.integers(1, 2**20),
    ),
    "image": arrays(np.uint8, array_shapes(min_dims=2, max_dims=3, max_side=4)),
    "numpy": arrays(scalar_dtypes(), array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
}
unfit: dict[str, list[Any]] = {
    "bytes": [],  # the core itself refuses what is no buffer
    "audio": [object(), np.zeros(3, np.int16), AudioBlock(np.zeros(3), 8000), AudioBlock(np.zeros(3, np.int16), 0)],
    "image": [object(), np.zeros((2, 2)), np.zeros(4, np.uint8), np.zeros((2, 2, 5), np.uint8)],
    "json": [object(), "\ud800", {(1, 2): 3}],
    "msgpack": [object(), "\ud800", 2**70],
    "numpy": [object(), [1], "text", None, np.array([object()])],
}
every = pytest.mark.parametrize("name", ["audio", "bytes", "image", "json", "msgpack", "numpy"])


def encoded(codec: Any, value: Any) -> bytes:
    out = value if codec.encode is None else codec.encode(value)
    return b"".join(map(bytes, out)) if isinstance(out, tuple) else bytes(out)


def decoded(codec: Any, data: bytes | memoryview) -> Any:
    return data if codec.decode is None else codec.decode(data)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, AudioBlock):
        return a.rate_hz == b.rate_hz and same(a.samples, b.samples)
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return bool(a == b)


def test_every_built_in_codec_is_tested_here():
    assert set(installed()) >= values.keys() == unfit.keys()


@every
@settings(deadline=None)
@given(data=st.data())
def test_what_is_sent_arrives(name: str, data: st.DataObject) -> None:
    codec = find(name).bind(None)
    value = data.draw(values[name])
    wire = encoded(codec, value)
    assert same(value, decoded(codec, wire))
    assert same(value, decoded(codec, memoryview(wire)))


@every
@settings(deadline=None)
@given(garbage=st.binary(max_size=200))
def test_any_bytes_decode_or_raise_decode_error(name: str, garbage: bytes) -> None:
    try:
        decoded(find(name).bind(None), garbage)
    except DecodeError:
        pass


@every
@settings(deadline=None)
@given(data=st.data())
def test_damaged_bytes_decode_or_raise_decode_error(name: str, data: st.DataObject) -> None:
    codec = find(name).bind(None)
    wire = bytearray(encoded(codec, data.draw(values[name])))
    for _ in range(data.draw(st.integers(1, 4))):
        if wire:
            wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    wire = wire[: data.draw(st.integers(0, len(wire)))]
    try:
        decoded(codec, bytes(wire))
    except DecodeError:
        pass


@every
def test_what_cannot_be_encoded_raises_encode_error(name: str) -> None:
    codec = find(name).bind(None)
    for value in unfit[name]:
        with pytest.raises(EncodeError) as caught:
            encoded(codec, value)
        assert caught.value.codec == name


@every
@settings(deadline=None)
@given(description=st.dictionaries(st.text(), plain, max_size=3))
def test_a_description_written_by_a_stranger_binds_or_is_refused(name: str, description: dict[str, Any]) -> None:
    try:
        find(name).bind(description)
    except CodecError:
        pass


@pytest.mark.parametrize("name", ["json", "msgpack"])
@settings(deadline=None)
@given(value=plain)
def test_descriptions_survive_the_tag_table(name: str, value: Any) -> None:
    kind = find(name)
    description = kind.describe(dict[str, list[float]])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(description)) == description
    try:
        kind.bind(description).encode(value)
    except EncodeError:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, dict[str, list[float]])


@pytest.mark.parametrize("form", ["png", "jpeg"])
@pytest.mark.parametrize("shape", [(9, 7), (9, 7, 1), (9, 7, 3)])
def test_compressed_images_arrive(form: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    found = decoded(find("image").bind(None), encoded(find("image").bind({"format": form}), image))
    assert found.shape == shape
    assert form == "jpeg" or same(image, found)


def test_webp_arrives_in_colour_and_refuses_grey() -> None:
    image = np.full((9, 7, 3), 90, np.uint8)
    found = decoded(find("image").bind(None), encoded(find("image").bind({"format": "webp"}), image))
    assert found.shape == image.shape
    assert abs(found.astype(int) - 90).max() < 8
    with pytest.raises(EncodeError, match="colour"):
        find("image").bind({"format": "webp"}).encode(image[:, :, 0])


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
@settings(deadline=None)
@given(data=st.data())
def test_damaged_compressed_images_decode_or_raise_decode_error(form: str, data: st.DataObject) -> None:
    wire = bytearray(encoded(find("image").bind({"format": form}), np.zeros((5, 5, 3), np.uint8)))
    wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded(find("image").bind(None), bytes(wire[: data.draw(st.integers(0, len(wire)))]))
    except DecodeError:
        pass

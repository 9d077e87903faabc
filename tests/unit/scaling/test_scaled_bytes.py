"""What a message has at most after scaling, by its tag's schema: never less than what the scaler makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast.codec import find
from ringcast.codec.audio import AudioBlock
from ringcast.model.tag import TagAttributes
from ringcast.scaling.registry import scaler_for
from ringcast.scaling.scaled_bytes import scaled_bytes


def encoded(codec, value):
    parts = find(codec).bind(None).encode(value)
    return b"".join(parts) if isinstance(parts, tuple) else bytes(parts)


@pytest.mark.parametrize(
    ("attributes", "value", "sizes"),
    [
        (TagAttributes(codec="numpy", schema={"shape": [48, 64]}), np.zeros((48, 64)), [(64, 48), (7, 5), (1, 1)]),
        (
            TagAttributes(codec="numpy", schema={"shape": [48, 64, 3], "dtype": "uint8"}),
            np.zeros((48, 64, 3), np.uint8),
            [(32, 24), (128, 96)],
        ),
        (TagAttributes(codec="image"), np.zeros((48, 64, 4), np.uint8), [(64, 48), (16, 12), (1, 1)]),
        (TagAttributes(codec="image", schema={"format": "raw"}), np.zeros((48, 64), np.uint8), [(16, 12)]),
        (
            TagAttributes(codec="audio", schema={"rate_hz": 48000, "channels": 2}),
            AudioBlock(np.zeros((481, 2), np.int16), 48000),
            [(48000, 2), (8000, 1), (44100, 2), (1, 1)],
        ),
    ],
)
def test_it_is_no_less_than_what_the_scaler_makes(attributes, value, sizes):
    payload = encoded(attributes.codec, value)
    for size in sizes:
        scaler = scaler_for(attributes.codec, size)
        assert len(scaler.scale(payload, attributes, size)) <= scaled_bytes(attributes, len(payload), size)


def test_a_quarter_of_the_cells_is_about_a_quarter_of_the_bytes():
    attributes = TagAttributes(codec="numpy", schema={"shape": [480, 640]})
    assert 25_000 <= scaled_bytes(attributes, 100_000, (320, 240)) < 25_200


@pytest.mark.parametrize(
    "attributes",
    [
        TagAttributes(codec="numpy"),
        TagAttributes(codec="numpy", schema={"shape": [None, 640]}),
        TagAttributes(codec="numpy", schema={"shape": "anything"}),
        TagAttributes(codec="image", schema={"format": "jpeg"}),
        TagAttributes(codec="audio", schema={"rate_hz": 48000}),
        TagAttributes(codec="somebody-elses"),
    ],
)
def test_where_nothing_is_said_it_is_the_longest_that_was_declared(attributes):
    assert scaled_bytes(attributes, 100_000, (32, 24)) == 100_000

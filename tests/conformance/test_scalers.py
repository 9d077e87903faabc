"""Every scaler of ours keeps the promises of `ringcast.scaling.interface`, and the suite notices those that do not."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast.codec.audio import AudioBlock
from ringcast.errors import QosMismatch, ScaleError
from ringcast.model.tag import TagAttributes
from ringcast.scaling import codecs, scaler_for
from ringcast.scaling.audio import Audio
from ringcast.scaling.spatial import Spatial
from ringcast.testing.scalers import CHECKS, Example, Violation, check_all

RNG = np.random.default_rng(3)
PICTURE = RNG.integers(0, 256, (48, 64, 3), np.uint8)
SIZES = [(16, 12), (7, 5), (64, 48), (80, 60)]
SCHEMA = {"dtype": "<f4", "shape": [10, None, 2]}
EXAMPLES = {
    Spatial: [
        Example(TagAttributes(codec="image"), PICTURE, SIZES),
        Example(TagAttributes(codec="image"), PICTURE[:, :, 0], SIZES),
        Example(TagAttributes(codec="image", schema={"format": "png"}), PICTURE, SIZES),
        Example(TagAttributes(codec="image", schema={"format": "jpeg"}), PICTURE, SIZES),
        Example(TagAttributes(codec="numpy"), RNG.random((9, 11)), [(3, 3), (1, 1)]),
        Example(TagAttributes(codec="numpy", schema=SCHEMA), RNG.random((10, 20, 2)).astype(np.float32), [(5, 5)]),
    ],
    Audio: [
        Example(TagAttributes(codec="audio"), AudioBlock(RNG.integers(-9, 9, (480, 2), np.int16), 48000), [(8000, 1)]),
        Example(TagAttributes(codec="audio", schema={"rate_hz": 44100, "channels": 1}),
                AudioBlock(RNG.random(441).astype(np.float32), 44100), [(8000, 1), (44100, 1)]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("check", CHECKS)
def test_scaler(kind: type, check: str) -> None:
    CHECKS[check](kind(), EXAMPLES[kind])


def test_ours_are_registered() -> None:
    assert {"image", "numpy", "audio"} <= set(codecs())
    assert isinstance(scaler_for("image", (1, 1)), Spatial)


def test_a_codec_that_nobody_scales_is_refused_with_those_that_can() -> None:
    with pytest.raises(QosMismatch, match="'json', only audio, image, numpy"):
        scaler_for("json", (2, 2))


class Remembering(Spatial):
    """What it gives depends on how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def scale(self, payload, attributes, size):
        self.calls += 1
        return super().scale(payload, attributes, size if self.calls % 2 else (1, 1))


class Clumsy(Spatial):
    def scale(self, payload, attributes, size):
        if not len(payload):
            raise KeyError("empty")
        return super().scale(payload, attributes, size)


class Boasting(Spatial):
    codecs = frozenset({"image", "numpy", "json"})


@pytest.mark.parametrize("kind", [Remembering, Clumsy, Boasting])
def test_a_bad_scaler_is_found_out(kind: type) -> None:
    with pytest.raises(Violation):
        check_all(kind(), EXAMPLES[Spatial])


def test_stereo_becomes_mono_at_a_sixth_of_the_rate() -> None:
    samples = np.stack([np.repeat([60, 120], 240), np.repeat([0, 60], 240)], axis=1).astype(np.int16)
    example = Example(TagAttributes(codec="audio"), AudioBlock(samples, 48000), [(8000, 1)])
    from ringcast.codec import find

    block = find("audio").bind(None).decode(Audio().scale(example.payload(), example.attributes, (8000, 1)))
    assert block.rate_hz == 8000
    assert block.samples.shape == (80, 1)
    assert block.samples[:, 0].tolist() == [30] * 40 + [90] * 40


@pytest.mark.parametrize("size", [(96000, 2), (48000, 3)])
def test_audio_is_not_scaled_up(size) -> None:
    payload = Example(TagAttributes(codec="audio"), AudioBlock(np.zeros((4, 2), np.int16), 48000), []).payload()
    with pytest.raises(ScaleError, match="cannot become"):
        Audio().scale(payload, TagAttributes(codec="audio"), size)


@pytest.mark.parametrize("form", [None, "png", "jpeg"])
def test_a_picture_of_the_wanted_size_passes_as_it_came(form: str | None) -> None:
    attributes = TagAttributes(codec="image", schema={"format": form} if form else None)
    payload = Example(attributes, PICTURE, []).payload()
    assert Spatial().scale(memoryview(payload), attributes, (64, 48)) == payload


def test_an_array_without_area_cannot_be_scaled() -> None:
    payload = Example(TagAttributes(codec="numpy"), np.zeros(5), []).payload()
    with pytest.raises(ScaleError, match="no area"):
        Spatial().scale(payload, TagAttributes(codec="numpy"), (2, 2))

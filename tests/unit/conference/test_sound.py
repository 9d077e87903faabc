"""Known signals, and the same results in Python and in the page's JavaScript."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from vectors import KNOWN, in_javascript, in_python, signal

from ringcast.conference.sound.blocks import TELEPHONE, WIDE, BadBlock, Format, pack, unpack_untrusted
from ringcast.conference.sound.buffers import SpeakerBuffer
from ringcast.conference.sound.mixing import ByPublishers, BySpeakers


@pytest.mark.parametrize("language", [in_python, in_javascript])
def test_known_signals(language: Any) -> None:
    found = language(KNOWN)
    for got, known in zip(found["silence"], KNOWN["silence"], strict=True):
        assert got == {"level": known["level"], "silent": known["silent"]}, known
    for blocks, known in zip(found["mixing"], KNOWN["mixing"], strict=True):
        for got, block in zip(blocks, known["blocks"], strict=True):
            assert got["mixed"] == signal(block["mixed"]).tolist(), known["about"]
            assert got["divisor"] == block["divisor"], known["about"]
    for got, known in zip(found["buffers"], KNOWN["buffers"], strict=True):
        assert got.pop("taken") == [step[1] for step in known["steps"] if step[0] == "take"], known["about"]
        assert got == {key: known[key] for key in got}, known["about"]


def test_both_languages_agree_on_random_signals() -> None:
    rng = random.Random(12)

    def runs(form: Format) -> list[list[int]]:
        return [[rng.randint(form.low, form.high), 1] for _ in range(form.frames)]

    vectors = {
        "silence": [
            {"format": form.number, "signal": runs(form), "threshold": rng.uniform(0, 100)}
            for form in (TELEPHONE, WIDE)
        ],
        "mixing": [
            {
                "format": form.number, "scheme": scheme, "publishers": n,
                "blocks": [{"streams": [runs(form) for _ in range(n)]} for _ in range(3)],
            }
            for form in (TELEPHONE, WIDE) for scheme in ("publishers", "speakers") for n in (2, 4, 8)
        ],
        "buffers": [
            {"options": options, "steps": _steps(rng)} for options in ({}, {"max_s": 1, "max_t": 3, "settle": 4})
        ],
        "blocks": [
            {
                "format": form.number, "participant": rng.getrandbits(32), "number": rng.getrandbits(32),
                "silent": rng.random() < 0.5, "floats": [rng.uniform(-1.2, 1.2) for _ in range(form.frames)],
            }
            for form in (TELEPHONE, WIDE)
        ],
    }  # fmt: skip
    assert in_javascript(vectors) == in_python(vectors)


def _steps(rng: random.Random) -> list[list[Any]]:
    steps: list[list[Any]] = []
    for number in range(400):
        steps += rng.choice([[["put", number, rng.random() < 0.5]], [["take", None]], [["put", number - 2, False]]])
    return steps


@pytest.mark.parametrize("speakers", [2, 4, 8])
def test_the_first_scheme_is_the_mean_towards_zero(speakers: int) -> None:
    rng = np.random.default_rng(speakers)
    streams = [rng.integers(-128, 128, 256).astype(np.int32) for _ in range(speakers)]
    oracle = np.trunc(np.sum(streams, axis=0) / speakers)
    assert np.array_equal(ByPublishers(TELEPHONE).mix(streams, speakers), oracle)


def test_eight_at_full_scale_never_wrap_and_a_lone_speaker_is_soon_at_full_volume() -> None:
    mixer = BySpeakers(TELEPHONE)
    loud = [np.full(256, value, np.int32) for value in (127, 127, 127, 127, 127, 127, 127, 127)]
    for _ in range(5):
        assert mixer.mix(loud).max() == 127
    alone = np.full(256, 100, np.int32)
    volumes = [int(mixer.mix([alone])[0]) for _ in range(10)]
    assert volumes[-1] == 100
    assert volumes == sorted(volumes)


def test_a_burst_of_thirty_blocks_is_bounded_and_in_order() -> None:
    buffer = SpeakerBuffer(max_s=4, max_t=10)
    for number in range(30):
        buffer.put(number, number % 3 != 0, np.array([number], np.int32))
    assert len(buffer) == 10
    assert buffer.silence_discarded == 20
    assert buffer.talk_discarded == 0
    taken = [int(block[0]) for _ in range(10) if (block := buffer.take()) is not None]
    assert taken == list(range(0, 30, 3))


@pytest.mark.parametrize("damage", [b"", b"\xc5\x01", bytes(268), b"\xc5\x01" + bytes(200), b"\xc5\x09" + bytes(266)])
def test_damaged_blocks_are_refused_with_a_word(damage: bytes) -> None:
    with pytest.raises(BadBlock, match="block"):
        unpack_untrusted(damage)


def test_a_block_has_as_many_samples_as_its_format_says() -> None:
    with pytest.raises(ValueError, match="256 samples"):
        pack(TELEPHONE, 1, 1, np.zeros(5, np.int32), silent=True)
    assert len(pack(TELEPHONE, 1, 1, np.zeros(256, np.int32), silent=True)) == 268
    assert TELEPHONE.block_ns == WIDE.block_ns == 32_000_000

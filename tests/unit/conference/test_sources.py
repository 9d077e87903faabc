"""Sound from files and tones, as blocks."""

from __future__ import annotations

import itertools
import wave
from pathlib import Path

import numpy as np
import pytest

from ringcast.conference import sources
from ringcast.conference.sound.blocks import TELEPHONE, WIDE, Format


def written(path: Path, samples: np.ndarray, rate_hz: int, width: int, channels: int = 1) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate_hz)
        file.writeframes(samples.tobytes())
    return str(path)


@pytest.mark.parametrize("form", [TELEPHONE, WIDE])
def test_a_tone_has_its_frequency_without_a_click_between_blocks(form: Format) -> None:
    blocks = np.concatenate(list(itertools.islice(sources.sound("tone:500", form), 200)))
    strength = np.abs(np.fft.rfft(blocks * np.hanning(len(blocks))))
    assert abs(int(strength.argmax()) * form.rate_hz / len(blocks) - 500) < 1
    assert np.sort(strength)[-20:].sum() > 0.99 * strength[strength > strength.max() / 1000].sum()


def test_files_of_any_rate_width_and_channels_are_played_again_and_again(tmp_path: Path) -> None:
    eight = written(tmp_path / "8.wav", np.full(256, 128 + 50, np.uint8), 8000, 1)
    assert [int(block[0]) for block in itertools.islice(sources.sound(eight, TELEPHONE), 3)] == [50, 50, 50]
    stereo = written(tmp_path / "s.wav", np.full((1024, 2), 1 << 14, "<i2"), 16000, 2, 2)
    found = list(itertools.islice(sources.sound(stereo, TELEPHONE), 2))
    assert {int(sample) for block in found for sample in block} == {64}
    odd = written(tmp_path / "o.wav", np.full(11025, 1 << 13, "<i2"), 11025, 2)
    assert int(next(sources.sound(odd, WIDE))[0]) == 1 << 13


@pytest.mark.parametrize("source", ["missing.wav", "tone:", "tone:5000", "tone:x"])
def test_what_cannot_be_played_is_said(source: str) -> None:
    with pytest.raises(sources.NoSound, match="a source is a WAV file, tone:HZ or silence"):
        sources.sound(source, TELEPHONE)


def test_a_file_that_is_no_sound_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"RIFF nothing")
    with pytest.raises(sources.NoSound, match="cannot be read"):
        sources.sound(str(tmp_path / "x.wav"), TELEPHONE)
    wide = written(tmp_path / "w.wav", np.zeros(30, np.uint8), 8000, 3)
    with pytest.raises(sources.NoSound, match="24 bits"):
        sources.sound(wide, TELEPHONE)


def test_pictures_move_and_differ_by_participant() -> None:
    assert sources.picture(1, 5).shape == (120, 160, 3)
    assert not np.array_equal(sources.picture(1, 5), sources.picture(2, 5))
    assert not np.array_equal(sources.picture(1, 5), sources.picture(1, 6))

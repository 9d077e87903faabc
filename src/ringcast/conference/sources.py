"""Where a participant without a microphone and a camera has sound and pictures from. Pure but for reading the file.

Sound: a WAV file, again and again; `tone:HZ`; `silence`. Pictures: a test picture with a bar that moves.
"""

from __future__ import annotations

import math
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringcast.conference.sound.blocks import Format, Samples, from_floats
from ringcast.errors import RingcastError

TONE_LEVEL = 0.4
PICTURE = (120, 160, 3)


class NoSound(RingcastError):
    """What was named cannot be played. `source` is what was named."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(f"{source}: {why}; a source is a WAV file, tone:HZ or silence")
        self.source = source


def sound(source: str, form: Format) -> Iterator[Samples]:
    """Blocks without end. Raises NoSound at once."""
    if source == "silence":
        samples = np.zeros(form.frames, np.int32)
    elif source.startswith("tone:"):
        samples = tone(source, form)
    else:
        samples = from_floats(form, resampled(*read(source), form.rate_hz))
        samples = np.pad(samples, (0, -len(samples) % form.frames))
    return _repeated(samples, form.frames)


def tone(source: str, form: Format) -> Samples:
    try:
        hz = float(source.removeprefix("tone:"))
    except ValueError:
        hz = math.nan
    if not 1 <= hz <= form.rate_hz / 2:
        raise NoSound(source, f"a tone has 1 to {form.rate_hz // 2} Hz")
    # A whole second has a whole number of periods of a whole number of hertz: it can be repeated without a click.
    whole = math.lcm(form.rate_hz, form.frames)
    at = np.arange(whole) / form.rate_hz
    return from_floats(form, (TONE_LEVEL * np.sin(2 * np.pi * round(hz) * at)).astype(np.float32))


def read(path: str) -> tuple[NDArray[np.float32], int]:
    """A WAV file's sound from -1 to 1, all channels as one, and its rate. Raises NoSound."""
    try:
        with wave.open(str(Path(path)), "rb") as file:
            width, channels, rate_hz = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as exc:
        raise NoSound(path, f"cannot be read: {exc}") from exc
    if width == 1:
        flat = (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    elif width == 2:
        flat = np.frombuffer(data, "<i2").astype(np.float32) / 32768
    else:
        raise NoSound(path, f"has samples of {8 * width} bits, and 8 or 16 are understood")
    if len(flat) < channels:
        raise NoSound(path, "has no sound in it")
    mono: NDArray[np.float32] = flat.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    return mono, rate_hz


def resampled(samples: NDArray[np.float32], rate_hz: int, wanted_hz: int) -> NDArray[np.float32]:
    """By straight lines between samples; to a lower rate, means of what falls into each new sample first."""
    if rate_hz == wanted_hz:
        return samples
    if rate_hz > wanted_hz and rate_hz % wanted_hz == 0:
        step = rate_hz // wanted_hz
        kept = samples[: len(samples) // step * step]
        lower: NDArray[np.float32] = kept.reshape(-1, step).mean(axis=1, dtype=np.float32)
        return lower
    number = max(1, len(samples) * wanted_hz // rate_hz)
    at = np.arange(number) * (rate_hz / wanted_hz)
    other: NDArray[np.float32] = np.interp(at, np.arange(len(samples)), samples).astype(np.float32)
    return other


def picture(number: int, participant: int) -> NDArray[Any]:
    """Frame `number`: the participant's colour, and a bar that goes to the right with the number."""
    rows, columns, _ = PICTURE
    frame = np.empty(PICTURE, np.uint8)
    frame[:] = [64 + (participant >> shift) % 128 for shift in (0, 8, 16)]
    at = number * 4 % columns
    frame[:, at : at + 8] = 255
    frame[: rows // 8, : columns * (number % 100) // 100] = 0
    return frame


def _repeated(samples: Samples, frames: int) -> Iterator[Samples]:
    blocks = samples.reshape(-1, frames)
    while True:
        yield from blocks

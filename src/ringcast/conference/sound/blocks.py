"""Blocks of sound as they travel on the audio tag.

    byte  0      1        2       3    4 .. 7        8 .. 11   payload
         +------+--------+-------+----+-------------+---------+---------+
         | 0xC5 | format | flags | 0  | participant | number  | samples |
         +------+--------+-------+----+-------------+---------+---------+
          magic                        u32           u32

Numbers are little-endian. Format 1 is the paper's: 8000 samples a second of 8 bits, 256 bytes a block. Format 2 has
16000 of 16 bits, 1024 bytes. Both last 32 ms. Flag 1 says silence. `number` counts 32 ms slots of this participant's
microphone, sent or not: a block that was suppressed as silence leaves a gap in the numbers, and no loss.

Samples of 8 bits are unsigned with 128 in the middle; here they are *centred*: signed, with 0 in the middle.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER = struct.Struct("<BBBxII")
MAGIC = 0xC5
SILENT = 1

Samples = NDArray[np.int32]


class Format(NamedTuple):
    """How sound is sampled. `low` and `high` are the least and the greatest centred sample."""

    number: int
    rate_hz: int
    bits: int
    frames: int

    @property
    def block_bytes(self) -> int:
        return self.frames * self.bits // 8

    @property
    def block_ns(self) -> int:
        return self.frames * 1_000_000_000 // self.rate_hz

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1


TELEPHONE = Format(1, 8000, 8, 256)
"""The paper's."""
WIDE = Format(2, 16000, 16, 512)
FORMATS = {form.number: form for form in (TELEPHONE, WIDE)}


class Block(NamedTuple):
    """One block as it was received. `samples` are centred."""

    form: Format
    participant: int
    number: int
    silent: bool
    samples: Samples


class BadBlock(ValueError):
    """These bytes are no block of sound."""


def pack(form: Format, participant: int, number: int, samples: Samples, *, silent: bool) -> bytes:
    """A block as bytes. `samples` are centred and within the format's range."""
    if len(samples) != form.frames:
        raise ValueError(f"a block has {form.frames} samples, not {len(samples)}")
    header = HEADER.pack(MAGIC, form.number, SILENT if silent else 0, participant, number & 0xFFFFFFFF)
    return header + to_bytes(form, samples)


def unpack_untrusted(data: bytes | memoryview) -> Block:
    """Raises BadBlock."""
    try:
        magic, number, flags, participant, slot = HEADER.unpack_from(data)
    except struct.error:
        raise BadBlock(f"{len(data)} bytes are too few for a block of sound") from None
    form = FORMATS.get(number)
    if magic != MAGIC or form is None:
        raise BadBlock("these bytes are not a block of sound")
    if len(data) - HEADER.size != form.block_bytes:
        raise BadBlock(f"a block of {form.rate_hz} Hz has {form.block_bytes} bytes, not {len(data) - HEADER.size}")
    return Block(form, participant, slot, bool(flags & SILENT), from_bytes(form, memoryview(data)[HEADER.size :]))


def to_bytes(form: Format, samples: Samples) -> bytes:
    if form.bits == 8:
        return (samples + 128).astype(np.uint8).tobytes()
    return samples.astype("<i2").tobytes()


def from_bytes(form: Format, data: bytes | memoryview) -> Samples:
    if form.bits == 8:
        return np.frombuffer(data, np.uint8).astype(np.int32) - 128
    return np.frombuffer(data, "<i2").astype(np.int32)


def from_floats(form: Format, sound: NDArray[np.float32]) -> Samples:
    """Sound from -1 to 1 as centred samples: scaled, rounded half up, and held within the range."""
    scaled = np.floor(sound.astype(np.float64) * (form.high + 1) + 0.5)
    return np.clip(scaled, form.low, form.high).astype(np.int32)

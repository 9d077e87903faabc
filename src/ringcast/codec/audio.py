"""The codec `audio`: blocks of samples that know their rate.

    byte  0      1      2         3       4 .. 7      8 .. 11    12 .. 15   payload
         +------+------+---------+-------+-----------+----------+----------+--------------------------+
         | 0xA5 | 0x01 | type    | 0     | rate in Hz| channels | 0        | samples, channels beside |
         +------+------+---------+-------+-----------+----------+----------+--------------------------+
          magic  version                  u32         u32

Numbers are little-endian; type 1 is int16, 2 is float32; `channels` is 0 for a block without a second axis. A schema is
`{"rate_hz": 48000, "channels": 2}`; either may be left out. The decoded samples lie over the received bytes, read-only.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ringcast.errors import CodecError, DecodeError, EncodeError

_HEADER = struct.Struct("<BBBxIIxxxx")
_MAGIC, _VERSION = 0xA5, 1
_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<i2"), 2: np.dtype("<f4")}
_NUMBERS = {dtype: number for number, dtype in _TYPES.items()}
MAX_RATE_HZ = 2**20
MAX_CHANNELS = 1024


class AudioBlock(NamedTuple):
    """Samples, as (frames,) or (frames, channels) of int16 or float32, and how many frames make a second."""

    samples: np.ndarray[Any, Any]
    rate_hz: int


class AudioCodec:
    name = "audio"

    def __init__(self, rate_hz: int | None, channels: int | None) -> None:
        self._rate_hz = rate_hz
        self._channels = channels

    def encode(self, value: Any) -> tuple[bytes, memoryview]:
        if not isinstance(value, AudioBlock):
            raise EncodeError(
                self.name, f"takes ringcast.codec.audio.AudioBlock(samples, rate_hz), not {type(value).__name__}"
            )
        samples, rate_hz = value
        if not isinstance(samples, np.ndarray) or samples.dtype not in _NUMBERS or samples.ndim not in (1, 2):
            raise EncodeError(self.name, "samples are an array of int16 or float32, (frames,) or (frames, channels)")
        channels = samples.shape[1] if samples.ndim == 2 else 0
        if samples.ndim == 2 and not 1 <= channels <= MAX_CHANNELS:
            raise EncodeError(self.name, f"a block has 1 to {MAX_CHANNELS} channels, not {channels}")
        if not isinstance(rate_hz, int) or not 1 <= rate_hz <= MAX_RATE_HZ:
            raise EncodeError(self.name, f"rate_hz is a whole number from 1 to {MAX_RATE_HZ}, not {rate_hz!r}")
        if (misfit := self._misfit(rate_hz, channels)) is not None:
            raise EncodeError(self.name, misfit)
        header = _HEADER.pack(_MAGIC, _VERSION, _NUMBERS[samples.dtype], rate_hz, channels)
        return header, np.ascontiguousarray(samples).reshape(-1).view(np.uint8).data

    def decode(self, data: bytes | memoryview) -> AudioBlock:
        try:
            dtype, rate_hz, channels, frames = _parse_untrusted(memoryview(data))
            shape = (frames, channels) if channels else (frames,)
            samples: np.ndarray[Any, Any] = np.ndarray(shape, dtype, buffer=data, offset=_HEADER.size)
        except (ValueError, TypeError, struct.error) as exc:
            raise DecodeError(self.name, str(exc)) from exc
        if (misfit := self._misfit(rate_hz, channels)) is not None:
            raise DecodeError(self.name, misfit)
        samples.flags.writeable = False
        return AudioBlock(samples, rate_hz)

    def _misfit(self, rate_hz: int, channels: int) -> str | None:
        if self._rate_hz not in (None, rate_hz):
            return f"the tag's schema says {self._rate_hz} Hz, not {rate_hz}"
        if self._channels not in (None, max(1, channels)):
            return f"the tag's schema says {self._channels} channel(s), not {max(1, channels)}"
        return None


class AudioKind:
    name = "audio"

    def describe(self, schema: object) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or not schema.keys() <= {"rate_hz", "channels"}:
            raise CodecError(self.name, f"a schema is {{'rate_hz': ..., 'channels': ...}}, not {schema!r}")
        description = {key: value for key, value in schema.items() if value is not None}
        self.bind(description)
        return description

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> AudioCodec:
        try:
            known = msgspec.convert(description or {}, _Schema)
        except msgspec.ValidationError as exc:
            raise CodecError(self.name, f"the tag's schema is not one of audio: {exc}") from exc
        return AudioCodec(known.rate_hz, known.channels)


class _Schema(msgspec.Struct, forbid_unknown_fields=True):
    rate_hz: int | None = None
    channels: int | None = None


AUDIO = AudioKind()


def _parse_untrusted(data: memoryview) -> tuple[np.dtype[Any], int, int, int]:
    magic, version, number, rate_hz, channels = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError("these bytes were not sent by the audio codec")
    if number not in _TYPES or not 1 <= rate_hz <= MAX_RATE_HZ or channels > MAX_CHANNELS:
        raise ValueError("the header describes a block that cannot be")
    frame_bytes = _TYPES[number].itemsize * max(1, channels)
    frames, rest = divmod(len(data) - _HEADER.size, frame_bytes)
    if rest:
        raise ValueError(f"{len(data) - _HEADER.size} bytes are not frames of {frame_bytes}")
    return _TYPES[number], rate_hz, channels, frames

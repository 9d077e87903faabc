"""Audio at a lower sample rate, by averaging: codec `audio`.

`size` is (samples per second, channels). Each block is scaled by itself, so that any proxy can begin with any block:
its length in samples is rounded, which is exact whenever the ratio of the rates divides it. Fewer channels are means of
neighbouring ones; stereo to mono is the mean of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringcast.codec.audio import AUDIO, AudioBlock
from ringcast.errors import CodecError, ScaleError
from ringcast.model.tag import TagAttributes
from ringcast.scaling.averaging import averaged
from ringcast.scaling.interface import Size

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CODEC = AUDIO.bind(None)


class Audio:
    name = "audio"
    codecs = frozenset({"audio"})

    def scale(self, payload: Buffer, attributes: TagAttributes, size: Size) -> bytes:
        rate_hz, channels = size
        try:
            block = _CODEC.decode(memoryview(payload))
            samples = block.samples.reshape(len(block.samples), -1)
            if rate_hz > block.rate_hz or channels > samples.shape[1]:
                raise ScaleError(
                    "audio",
                    f"{block.rate_hz} Hz of {samples.shape[1]} channel(s) cannot become {rate_hz} Hz of {channels}",
                )
            if len(samples):
                wanted = max(1, (2 * len(samples) * rate_hz + block.rate_hz) // (2 * block.rate_hz))
                samples = averaged(samples, wanted, channels)
            else:
                samples = samples[:, :channels]
            flat = samples[:, 0] if channels == 1 and block.samples.ndim == 1 else samples
            return b"".join(_CODEC.encode(AudioBlock(flat, rate_hz)))
        except (CodecError, TypeError, ValueError) as exc:
            raise ScaleError.of("audio", exc) from exc

    def schema(self, schema: dict[str, Any] | None, size: Size) -> dict[str, Any] | None:
        if schema is None:
            return None
        scaled = {"rate_hz": size[0], "channels": size[1]}
        return {key: scaled.get(key, value) for key, value in schema.items()}

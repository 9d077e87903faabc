"""The shared vectors, done by the Python of `ringcast.conference.sound` and by the JavaScript of the page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringcast.conference
from ringcast.conference.sound.blocks import FORMATS, Samples, from_floats, pack, unpack_untrusted
from ringcast.conference.sound.buffers import SpeakerBuffer
from ringcast.conference.sound.mixing import MIXERS
from ringcast.conference.sound.silence import is_silent, level

HERE = Path(__file__).parent
PAGE = Path(ringcast.conference.__file__).parent / "page"
KNOWN: dict[str, Any] = json.loads((HERE / "vectors.json").read_text())


def signal(runs: list[list[int]]) -> Samples:
    return np.repeat(np.array([value for value, _ in runs], np.int32), np.array([times for _, times in runs], np.int64))


def in_python(vectors: dict[str, Any]) -> dict[str, Any]:
    return {
        "silence": [_silence(one) for one in vectors["silence"]],
        "mixing": [_mixing(one) for one in vectors["mixing"]],
        "buffers": [_buffers(one) for one in vectors["buffers"]],
        "blocks": [_block(one) for one in vectors.get("blocks", [])],
    }


def in_javascript(vectors: dict[str, Any]) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the page's sound is not checked against Python's (apt install nodejs)")
    done = subprocess.run(
        [node, str(HERE / "sound_vectors.mjs"), str(PAGE / "sound.js")],
        input=json.dumps(vectors), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _silence(one: dict[str, Any]) -> dict[str, Any]:
    form, samples = FORMATS[one["format"]], signal(one["signal"])
    return {"level": level(form, samples), "silent": is_silent(form, samples, one["threshold"])}


def _mixing(one: dict[str, Any]) -> list[dict[str, Any]]:
    mixer = MIXERS[one["scheme"]](FORMATS[one["format"]])
    found = []
    for block in one["blocks"]:
        mixed = mixer.mix([signal(stream) for stream in block["streams"]], one["publishers"])
        found.append({"mixed": mixed.tolist(), "divisor": mixer.divisor})
    return found


def _buffers(one: dict[str, Any]) -> dict[str, Any]:
    buffer = SpeakerBuffer(**one["options"])
    taken = []
    for what, *rest in one["steps"]:
        if what == "put":
            number, silent = rest
            buffer.put(number, silent, np.array([number], np.int64).astype(np.int64))  # type: ignore[arg-type]
        else:
            block = buffer.take()
            taken.append(None if block is None else int(block[0]))
    return {
        "taken": taken, "silence_discarded": buffer.silence_discarded, "talk_discarded": buffer.talk_discarded,
        "late": buffer.late, "empty": buffer.empty,
    }  # fmt: skip


def _block(one: dict[str, Any]) -> dict[str, Any]:
    form = FORMATS[one["format"]]
    samples = from_floats(form, np.array(one["floats"], np.float32))
    data = pack(form, one["participant"], one["number"], samples, silent=one["silent"])
    back = unpack_untrusted(data)
    return {
        "hex": data.hex(), "samples": back.samples.tolist(), "participant": back.participant, "number": back.number,
        "silent": back.silent,
    }  # fmt: skip

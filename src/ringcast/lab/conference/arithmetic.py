"""What needs no network: mixing against an oracle, overflow, silence in a dialogue, a burst of late blocks.

The oracle mixes with NumPy's floating point and in other steps than `ringcast.conference.sound`; equal samples are no
accident. The dialogue is made, not recorded: two who speak in turns, with pauses between words, breaths and a quiet
room. Its true pauses are known, which they are not of a recording.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringcast.conference.serving import PAGE
from ringcast.conference.sound.blocks import TELEPHONE, Samples, from_floats
from ringcast.conference.sound.buffers import SpeakerBuffer
from ringcast.conference.sound.mixing import MIXERS, BySpeakers
from ringcast.conference.sound.silence import is_silent
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import at_least, at_most, figure

_BLOCKS = 50
_NODE = """
const { TELEPHONE, MIXERS } = await import(process.argv[1]);
const { scheme, publishers, blocks } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const mixer = new MIXERS[scheme](TELEPHONE);
const mix = (streams) => Array.from(mixer.mix(streams.map((one) => Int32Array.from(one)), publishers));
console.log(JSON.stringify(blocks.map(mix)));
"""


def run(steps: Steps) -> Findings:
    findings = Findings()
    steps.expect(4)
    steps.step("mixing")
    for scheme in MIXERS:
        for speakers in (2, 4, 8):
            _mixing(findings, scheme, speakers)
    steps.step("overflow")
    _overflow(findings)
    steps.step("silence")
    _dialogue(findings)
    steps.step("late blocks")
    _burst(findings)
    return findings


def oracle(scheme: str, blocks: Sequence[NDArray[np.int64]], publishers: int) -> list[NDArray[np.int64]]:
    """Mixed blocks by floating point. Each of `blocks` is (speakers, samples)."""
    found, r = [], 1
    for block in blocks:
        total = block.astype(np.float64).sum(axis=0)
        if scheme == "publishers":
            found.append(np.trunc(total / publishers).astype(np.int64))
            continue
        fitting = [n for n in range(r, 257) if np.trunc(total / n).min() >= -128 and np.trunc(total / n).max() <= 127]
        used = fitting[0]
        found.append(np.trunc(total / used).astype(np.int64))
        r = used if used > r else max(1, r - 1)
    return found


def _mixing(findings: Findings, scheme: str, speakers: int) -> None:
    rng = np.random.default_rng(speakers)
    loudness = rng.uniform(0, 1, (_BLOCKS, speakers, 1))
    blocks = [np.trunc(rng.integers(-128, 128, (speakers, 256)) * part).astype(np.int64) for part in loudness]
    expected = oracle(scheme, blocks, speakers)
    mixer = MIXERS[scheme](TELEPHONE)
    mixed = [mixer.mix(list(block.astype(np.int32)), speakers) for block in blocks]
    wrong = sum(int((one != other).sum()) for one, other in zip(mixed, expected, strict=True))
    name = f"{speakers} speakers by {scheme}: samples unlike the oracle's, of {256 * _BLOCKS}"
    findings.rows.append(at_most(name, wrong, "samples", 0))
    in_page = _in_javascript(scheme, blocks, speakers)
    if in_page is None:
        findings.notes.append("node is not installed: the page's mixing was not held against the oracle")
        return
    wrong = int((np.array(in_page) != np.array(expected)).sum())
    findings.rows.append(at_most(f"{name}, in the page's JavaScript", wrong, "samples", 0))


def _in_javascript(scheme: str, blocks: Sequence[NDArray[np.int64]], publishers: int) -> list[list[int]] | None:
    node = shutil.which("node")
    if node is None:
        return None
    given = {"scheme": scheme, "publishers": publishers, "blocks": [block.tolist() for block in blocks]}
    done = subprocess.run(
        [node, "-e", f"(async () => {{{_NODE}}})()", (PAGE / "sound.js").as_uri()],
        input=json.dumps(given), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[list[int]] = json.loads(done.stdout)
    return found


def _overflow(findings: Findings) -> None:
    rng = np.random.default_rng(8)
    mixer = BySpeakers(TELEPHONE)
    wrapped = 0
    for _ in range(_BLOCKS):
        signs = rng.choice(np.array([-128, 127]), 256)
        streams: list[Samples] = [signs.astype(np.int32)] * 8
        mixed = mixer.mix(streams)
        wrapped += int((np.sign(mixed) != np.sign(signs)).sum() + (np.abs(mixed) > 128).sum())
    findings.rows.append(at_most("8 speakers at full scale: samples that wrapped", wrapped, "samples", 0))
    alone = np.full(256, 100, np.int32)
    blocks = next(n for n in range(1, 1000) if mixer.mix([alone])[0] == 100)
    findings.rows.append(at_most("then one alone: at full volume in block", blocks, "blocks", 10))


def _dialogue(findings: Findings) -> None:
    for name, (sound, talk) in {"Ada": dialogue(1), "Bob": dialogue(2)}.items():
        blocks = from_floats(TELEPHONE, sound).reshape(-1, 256)
        silent = np.array([is_silent(TELEPHONE, block) for block in blocks])
        share = float(silent.mean()) * 100
        findings.rows.append(
            figure(
                f"dialogue, {name}: blocks discardable (reference: true pauses)", share, "%", 100 * (1 - talk.mean())
            )
        )
        missed = float((silent & (talk == 1)).sum() / max(1, talk.sum())) * 100
        findings.rows.append(figure(f"dialogue, {name}: talk taken for silence", missed, "%"))
    findings.notes.append(
        "the dialogue is synthetic, with known pauses; the paper reports about 90 % discardable for conversations"
    )


def dialogue(speaker: int, seconds: int = 120) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One side of a conversation, and for each block whether its speaker talks in it."""
    turns, own = np.random.default_rng(0), np.random.default_rng(speaker)
    blocks = seconds * 8000 // 256
    talk = np.zeros(blocks, np.int64)
    at = who = 0
    while at < blocks:
        length = int(turns.exponential(3.0) / 0.032) + 10
        who = 3 - who if who else 1
        if who == speaker:
            word = at
            while word < at + length:  # words of a quarter of a second and more, with gaps between them
                spoken = int(own.exponential(0.35) / 0.032) + 6
                talk[word : min(word + spoken, at + length)] = 1
                word += spoken + int(own.exponential(0.25) / 0.032) + 2
        at += length + int(turns.exponential(0.4) / 0.032)
    time = np.arange(blocks * 256) / 8000
    voice = sum(np.sin(2 * np.pi * 130 * speaker * n * time) / n for n in range(1, 8)) * (0.6 + 0.4 * np.sin(25 * time))
    noise = own.normal(0, 0.3 / 128, len(time))  # a quiet room: below half a step of 8 bits
    return (np.repeat(talk, 256) * voice * 0.2 + noise).astype(np.float32), talk


def _burst(findings: Findings) -> None:
    buffer = SpeakerBuffer(max_s=4, max_t=10)
    for number in range(30):
        buffer.put(number, number % 2 == 0, np.full(256, number, np.int32))
    waiting = len(buffer)
    taken = [int(block[0]) for _ in range(waiting) if (block := buffer.take()) is not None]
    talk = [number for number in range(30) if number % 2]
    rows = findings.rows
    rows.append(at_most("burst of 30 blocks: waiting afterwards (Max_T 10), as delay", waiting * 32, "ms", 320))
    rows.append(at_least("burst: silence discarded, of 15", buffer.silence_discarded, "blocks", 15))
    rows.append(at_most("burst: talk discarded beyond Max_T, of 15", buffer.talk_discarded, "blocks", 5))
    rows.append(at_most("burst: blocks out of order", int(taken != talk[-len(taken) :]), "blocks", 0))

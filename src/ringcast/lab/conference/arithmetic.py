"""What needs no network: mixing against an oracle, overflow, silence in a dialogue, a burst of late blocks.

The oracle mixes with NumPy's floating point and in other steps than `ringcast.conference.sound`; equal samples are no
accident. The dialogue is made, not recorded: two who speak in turns, with pauses between words, breaths and a quiet
room. Its true pauses are known, which they are not of a recording.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ringcast.conference.serving import PAGE
from ringcast.conference.sound.blocks import TELEPHONE, Samples, from_floats
from ringcast.conference.sound.buffers import SpeakerBuffer
from ringcast.conference.sound.mixing import MIXERS, BySpeakers
from ringcast.conference.sound.silence import is_silent
from ringcast.lab.conference.cells import Burst, FullScale, Mixed, Side, told, values
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.record.figures import Measured

_BLOCKS = 50
_WHERE = {"core": "", "page": ", in the page's JavaScript"}
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
            findings.measured += _mixing(scheme, speakers)
    if shutil.which("node") is None:
        findings.notes.append("node is not installed: the page's mixing was not held against the oracle")
    steps.step("overflow")
    findings.measured += _overflow()
    steps.step("silence")
    findings.measured += _dialogue()
    findings.notes.append(
        "the dialogue is synthetic, with known pauses; the paper reports about 90 % discardable for conversations"
    )
    steps.step("late blocks")
    findings.measured += _burst()
    findings.rows += judged(sampled.InPython(findings.measured))
    return findings


def judged(analysed: Analysed) -> list[Row]:
    """Of the samples of the last run."""
    rows = []
    for cell, unlike in told(analysed, "unlike", Mixed).items():
        name = f"{cell.speakers} speakers by {cell.scheme}: samples unlike the oracle's, of {256 * unlike['samples']}"
        rows.append(at_most(f"{name}{_WHERE[cell.where]}", unlike["total"], "samples", 0))
    for loud, wrapped in told(analysed, "wrapped", FullScale).items():
        name = f"{loud.loud_speakers} speakers at full scale: samples that wrapped"
        rows.append(at_most(name, wrapped["total"], "samples", 0))
    for alone in told(analysed, "below_full_volume", FullScale).values():
        rows.append(at_most("then one alone: at full volume in block", alone["samples"], "blocks", 10))
    pauses, missed = (told(analysed, metric, Side) for metric in ("pause", "missed"))
    for side, silent in told(analysed, "silent", Side).items():
        name = f"dialogue, {side.speaker}"
        share, true_share = (100 * one["mean"] for one in (silent, pauses[side]))
        rows.append(figure(f"{name}: blocks discardable (reference: true pauses)", share, "%", true_share))
        rows.append(figure(f"{name}: talk taken for silence", 100 * missed[side]["mean"], "%"))
    silence, talk, disorder = (
        told(analysed, metric, Burst) for metric in ("silence_discarded", "talk_discarded", "out_of_order")
    )
    for burst, waiting in told(analysed, "waiting", Burst).items():
        name = f"burst of {burst.blocks} blocks: waiting afterwards (Max_T 10), as delay"
        rows.append(at_most(name, waiting["total"] * 32, "ms", 320))
        rows.append(at_least("burst: silence discarded, of 15", silence[burst]["total"], "blocks", 15))
        rows.append(at_most("burst: talk discarded beyond Max_T, of 15", talk[burst]["total"], "blocks", 5))
        rows.append(at_most("burst: blocks out of order", disorder[burst]["total"], "blocks", 0))
    return rows


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


def _mixing(scheme: str, speakers: int) -> Iterator[Measured]:
    rng = np.random.default_rng(speakers)
    loudness = rng.uniform(0, 1, (_BLOCKS, speakers, 1))
    blocks = [np.trunc(rng.integers(-128, 128, (speakers, 256)) * part).astype(np.int64) for part in loudness]
    expected = np.array(oracle(scheme, blocks, speakers))
    mixer = MIXERS[scheme](TELEPHONE)
    mixed = np.array([mixer.mix(list(block.astype(np.int32)), speakers) for block in blocks])
    yield from values(Mixed(scheme, speakers, "core"), "unlike", (mixed != expected).sum(axis=1), "samples")
    in_page = _in_javascript(scheme, blocks, speakers)
    if in_page is not None:
        unlike = (np.array(in_page) != expected).sum(axis=1)
        yield from values(Mixed(scheme, speakers, "page"), "unlike", unlike, "samples")


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


def _overflow() -> Iterator[Measured]:
    rng = np.random.default_rng(8)
    mixer = BySpeakers(TELEPHONE)
    wrapped = []
    for _ in range(_BLOCKS):
        signs = rng.choice(np.array([-128, 127]), 256)
        streams: list[Samples] = [signs.astype(np.int32)] * 8
        mixed = mixer.mix(streams)
        wrapped.append(int((np.sign(mixed) != np.sign(signs)).sum() + (np.abs(mixed) > 128).sum()))
    yield from values(FullScale(8), "wrapped", wrapped, "samples")
    alone = np.full(256, 100, np.int32)
    below = [bool(mixer.mix([alone])[0] != 100)]
    while below[-1] and len(below) < 1000:
        below.append(bool(mixer.mix([alone])[0] != 100))
    yield from values(FullScale(8), "below_full_volume", below, "of 1")


def _dialogue() -> Iterator[Measured]:
    for name, (sound, talk) in {"Ada": dialogue(1), "Bob": dialogue(2)}.items():
        blocks = from_floats(TELEPHONE, sound).reshape(-1, 256)
        silent = np.array([is_silent(TELEPHONE, block) for block in blocks])
        for metric, found in (("silent", silent), ("pause", talk == 0), ("missed", silent[talk == 1])):
            yield from values(Side(name), metric, found, "of 1")


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


def _burst() -> Iterator[Measured]:
    buffer = SpeakerBuffer(max_s=4, max_t=10)
    discarded = [(0, 0)]
    for number in range(30):
        buffer.put(number, number % 2 == 0, np.full(256, number, np.int32))
        discarded.append((buffer.silence_discarded, buffer.talk_discarded))
    waiting = len(buffer)
    taken = [int(block[0]) for _ in range(waiting) if (block := buffer.take()) is not None]
    talk = [number for number in range(30) if number % 2]
    silence_each, talk_each = np.diff(discarded, axis=0).T
    disorder = [one != other for one, other in zip_longest(taken, talk[-len(taken) :])]
    for metric, found in (
        ("silence_discarded", silence_each), ("talk_discarded", talk_each), ("waiting", [waiting]),
        ("out_of_order", disorder),
    ):  # fmt: skip
        yield from values(Burst(30), metric, found, "blocks")

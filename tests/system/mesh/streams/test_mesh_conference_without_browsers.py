"""Participants without a browser, each a process, on several nodes: every block of everybody reaches everybody else."""

from __future__ import annotations

import json
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringcast.conference import crowd
from ringcast.lab.testbed.local_mesh import local_mesh


def ringcast(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ringcast", "conference", "--headless", *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_eight_participants_on_four_nodes_hear_every_block_of_each_other(tmp_path: Path) -> None:
    with local_mesh(["a", "b", "c", "d"], tmp_path) as nodes:
        accounts = crowd.run([node.socket for node in nodes], 8, 1.6, words=("--video", "test", "--delays"))
    assert {account.node for account in accounts} == {"a", "b", "c", "d"}
    assert [account.sent for account in accounts] == [50] * 8
    assert crowd.missing(accounts) == 0
    assert sum(account.lost + account.malformed for account in accounts) == 0
    assert all(account.frames_received > 8 for account in accounts)
    assert [len(account.delays_ms) for account in accounts] == [7 * 50] * 8


def test_silence_is_counted_and_can_be_kept_back(daemon: Any, tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        tone = np.sin(np.arange(16000 * 8 // 25) / 5) * 9000
        file.writeframes(np.concatenate([tone, np.zeros(16000 * 8 // 25)]).astype("<i2").tobytes())
    # Ten blocks of talk, ten of silence, again and again.
    done = ringcast(
        "--socket", daemon.socket_path, "--audio", str(path), "--seconds", "1.28", "--suppress-silence", "--json"
    )
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout.splitlines()[-1])
    assert account["sent"] + account["suppressed"] == 40
    assert account["suppressed"] == account["silent"] == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--audio", "nothing.wav"), "nothing.wav: cannot be read"),
        (("--audio", "tone:9000"), "1 to 4000 Hz"),
        (("--conference", "no*way"), "no*way"),
        (("--begin", "soon"), "'soon' is no time in seconds"),
    ],
)
def test_mistakes_are_said_in_one_sentence(daemon: Any, words: tuple[str, ...], said: str) -> None:
    done = ringcast("--socket", daemon.socket_path, *words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_heard_is_what_the_others_say_in_sixteen_bits_too(daemon: Any, tmp_path: Path) -> None:
    heard = tmp_path / "heard.wav"
    speaker = subprocess.Popen(
        [
            sys.executable, "-m", "ringcast", "conference", "--headless", "--socket", daemon.socket_path, "--json",
            "--format", "wide", "--audio", "tone:700", "--seconds", "60",
        ],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert speaker.stdout is not None
        assert "ready" in speaker.stdout.readline()
        done = ringcast(
            "--socket", daemon.socket_path, "--format", "wide", "--seconds", "1.5", "--save", str(heard), "--json"
        )
    finally:
        speaker.kill()
        speaker.communicate()
    assert json.loads(done.stdout.splitlines()[-1])["lost"] == 0
    with wave.open(str(heard), "rb") as file:
        assert (file.getframerate(), file.getsampwidth()) == (16000, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    strength = np.abs(np.fft.rfft(samples))
    assert abs(int(strength.argmax()) * 16000 / len(samples) - 700) < 5

"""A recorder that is killed, interrupted, or runs out of disk: nothing twice, nothing missing, nothing half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ringcast
from ringcast import Session
from ringcast.record.recording import Recording
from ringcast.testing.waiting import PATIENCE_S

SOON = ("--commit", "0.05")
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(daemon: object) -> Iterator[Start]:
    """Starts recorders; those that a failed test leaves behind are killed."""
    started: list[subprocess.Popen[bytes]] = []

    def record(*options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ringcast", "record", *options, "--socket", daemon.socket_path]  # type: ignore[attr-defined]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield record
    for recorder in started:
        with recorder:
            recorder.kill()


def numbers(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    recording = Recording(path)
    for commit in recording.commits:
        for batch in recording.batches(commit):
            for incarnation, seq in zip(batch["incarnation"].to_pylist(), batch["seq"].to_pylist(), strict=True):
                found.setdefault(incarnation, []).append(seq)
    return found


def committed(path: Path) -> int:
    return Recording(path).rows if (path / "_delta_log").is_dir() else 0


def test_killed_again_and_again(
    start: Start, session: Session, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    out = tmp_path / "out"
    tag = session.tag("a/b", depth=65536, capacity_bytes=1 << 22)
    publisher = tag.publisher()
    sent = 0
    for _ in range(3):
        recorder = start("a/*", "--out", str(out), "--start", "earliest", *SOON)
        goal = sent + 100
        deadline = time.monotonic() + PATIENCE_S
        while committed(out) < goal:
            assert time.monotonic() < deadline, "nothing is recorded"
            for _ in range(20):
                sent = publisher.send(b"x") + 1
            time.sleep(0.02)  # the recorder needs the core too
        recorder.kill()
        recorder.communicate(timeout=PATIENCE_S)
    # While no recorder runs, one publisher leaves and another comes.
    publisher.close()
    other = tag.publisher()
    for _ in range(50):
        other.send(b"y")
    recorder = start("a/*", "--out", str(out), *SOON)
    eventually(lambda: committed(out) >= sent + 50)
    recorder.send_signal(signal.SIGINT)
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0, errors.decode()
    found = numbers(out)
    assert sorted(map(len, found.values())) == sorted([sent, 50])
    assert all(seqs == list(range(len(seqs))) for seqs in found.values())


def test_interrupted_recorder_commits_what_came(start: Start, session: Session, tmp_path: Path) -> None:
    out = tmp_path / "out"
    publisher = session.tag("a/b").publisher()
    recorder = start("a/b", "a/**", "--out", str(out), "--commit", "3600", "--json")
    publisher.wait_for_subscribers(2, PATIENCE_S)
    for _ in range(10):
        publisher.send(b"x")
    recorder.send_signal(signal.SIGINT)
    text, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0, errors.decode()
    # Both patterns select the tag, and it is recorded once.
    assert json.loads(text)["messages"] == 10
    assert list(numbers(out).values()) == [list(range(10))]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a small disk needs root")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_full_disk(start: Start, session: Session, small_disk: Path) -> None:
    out = small_disk / "out"
    tag = session.tag("a/b", depth=4096, capacity_bytes=1 << 24)
    publisher = tag.publisher()
    recorder = start("a/b", "--out", str(out), *SOON)
    publisher.wait_for_subscribers(1, PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while recorder.poll() is None:
        assert time.monotonic() < deadline, "the disk never gets full"
        publisher.send(os.urandom(20_000))
        committed(out)
        time.sleep(0.001)
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 1
    assert b"the disk is full" in errors
    assert b"Traceback" not in errors
    kept = numbers(out)
    assert committed(out) == sum(map(len, kept.values()))
    assert f"the {committed(out)} message(s) committed".encode() in errors


def test_record_and_replay_by_command(daemon: object, start: Start, session: Session, tmp_path: Path) -> None:
    out, mcap = tmp_path / "out", tmp_path / "f.mcap"
    publisher = session.tag("a/b", codec="json", schema=dict[str, int]).publisher()
    recorder = start("a/b", "--out", str(out), "--mcap", str(mcap), "--count", "5", *SOON)
    publisher.wait_for_subscribers(1, PATIENCE_S)
    for number in range(5):
        publisher.send({"n": number}, event_ns=1000 + number)
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0, errors.decode()
    for recorded, prefix in ((out, "one/"), (mcap, "two/")):
        subscriber = session.subscribe(f"{prefix}**")
        done = subprocess.run(
            [sys.executable, "-m", "ringcast", "replay", str(recorded), "--prefix", prefix, "--speed", "max",
             "--socket", daemon.socket_path], capture_output=True, timeout=PATIENCE_S,  # type: ignore[attr-defined]
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        messages = subscriber.recv_many(5, PATIENCE_S)
        assert [(m.data, m.event_ns) for m in messages] == [({"n": n}, 1000 + n) for n in range(5)]


def test_missing_places_are_sentences(daemon: object, tmp_path: Path) -> None:
    for verb, *rest in (["record", "a/b"], ["replay", str(tmp_path)], ["record", "a/b", "--out", "/proc/nowhere"]):
        done = subprocess.run(
            [sys.executable, "-m", "ringcast", verb, *rest, "--socket", daemon.socket_path],  # type: ignore[attr-defined]
            capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode in (1, 2)
        assert len(done.stderr.decode().splitlines()) == 1, done.stderr.decode()
    assert ringcast.errors.RecordingError("p", "r").path == "p"

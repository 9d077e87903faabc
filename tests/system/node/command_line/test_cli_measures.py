"""`ringcast hz`, `bw` and `delay` beside publishers at work."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from processes import Start, ended

import ringcast
from ringcast.testing.waiting import wait_until


@pytest.fixture
def daemon(shared_daemon: Any) -> Any:
    return shared_daemon


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_hz_counts_what_was_sent_and_not_what_was_received(session: ringcast.Session, start: Start) -> None:
    """The tool sleeps through all of it, and the ring holds a fraction; every message counts all the same."""
    tag = session.tag("lab/fast", depth=16)
    publisher = tag.publisher()
    publisher.send(b"before")
    process = start("hz", "lab/fast", "--window", "0.3", "--json")
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(5000):
        publisher.send(b"x")
    wait_until(lambda: json.loads(process.stdout.readline())["publishers"][0]["figures"]["sent"] == 0)  # type: ignore[union-attr]
    process.send_signal(signal.SIGINT)
    code, out, _ = ended(process)
    assert code == 130
    summary = lines(out)[-1]
    assert summary["summary"]
    (row,) = summary["publishers"]
    assert row["figures"]["sent"] == 5000
    assert 0 < row["figures"]["intervals"] <= 5000
    assert row["tag"] == "lab/fast"


def test_bw_reads_the_publishers_own_bytes(session: ringcast.Session, start: Start) -> None:
    publisher = session.publisher("lab/frames")
    process = start("bw", "lab/*", "--window", "0.3", "--json")
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(50):
        publisher.send(bytes(1000))
    wait_until(lambda: json.loads(process.stdout.readline())["publishers"][0]["bytes"] == 0)  # type: ignore[union-attr]
    process.send_signal(signal.SIGINT)
    (row,) = lines(ended(process)[1])[-1]["publishers"]
    assert (row["bytes"], row["message_bytes"]) == (50_000, 1000.0)


@pytest.mark.parametrize("verb", ["hz", "bw", "delay"])
def test_measuring_ends_by_itself_and_says_what_it_measured(session: ringcast.Session, start: Start, verb: str) -> None:
    session.tag("lab/quiet")
    code, out, errors = ended(start(verb, "lab/quiet", "--window", "0.05", "--count", "2"))
    assert code == 0
    assert out == "nothing was sent\n" * 2
    assert errors.startswith("measured: ")


def test_delay_measures_each_message_and_names_itself_as_receiver(session: ringcast.Session, start: Start) -> None:
    tag = session.tag("lab/temp")
    publisher = tag.publisher()
    process = start("delay", "lab/temp", "--window", "0.2", "--json")
    wait_until(tag.subscribers)
    assert process.stdout is not None
    sent = 0

    def is_measured() -> bool:
        """What comes while the tool prints a report is not measured, so one report may have none."""
        nonlocal sent
        for _ in range(20):
            publisher.send(b"x")
        sent += 20
        return any(row["delays"]["messages"] for row in json.loads(process.stdout.readline())["publishers"])  # type: ignore[union-attr]

    wait_until(is_measured)
    wait_until(lambda: tag.subscribers()[0].counters["received"] == sent)
    process.send_signal(signal.SIGINT)
    code, out, errors = ended(process)
    assert code == 130
    assert "the receiver is the tool itself" in errors
    (row,) = lines(out)[-1]["publishers"]
    assert row["delays"]["messages"] + row["unmeasured"] == sent
    assert row["lost"] == 0
    assert row["delays"]["messages"] > 0
    assert 0 < row["delays"]["min_ns"] <= row["delays"]["p50_ns"] <= row["delays"]["p99_ns"] <= row["delays"]["max_ns"]

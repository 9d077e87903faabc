"""Quality of service equals what NumPy says of the same messages, in a batch and in a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bronze_rows import EPOCH_NS, frame, message, plain, streamed
from pyspark.sql import SparkSession

from ringcast.spark.pipelines.qos import qos
from ringcast.spark.pipelines.times import watched

MS = 1_000_000
DEADLINE = 3 * MS


def recording(tag: str, seed: int, every: int = 1) -> list[dict[str, Any]]:
    """4 s at 50 Hz, a tenth of it lost, latencies with a long tail."""
    random = np.random.default_rng(seed)
    rows, missed = [], 0
    for at in range(200):
        if random.random() < 0.1 and at:
            missed += 1
            continue
        event = EPOCH_NS + at * 20 * MS
        sent = event + int(random.integers(1000, 9000))
        received = sent + int(random.lognormal(14, 0.7))
        rows.append(
            message(tag, at * every, at * 20 * MS, every=every, sent_ns=sent, received_ns=received, lost=missed)
        )
        missed = 0
    return rows


def oracle(rows: list[dict[str, Any]], window_ns: int) -> dict[tuple[str, int], dict[str, float | None]]:
    windows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        windows.setdefault((row["tag"], row["event_ns"] // window_ns * window_ns), []).append(row)
    out = {}
    for key, own in windows.items():
        latency = np.array([r["received_ns"] - r["event_ns"] for r in own])
        lost = sum(r["lost"] for r in own)
        expected = len(own) + lost
        changes = []
        for a, b, c in zip(own, own[1:], own[2:], strict=False):
            if c["seq"] - b["seq"] == b["seq"] - a["seq"] == a["every"]:
                changes.append(abs(c["received_ns"] - 2 * b["received_ns"] + a["received_ns"]))
        p50, p95, p99 = np.percentile(latency, [50, 95, 99])
        out[key] = {
            "received": len(own), "lost": lost, "expected": expected, "loss": lost / expected,
            "latency_mean_ns": latency.mean(), "latency_p50_ns": p50, "latency_p95_ns": p95, "latency_p99_ns": p99,
            "jitter_latency_ns": latency.std(), "jitter_period_ns": np.mean(changes) if changes else None,
            "queue_p50_ns": np.median([r["sent_ns"] - r["event_ns"] for r in own]),
            "transfer_p50_ns": np.median([r["received_ns"] - r["sent_ns"] for r in own]),
            "relate": latency.mean() / (len(own) / expected), "relate2": latency.mean() * (100 * lost / expected + 1),
            "deadline_misses": int((latency > DEADLINE).sum()),
        }  # fmt: skip
    return out


def test_equal_to_the_oracle(spark: SparkSession) -> None:
    rows = recording("a", 1) + recording("b", 2, every=5)
    found = qos(frame(spark, rows), window_s=0.5, deadline_ns=DEADLINE).collect()
    expected = oracle(rows, 500 * MS)
    assert len(found) == len(expected) == 16
    for row in found:
        want = expected[row.tag, round(row.event_time.timestamp() * 1e9)]
        got = {name: row[name] for name in want}
        assert got == pytest.approx(want, rel=1e-9)


def test_a_gap_that_no_reader_counted_shows_in_the_numbers(spark: SparkSession) -> None:
    rows = [message("a", seq, seq * MS) for seq in (0, 1, 2, 7, 8)]
    row = qos(frame(spark, rows)).first()
    assert row is not None
    assert (row.expected, row.received, row.lost) == (9, 5, 4)
    assert row.jitter_period_ns == 0.0
    assert row.relate2 == pytest.approx(row.latency_mean_ns * (400 / 9 + 1))


def test_a_batch_and_a_stream_agree(spark: SparkSession, tmp_path: Path) -> None:
    rows = recording("a", 3)
    closing = [message("a", 10_000, 60_000 * MS)]
    batch = qos(frame(spark, rows), deadline_ns=DEADLINE).collect()
    parts = [frame(spark, rows[:70]), frame(spark, rows[70:]), frame(spark, closing)]
    stream = streamed(spark, parts, lambda messages: qos(watched(messages), deadline_ns=DEADLINE), tmp_path)
    assert len(batch) == 4
    assert plain(batch) == plain(stream)

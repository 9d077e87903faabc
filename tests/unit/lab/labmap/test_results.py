"""What is kept of a repetition, and what an interrupted run finds again."""

from __future__ import annotations

from pathlib import Path

from ringcast.lab.labmap import results
from ringcast.lab.labmap.field import Drive, Setting


def drive(values: int = 100, late: int = 0, chunks: int = 0) -> Drive:
    heard = {
        "values": values, "lost": chunks, "wrong": 0, "mean_us": 200.0, "p50_us": 180.0, "most_us": 900.0,
        "deviation_us": 10.0, "period_jitter_us": None, "change_to_send_us": 40.0, "send_to_kernel_us": 20.0,
        "kernel_to_mirror_us": 100.0, "mirror_to_hand_us": None,
    }  # fmt: skip
    sent = {"lost": late, "seconds": 2.0, "changes": 100, "cpu_s": 0.1, "bytes": 1000}
    return Drive(Setting(10, 0.2), sent, [heard], 0.1, 12, 3400, 0.02)


def test_loss_is_what_was_late_and_what_did_not_come() -> None:
    assert drive().lost == 0
    assert drive(values=90, late=10).lost == 20
    assert drive(values=120).lost == 0, "a full packet repeats"
    assert drive(values=120, chunks=1).lost == 1, "and hides nothing"
    assert drive(values=120).achieved == 50.0


def test_metrics_have_units_and_both_sides_of_a_load() -> None:
    found = results.of(drive(late=50), 3, {"publisher": 7.0, "subscriber": 8.0})
    assert found[0].metrics["latency_ms"] == 0.2
    assert found[0].metrics["lost_share"] == 0.5
    assert found[0].metrics["publisher_cpu"] == 0.1
    parts = [found[0].metrics[name] for name in ("change_to_send_ms", "send_to_kernel_ms", "kernel_to_mirror_ms")]
    assert parts == [0.04, 0.02, 0.1]
    assert not {"period_jitter_ms", "mirror_to_hand_ms"} & found[0].metrics.keys(), "they were not measured"
    assert [one.configuration["side"] for one in found[1:]] == ["publisher", "subscriber"]
    kept = list(results.measured(found))
    assert {one.unit for one in kept if one.metric == "whetstones"} == {"10^3/s"}
    assert all(one.repetition == 3 for one in kept)


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "repetitions.jsonl"
    assert results.kept(path) == {}
    results.keep(path, "first", results.of(drive(), 0))
    results.keep(path, "second", results.of(drive(), 1))
    path.write_bytes(path.read_bytes()[:-20])  # the machine was switched off
    assert list(results.kept(path)) == ["first"]
    results.keep(path, "second", results.of(drive(), 1))

"""What is kept of every repetition of paper 002's test: a value per metric, in the one schema of all experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ringcast.lab.labmap.field import Drive
from ringcast.record.figures import Measured

EXPERIMENT = "labmap"
UNITS = {
    "latency_ms": "ms", "latency_p50_ms": "ms", "latency_most_ms": "ms", "jitter_ms": "ms", "period_jitter_ms": "ms",
    "lost": "1", "lost_share": "1", "wrong": "1", "whetstones": "10^3/s", "changes_per_s": "1/s", "softirq_share": "1",
    "publisher_cpu": "1", "change_to_send_ms": "ms", "send_to_kernel_ms": "ms", "kernel_to_mirror_ms": "ms",
    "mirror_to_hand_ms": "ms",
}  # fmt: skip


class Result(msgspec.Struct, frozen=True):
    """One repetition's figures, of one side."""

    configuration: dict[str, str | float]
    repetition: int
    metrics: dict[str, float]


def of(drive: Drive, repetition: int, whetstones: dict[str, float] | None = None) -> list[Result]:
    """Of the subscribers' side, and with a stress load of both sides: thousand Whetstone instructions a second."""
    setting = drive.setting
    configuration: dict[str, str | float] = {
        "transport": setting.transport, "n": setting.n, "dt_s": setting.period_s, "subscribers": setting.subscribers,
        "load": setting.load,
    }  # fmt: skip
    named = {
        "latency_ms": "mean_us", "latency_p50_ms": "p50_us", "latency_most_ms": "most_us", "jitter_ms": "deviation_us",
        "period_jitter_ms": "period_jitter_us", "change_to_send_ms": "change_to_send_us",
        "send_to_kernel_ms": "send_to_kernel_us", "kernel_to_mirror_ms": "kernel_to_mirror_us",
        "mirror_to_hand_ms": "mirror_to_hand_us",
    }  # fmt: skip
    metrics = {name: value / 1e3 for name, what in named.items() if (value := drive.mean(what)) is not None}
    metrics |= {
        "lost": float(drive.lost), "lost_share": drive.lost / max(1.0, drive.sent["changes"]),
        "wrong": float(drive.wrong), "changes_per_s": drive.achieved,
        "softirq_share": drive.softirq_s / drive.sent["seconds"],
        "publisher_cpu": (drive.sent["cpu_s"] + drive.daemon_cpu_s) / drive.sent["seconds"],
    }  # fmt: skip
    found = [Result(configuration, repetition, metrics)]
    for side, value in (whetstones or {}).items():
        found.append(Result({**configuration, "side": side}, repetition, {"whetstones": value}))
    return found


def measured(results: Iterable[Result]) -> Iterator[Measured]:
    """As values of the one results schema."""
    for one in results:
        for metric, value in one.metrics.items():
            yield Measured(EXPERIMENT, one.configuration, one.repetition, metric, value, UNITS[metric])


def kept(path: Path) -> dict[str, list[Result]]:
    """Repetitions of an earlier, interrupted run, by what was run; nothing when there was none."""
    found: dict[str, list[Result]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                key, results = msgspec.json.decode(line, type=tuple[str, list[Result]])
            except msgspec.MsgspecError:  # cut off when it was interrupted
                continue
            found[key] = results
    return found


def keep(path: Path, key: str, results: Sequence[Result]) -> None:
    """Raises OSError."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode((key, list(results))) + b"\n")

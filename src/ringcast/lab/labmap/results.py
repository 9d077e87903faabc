"""What is kept of every repetition of paper 002's test: one line per metric, in the one schema of all experiments, as
Parquet, so that `ringcast pipeline run fit` draws the lines of Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ringcast.lab.adamant.results import ParquetMissing
from ringcast.lab.labmap.field import Drive

EXPERIMENT = "labmap"
UNITS = {
    "latency_ms": "ms", "latency_p50_ms": "ms", "latency_most_ms": "ms", "jitter_ms": "ms", "period_jitter_ms": "ms",
    "lost": "1", "wrong": "1", "whetstones": "10^3/s", "changes_per_s": "1/s", "softirq_share": "1",
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
        "period_jitter_ms": "period_jitter_us",
    }  # fmt: skip
    metrics = {name: value / 1e3 for name, what in named.items() if (value := drive.mean(what)) is not None}
    metrics |= {
        "lost": float(drive.lost), "wrong": float(drive.wrong), "changes_per_s": drive.achieved,
        "softirq_share": drive.softirq_s / drive.sent["seconds"],
    }  # fmt: skip
    found = [Result(configuration, repetition, metrics)]
    for side, value in (whetstones or {}).items():
        found.append(Result({**configuration, "side": side}, repetition, {"whetstones": value}))
    return found


def write_parquet(results: Iterable[Result], path: Path, *, machine: str, version: str) -> None:
    """Raises ParquetMissing, OSError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ParquetMissing from exc
    columns = (
        ("experiment", pa.string()), ("configuration", pa.string()), ("repetition", pa.int32()),
        ("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string()), ("machine", pa.string()),
        ("version", pa.string()),
    )  # fmt: skip
    lines = [
        (
            EXPERIMENT,
            msgspec.json.encode(r.configuration).decode(),
            r.repetition,
            metric,
            value,
            UNITS[metric],
            machine,
            version,
        )
        for r in results
        for metric, value in r.metrics.items()
    ]
    arrays = [pa.array([line[i] for line in lines], type=kind) for i, (_, kind) in enumerate(columns)]
    pq.write_table(pa.table(arrays, schema=pa.schema(list(columns))), path, compression="zstd")


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

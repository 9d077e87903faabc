"""What tests of the lab share: who watches an experiment, rows by name, delays as the push-pull papers have them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np

from ringcast.lab.measuring.report import Findings
from ringcast.lab.measuring.rows import Row
from ringcast.lab.push_pull import distance, tables
from ringcast.lab.push_pull.network import INTERMEDIATE, Arrangement
from ringcast.lab.push_pull.round_trips import BY_HOPS, BY_SIZE, EXPERIMENT, ROUTERS, RoundTrips
from ringcast.lab.testbed import cleanup
from ringcast.testing.waiting import wait_until


class CountedSteps:
    """Watches an experiment and counts its steps."""

    def __init__(self) -> None:
        self.expected = self.taken = 0

    def expect(self, number: int) -> None:
        self.expected += number

    def step(self, what: str) -> None:
        self.taken += 1

    def rounds(self, wanted: int, least: int, most_s: float) -> range:
        return range(wanted)


def network_of(process: subprocess.Popen[Any], ready: Callable[[str], object] = bool) -> str:
    """Wait until the process has a network in the lab that is ready; its name."""
    found: list[str] = []

    def is_there() -> bool:
        assert process.poll() is None, "it ended before it had a network"
        found[:] = [record.run for record in cleanup.records() if record.pid == process.pid and ready(record.run)]
        return bool(found)

    wait_until(is_there)
    return found[0]


def named(findings: Findings, words: str) -> Row:
    """The one row whose name has these words."""
    found = [row for row in findings.rows if words in row.name]
    assert len(found) == 1, [row.name for row in found]
    return found[0]


def paper_delay(arrangement: Arrangement, size: int) -> int:
    """Nanoseconds as the papers have them: a hop for an intermediate proxy, linear in size, hops and subscribers."""
    ns = 1000 + 10_000 * min(arrangement.hops, 1) + 2_000 * max(arrangement.hops - 1, 0)
    ns += 5_500 if arrangement.proxy == INTERMEDIATE else 0
    return ns + 10 * size + 1_000 * arrangement.subscribers


def batches(
    rounds: int = 3, delay: Callable[[Arrangement, int], int] = paper_delay
) -> dict[tuple[Arrangement, int], list[list[int]]]:
    """All that the push-pull experiment measures, each sample with that delay."""
    return {pair: [[delay(*pair)] * 100] * rounds for pair in tables.wanted() + distance.wanted()}


def trips(delay: Callable[[Arrangement, int], int] = paper_delay) -> RoundTrips:
    """What Spark makes of these, when every sample has that delay."""
    us = {pair: delay(*pair) / 1e3 for pair in dict.fromkeys(tables.wanted() + distance.wanted())}
    summaries = [
        {"experiment": EXPERIMENT, **_columns(*pair), "mean_us": value, "std_us": 0.0, "p50_us": value}
        for pair, value in us.items()
    ]
    contrasts = []
    for (one, size), value in us.items():
        for (other, other_size), base in us.items():
            differ = [name for name in ("proxy", "subscribers", "hops") if getattr(one, name) != getattr(other, name)]
            alike = (one.transport, one.scaling, size) == (other.transport, other.scaling, other_size)
            if alike and len(differ) == 1:
                row = {"varied": differ[0], "against": str(getattr(other, differ[0])), "ratio": value / base}
                contrasts.append(
                    {"experiment": EXPERIMENT, **_columns(one, size), **row, "difference_us": value - base}
                )
    lines = []
    plain = [(one, size) for one, size in us if not one.scaling]
    for one in dict.fromkeys(one for one, _ in plain):
        sizes = sorted(size for other, size in plain if other == one)
        lines.append(_line(one, BY_SIZE, one.hops, sizes, [us[one, size] for size in sizes]))
        if one.hops < 2:
            continue
        near, *far = (Arrangement(hops, one.proxy, one.subscribers, one.transport) for hops in (1, 2, 3))
        lines.append(_line(one, ROUTERS, one.hops, sizes, [us[one, size] - us[near, size] for size in sizes]))
        for size in sizes:
            added = [0.0, *(us[other, size] - us[near, size] for other in far)]
            lines.append(_line(one, f"{BY_HOPS}, {size} B", None, [1, 2, 3], added))
    return RoundTrips(summaries, contrasts, lines)


def _columns(one: Arrangement, size: int) -> dict[str, Any]:
    names = ("hops", "proxy", "subscribers", "transport", "scaling")
    return {"size": size, **{name: getattr(one, name) for name in names}}


def _line(one: Arrangement, model: str, hops: int | None, x: list[int], y: list[float]) -> dict[str, Any]:
    level = len(x) < 2 or max(y) == min(y)
    r = 0.0 if level else float(np.corrcoef(x, y)[0, 1])
    return {"experiment": EXPERIMENT, "model": model, "proxy": one.proxy, "hops": hops, "r2": r * r, "b": r,
            "subscribers": one.subscribers, "transport": one.transport}  # fmt: skip

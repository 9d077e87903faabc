"""What tests of the lab share: who watches an experiment, rows by name, delays as the push-pull papers have them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from ringcast.lab.measuring.report import Findings
from ringcast.lab.measuring.rows import Row
from ringcast.lab.push_pull import distance, tables
from ringcast.lab.push_pull.network import INTERMEDIATE, Arrangement
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

"""The paper's grid: n, period, subscribers, transport and load, every cell repeated.

A repetition is one drive of `CYCLES` periods, or of as many as fit into a second, after a warm-up. It is kept as soon
as it is done, so that an interrupted run goes on where it was, if the code is the same.
"""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
from pathlib import Path

from ringcast.lab.labmap import results
from ringcast.lab.labmap.field import LabMapNetwork, Setting
from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.report import Steps
from ringcast.lab.testbed import affinity
from ringcast.record.machine import code_version

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
PERIODS_S = (0.005, 0.01, 0.05, 0.1, 0.2)
NODES = (1, 2, 3, 4, 5)
TRANSPORTS = ("tcp", "multicast+nak")
LOADS = ("idle", "stress")
REPETITIONS = 3
CYCLES = 100
PATIENCE_S = 5.0
"""For a load that gets no core."""
QUICK_SIZES, QUICK_PERIODS_S, QUICK_NODES = (400, 2000), (0.01, 0.05), (1, 5)
"""Two of these have one n/dt."""


def settings(quick: bool) -> list[Setting]:
    sizes, periods, nodes = (QUICK_SIZES, QUICK_PERIODS_S, QUICK_NODES) if quick else (SIZES, PERIODS_S, NODES)
    wanted = [
        Setting(n, period_s, s, transport, True, load)
        for load, transport, s, period_s, n in itertools.product(LOADS, TRANSPORTS, nodes, periods, sizes)
    ]
    return [one for one in wanted if not quick or one.load == "idle" or one.subscribers == 1]


class Stress:
    """A Whetstone loop on each side's core, below everybody's priority."""

    def __init__(self, cores: tuple[int, int]) -> None:
        self._sides = []
        for core in cores:
            process = subprocess.Popen(
                [sys.executable, "-m", "ringcast.lab.labmap.whetstone"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, bufsize=0,
            )  # fmt: skip
            affinity.pin(process.pid, {core})
            self._sides.append(Counter(process))

    def read(self) -> list[tuple[float, float]]:
        """(thousand instructions, time) of each side, newer than all that was read before."""
        return [side.newest() for side in self._sides]

    def close(self) -> None:
        for side in self._sides:
            side.process.kill()
            side.process.communicate()


class Counter:
    """What a Whetstone loop has done, as it printed it last. What it printed meanwhile waits in the pipe and is old."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._rest = b""
        self._last = (0.0, 0.0)

    def newest(self) -> tuple[float, float]:
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        lines: list[bytes] = []
        patience_s = PATIENCE_S
        while select.select([pipe], [], [], patience_s)[0]:
            came = os.read(pipe, 65536)
            if not came:
                break
            *whole, self._rest = (self._rest + came).split(b"\n")
            lines += whole
            patience_s = 0.0 if lines else PATIENCE_S
        if lines:
            done, at = lines[-1].split()
            self._last = (float(done), float(at))
        return self._last


def run(bed: LabMapNetwork, quick: bool, steps: Steps, left: Path) -> list[Result]:
    """Raises LabError, OSError."""
    wanted = settings(quick)
    repetitions = 1 if quick else REPETITIONS
    steps.expect(len(wanted) * repetitions)
    before = {} if quick else results.kept(left)
    found: list[Result] = []
    stress: Stress | None = None
    try:
        for setting, repetition in itertools.product(wanted, range(repetitions)):
            key = _key(setting, repetition)
            what = f"{setting.transport}, {setting.subscribers} node(s), {setting.load}"
            steps.step(f"{what}, {setting.n} every {1e3 * setting.period_s:g} ms")
            if key in before:
                found += before[key]
                continue
            if setting.load == "stress" and stress is None:
                stress = Stress(bed.cores)
            came = _one(bed, setting, repetition, quick, stress)
            found += came
            if not quick:
                results.keep(left, key, came)
    finally:
        if stress is not None:
            stress.close()
    return found


def is_whole(left: Path) -> bool:
    """Whether every repetition of the full form is there. Raises OSError."""
    before = results.kept(left)
    return all(_key(*one) in before for one in itertools.product(settings(quick=False), range(REPETITIONS)))


def _key(setting: Setting, repetition: int) -> str:
    return f"{code_version()} {setting} {repetition}"


def _one(bed: LabMapNetwork, setting: Setting, repetition: int, quick: bool, stress: Stress | None) -> list[Result]:
    cycles = max(10, min(CYCLES, round((0.4 if quick else 1.0) / setting.period_s)))
    begun = stress.read() if stress is not None else []
    drive = bed.drive(setting, cycles)
    if stress is None:
        return results.of(drive, repetition)
    ended = stress.read()
    rates = [(b[0] - a[0]) / (b[1] - a[1]) if b[1] > a[1] else 0.0 for a, b in zip(begun, ended, strict=True)]
    return results.of(drive, repetition, dict(zip(("publisher", "subscriber"), rates, strict=True)))

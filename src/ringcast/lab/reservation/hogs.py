"""Programs that compete for the processors: one per core, at the usual priority, busy for a share of the time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.node import Node

PERIOD_S = 0.01
_PROGRAM = """\
import os, sys, time
os.sched_setaffinity(0, {{{core}}})
share, period = {share}, {period}
while True:
    until = time.perf_counter() + share * period
    while time.perf_counter() < until:
        pass
    if share < 1:
        time.sleep((1 - share) * period)
"""


@contextmanager
def hogs(node: Node, share: float) -> Iterator[None]:
    """Within, every core of the machine is busy for that share of each PERIOD_S. Raises LabError."""
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    programs = [_PROGRAM.format(core=core, share=share, period=PERIOD_S) for core in affinity.cores()] if share else []
    running = [node.spawn([sys.executable, "-c", program], **silent) for program in programs]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()

"""A CPU load beside a measurement: one process per core that never stops computing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from harness import machine
from harness.process import BENCH

# The loop watches its parent: should the runner be killed, the load must not stay.
_SPIN = "import sys; sys.path.insert(0, sys.argv[1]); import worker; worker.die_with_parent()\nwhile True: pass"


@contextlib.contextmanager
def load(cores: set[int]) -> Iterator[None]:
    """Keep each of `cores` busy while inside."""
    with contextlib.ExitStack() as stack:
        for core in sorted(cores):
            process = subprocess.Popen([sys.executable, "-c", _SPIN, str(BENCH)], stdin=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            machine.pin(process.pid, {core})
        yield

"""A CPU load beside a measurement: one process per core that never stops computing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from harness import machine
from harness.process import BENCH

_SPIN = """
import sys
sys.path.insert(0, sys.argv[1])
from ends.lifeline import die_with_parent
die_with_parent()
print("spinning", flush=True)
while True:
    pass
"""


@contextlib.contextmanager
def load(cores: set[int]) -> Iterator[None]:
    """Keep each of `cores` busy while inside.

    Each load is a session of its own, as another program would be: the kernel shares a core out by sessions first.
    """
    with contextlib.ExitStack() as stack:
        for core in sorted(cores):
            command = [sys.executable, "-c", _SPIN, str(BENCH)]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
            )
            stack.callback(process.kill)
            machine.pin(process.pid, {core})
            assert process.stdout is not None
            process.stdout.readline()
        yield

"""What figures were measured on, in one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def this_machine() -> str:
    """Model, cores that this process may use, system and Python."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def measured_on() -> str:
    """The same as a note beside figures."""
    return f"measured on {this_machine()}"

"""Whether this machine's kernel has HFSC, the queue of paper 001's reservations. Asked once: by trying.

A queue of that kind is added to the loopback of a network namespace that ends with the command, so nothing that is used
is touched. Kernels built without it, and users who may not make a namespace, get HTB.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import cache

PROBE = ("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "hfsc")
_PATIENCE_S = 5.0


def _succeeds(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def probe(succeeds: Callable[[Sequence[str]], bool] = _succeeds) -> bool:
    return succeeds(PROBE)


@cache
def has_hfsc() -> bool:
    """What `probe` said the first time."""
    return probe()

"""What a recovery stage costs a receiver per packet, and whether it allocates: runs `recovery_bench` (native/bench).

That is a program of its own beside the native module, because it counts allocations by replacing operator new. The
stages run alone on one thread: no socket, no peers. Nanoseconds are of this machine, now; allocations must be 0
anywhere.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from ringcast import _core
from ringcast.lab.cleanup import LabError
from ringcast.lab.rows import Row, at_most, figure

PROGRAM = Path(str(_core.__file__)).with_name("recovery_bench")
LOSS_PERCENT = 1


class Cost(msgspec.Struct, frozen=True):
    """Of one stack: `ns` per packet received, `allocations` in all."""

    stages: str
    payload_bytes: int
    ns: float
    allocations: int

    @property
    def label(self) -> str:
        return f"{self.stages.replace(' ', '+') or 'no stage'}, {self.payload_bytes} bytes"


def packets(quick: bool) -> int:
    return 50_000 if quick else 1_000_000


def measure(count: int) -> list[Cost]:
    """Raises LabError."""
    try:
        printed = subprocess.run([PROGRAM, str(count)], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as exc:
        raise LabError(f"cannot run {PROGRAM}: {exc}; 'make setup' builds it") from exc
    return [msgspec.json.decode(line, type=Cost) for line in printed.splitlines()]


def rows(costs: list[Cost], count: int) -> list[Row]:
    """Pure."""
    found = [figure(f"recovery code per packet, {LOSS_PERCENT} % loss: {cost.label}", cost.ns, "ns") for cost in costs]
    name = f"allocations of the recovery code, {len(costs)} stacks, {count} packets each"
    return [*found, at_most(name, sum(cost.allocations for cost in costs), "allocations", 0)]

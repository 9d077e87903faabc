"""What a recovery stage costs a receiver per packet, and whether it allocates: runs `recovery_bench` (native/bench).

That is a program of its own beside the native module, because it counts allocations by replacing operator new. It is
built in a source tree and left out of wheels: where it is missing, its rows say so. The stages run alone on one thread:
no socket, no peers. Nanoseconds are of this machine, now; allocations must be 0 anywhere.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from ringcast import _core
from ringcast.lab.measuring.rows import Row, at_most, figure
from ringcast.lab.testbed.cleanup import LabError

PROGRAM = Path(str(_core.__file__)).with_name("recovery_bench")
LOSS_PERCENT = 1
MISSING = (
    "what the recovery code costs was skipped: the program recovery_bench is built in a source tree ('make setup') and "
    "left out of wheels"
)


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


def available() -> bool:
    return PROGRAM.exists()


def measure(count: int) -> list[Cost]:
    """Raises LabError."""
    try:
        printed = subprocess.run([PROGRAM, str(count)], check=True, capture_output=True).stdout
    except FileNotFoundError as exc:
        raise LabError(MISSING) from exc
    except (OSError, subprocess.CalledProcessError) as exc:
        raise LabError(f"cannot run {PROGRAM}: {exc}; 'make setup' builds it") from exc
    return [msgspec.json.decode(line, type=Cost) for line in printed.splitlines()]


def rows(costs: list[Cost], count: int) -> list[Row]:
    """Pure."""
    found = [figure(f"recovery code per packet, {LOSS_PERCENT} % loss: {cost.label}", cost.ns, "ns") for cost in costs]
    name = f"allocations of the recovery code, {len(costs)} stacks, {count} packets each"
    return [*found, at_most(name, sum(cost.allocations for cost in costs), "allocations", 0)]


def unanswered() -> list[Row]:
    """Where the program is not there: not measured is not met, and not missed either. Pure."""
    return [Row("allocations of the recovery code (recovery_bench is not built here: skipped)", None, "allocations",
                target=0, kind="asked")]  # fmt: skip

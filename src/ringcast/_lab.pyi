"""The lab's native module: simulation in virtual time. Nothing but the lab loads it."""

from collections.abc import Sequence
from typing import Any, Final

SIMULATED_NEVER: Final[int]
SIMULATED_UNIT_NS: Final[int]

def simulate_loss(
    stages: Sequence[str],
    *,
    tcp: bool = False,
    multicast: bool = True,
    receivers: int,
    updates: int,
    gap_ns: int,
    payload: int = 12,
    loss: float = 0.0,
    loss_enter: float = 0.0,
    loss_leave: float = 1.0,
    feedback_loss: float = 0.0,
    delay_ns: int = 150000,
    jitter_ns: int = 100000,
    send_ns: int = 5000,
    byte_ns: float = 0.0,
    rest_ns: int = 5000000000,
    lost_by_all: int | None = None,
    seed: int = 1,
    tuning: dict[str, int] = ...,
) -> dict[str, Any]:
    """A run in virtual time; see ringcast.lab.simulation.packet_loss."""

def attack(kind: str, *, packets: int, seed: int = 1) -> dict[str, int]:
    """So many packets as an attacker makes them, at the threads that receive sealed channels; see
    ringcast.lab.security. Raises ValueError, RuntimeError."""

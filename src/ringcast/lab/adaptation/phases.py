"""What the stream lives through. Pure values."""

from __future__ import annotations

from typing import NamedTuple

from ringcast.lab.adamant.environments import CANDIDATES
from ringcast.lab.adamant.grid import Cell

SETTLING = 300
"""Messages of a phase that a choice may take to follow."""
FIXED = tuple(name for name in CANDIDATES if not name.startswith("ordering+"))
"""All that a model may choose."""


class Phase(NamedTuple):
    name: str
    cell: Cell
    messages: int


def _phase(name: str, messages: int, receivers: int = 3, loss: float = 0.0, burst: float = 1.0, rate_hz: float = 100.0,
           delay_us: float = 500.0, bandwidth_mbit: float = 100.0) -> Phase:  # fmt: skip
    return Phase(name, Cell(receivers, loss, burst, rate_hz, 200, delay_us, bandwidth_mbit), messages)


def phases(quick: bool) -> tuple[Phase, ...]:
    n = 1_000 if quick else 3_000
    return (
        _phase("nothing is lost", n),
        _phase("1 % is lost", n, loss=0.01),
        _phase("5 % is lost", n, loss=0.05),
        _phase("10 receivers", n, receivers=10, loss=0.05),
        _phase("25 receivers", n, receivers=25, loss=0.05),
        _phase("bursts of 4", n, receivers=10, loss=0.05, burst=4.0),
        _phase("10 Hz", n, loss=0.03, rate_hz=10.0),
        _phase("a thin link", n, receivers=10, loss=0.02, bandwidth_mbit=4.0),
        _phase("a long way", n, loss=0.03, delay_us=20_000.0),
    )

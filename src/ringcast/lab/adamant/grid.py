"""The grid of paper 004: which transports are run under which loss, rate and number of receivers. Pure values.

| the paper | here |
|---|---|
| TCP, UDP | tcp (a model), udp |
| IP Mcast, ANT Baseline | multicast: the same in a simulator, where a framework costs nothing |
| RMcast | nak |
| ANT Ricochet r = 4, 8; c = 3 | lateral:r=4,c=3 and lateral:r=8,c=3 |

Beyond it: ack, parity, lateral+nak, 5 % of loss, and bursts. 100 and 1,000 receivers are a grid of their own. At these
rates parity's blocks of r=4 are flushed after 5 ms with one packet in them; those of flush=1s fill first, or nearly.
"""

from __future__ import annotations

import itertools
import math

import msgspec

from ringcast import _core
from ringcast.lab.simulation.packet_loss import Scenario
from ringcast.transport.stack import ORDERING, parse

BASELINES = ("tcp", "udp", "multicast")
CODED = ("lateral:r=4,c=3", "lateral:r=8,c=3", "parity:r=4,c=3", "parity:r=8,c=3,flush=1s", "lateral+nak:r=4,c=3",
         "lateral+nak:r=8,c=3")  # fmt: skip
ORDERED_PARITY = "ordering+parity:r=4,c=3,patience=10ms"
"""As daemons run parity for those who want an order: a gap is waited for twice as long as a block is."""
TRANSPORTS = (*BASELINES, "nak", "ack", *CODED, ORDERED_PARITY)
IN_ORDER = ("nak", "lateral+nak:r=4,c=3", "lateral+nak:r=8,c=3", ORDERED_PARITY)
AS_IT_COMES = tuple(name for name in CODED if name not in IN_ORDER)
"""Of either kind the best must beat the best baseline wherever something is lost. Daemons deliver as it comes to those
who subscribe with ordered=False, and in order to others."""
RECOVERING = (*IN_ORDER, *AS_IT_COMES)
BURST = 3.0
MOST_LONGER = 6
LEAST_FLUSH_NS = 4e6
PATIENCE_NS = 10e6, 500e6
"""Of an order that is kept without asking again, at least and at most."""
JITTER = 2 / 3
"""Of the delay: 100 us with the 150 us of the paper's grid."""


class Cell(msgspec.Struct, frozen=True, order=True):
    """One environment."""

    receivers: int
    loss: float
    burst: float
    rate_hz: float
    payload_bytes: int = 12
    delay_us: float = 150.0
    bandwidth_mbit: float = math.inf

    @property
    def label(self) -> str:
        bursts = f" in bursts of {self.burst:g}" if self.burst > 1 else ""
        line = f", {self.delay_us:g} us, {self.bandwidth_mbit:g} Mbit/s" if self.bandwidth_mbit < math.inf else ""
        return f"{self.receivers} receivers, {100 * self.loss:g} % loss{bursts}, {self.rate_hz:g} Hz{line}"

    def scenario(self, transport: str, updates: int, seed: int) -> Scenario:
        return Scenario(
            transport=_patient(transport, self.rate_hz), receivers=self.receivers, loss=self.loss, burst=self.burst,
            rate_hz=self.rate_hz, updates=updates, seed=seed, payload_bytes=self.payload_bytes, delay_us=self.delay_us,
            jitter_us=JITTER * self.delay_us, bandwidth_mbit=self.bandwidth_mbit,
        )  # fmt: skip


def _patient(transport: str, rate_hz: float) -> str:
    """Where an order is kept without asking again, a gap is waited for as long as daemons do: it follows from how long
    repairs take to be made (`Recovered::follow_rate`)."""
    if transport.partition("+")[0] != ORDERING or "patience=" in transport:
        return transport
    tuning = {**_core.recovery_tuning(), **parse(transport).tuning}
    wait_ns = max(LEAST_FLUSH_NS, tuning["r"] * tuning["stagger"] * 1e9 / rate_hz)
    if tuning["flush_ns"] > 0:
        wait_ns = min(wait_ns, tuning["flush_ns"])
    patience_ns = min(max(2 * wait_ns, PATIENCE_NS[0]), PATIENCE_NS[1])
    return f"{transport}{',' if ':' in transport else ':'}patience={round(patience_ns)}ns"


class Grid(msgspec.Struct, frozen=True):
    cells: tuple[Cell, ...]
    transports: tuple[str, ...]
    updates: int
    repetitions: int
    losses: int = 0
    """How many packets should be lost in a run, all receivers together, before its figures say something: where less is
    lost it is longer, up to MOST_LONGER times."""

    def length(self, cell: Cell) -> int:
        """Updates of a run in that environment."""
        if not self.losses or not cell.loss:
            return self.updates
        # Packets of a burst are lost together, and count as one.
        enough = round(self.losses * cell.burst / (cell.receivers * cell.loss))
        return min(max(enough, self.updates), MOST_LONGER * self.updates)

    @property
    def runs(self) -> int:
        return len(self.cells) * len(self.transports) * self.repetitions


def _cells(
    receivers: tuple[int, ...], losses: tuple[tuple[float, float], ...], rates: tuple[float, ...]
) -> tuple[Cell, ...]:
    return tuple(Cell(n, loss, burst, rate) for n, (loss, burst), rate in itertools.product(receivers, losses, rates))


def paper_grid(quick: bool) -> Grid:
    if quick:
        losses = ((0.0, 1.0), (0.01, 1.0), (0.03, 1.0), (0.05, 1.0), (0.03, BURST))
        # 25 Hz only where the paper's Figures 9, 11 and 16 to 21 have it.
        more = _cells((3,), losses[:3], (25.0,))
        return Grid(_cells((3, 25), losses, (10.0, 50.0, 100.0)) + more, TRANSPORTS, 1_000, 5)
    alone = tuple((percent / 100, 1.0) for percent in (0, 1, 2, 3, 5))
    bursts = tuple((percent / 100, BURST) for percent in (1, 3, 5))
    return Grid(_cells((3, 10, 25), alone + bursts, (10.0, 25.0, 50.0, 100.0)), TRANSPORTS, 20_000, 5)


def crowd_grid(quick: bool) -> Grid:
    """Where the paper stopped at 25."""
    transports = ("multicast", "nak", "lateral:r=4,c=3", "parity:r=4,c=3", "lateral+nak:r=4,c=3")
    losses = ((0.01, 1.0), (0.03, 1.0))
    if quick:
        return Grid(_cells((100, 1_000), losses[:1], (50.0,)), transports, 100, 1)
    return Grid(_cells((100, 1_000), losses, (10.0, 100.0)), transports, 1_000, 3)

"""Which part of the grid is run on a real network, and what the simulator is asked to predict of it. Pure.

A daemon's stack differs from the grid's simulated one in three ways, and a prediction has to be of the daemon's:

- it delivers in order, unless it is asked not to, and so holds back what follows a gap for its patience
  (`native/path/receiving/recovered.cpp`: twice as long as a repair takes to be made, from 10 to 500 ms; without repairs
  2 ms, udp's too); lateral and parity are run both ways;
- its round trip within the group is the default of 1 ms and not the scenario's;
- ack goes to each receiver by itself, there is no multicast for it.

Links are the machine's own: their delay is taken from what udp measured where nothing was lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from ringcast.lab.adamant.grid import Cell
from ringcast.lab.measuring.samples import quantile
from ringcast.lab.simulation.packet_loss import TCP, Scenario

RATE_HZ = 100.0
SLOW = {10.0: 300, 25.0: 500, 50.0: 500}
"""Rates at which all contenders are run side by side, and how many updates each sends."""
PAYLOAD_BYTES = 12
SEEDS = range(1, 6)
NOTHING_LOST = 0.0
LOSSES = {NOTHING_LOST: 1_000, 0.01: 1_000, 0.02: 500, 0.03: 1_000, 0.05: 500}
"""Updates that a transport by itself sends. No figure of the paper is of 2 or 5 %: half as many lose enough there."""
LATERAL_R = (4, 8)
"""Of the paper's Figures 19 to 21, and of 16 to 18."""
_GRTT = "grtt=1ms"
_PARITY_PATIENCE_MS = 10.0
_PATIENCE = "<patience>"
"""In what is simulated: how long lateral waits, which follows from its r and from the rate."""


def _lateral_patience_ms(r: int, rate_hz: float) -> float:
    return min(max(2 * r * 1000 / rate_hz, 10.0), 500.0)


class Contender(msgspec.Struct, frozen=True):
    """A transport by the grid's name: as daemons are asked for it, and as the simulator is."""

    name: str
    asked: str
    simulated: str
    multicast: bool = True
    complete: bool = False
    """Whether it promises to deliver everything."""
    ordered: bool = True
    r: int = 0
    """Of lateral in order."""


AS_IT_COMES = ", as it comes"
"""In the names of contenders whose receivers subscribe with ordered=False."""


def _as_it_comes(name: str) -> Contender:
    return Contender(name + AS_IT_COMES, f"multicast+{name}", f"{name},{_GRTT}", ordered=False)


def _lateral(r: int) -> Contender:
    name = f"lateral:r={r},c=3"
    return Contender(name, f"multicast+{name}", f"ordering+{name},{_GRTT},patience={_PATIENCE}", r=r)


CONTENDERS = (
    Contender("udp", "udp", "ordering", multicast=False),
    Contender("multicast", "multicast", "ordering"),
    Contender("tcp", "tcp", TCP, multicast=False, complete=True),
    Contender("nak", "multicast+nak", f"nak:{_GRTT}", complete=True),
    *map(_lateral, LATERAL_R),
    Contender(
        "lateral+nak:r=4,c=3", "multicast+lateral+nak:r=4,c=3", f"lateral+nak:r=4,c=3,{_GRTT}", complete=True
    ),
    Contender(
        "parity:r=4,c=3",
        "multicast+parity:r=4,c=3",
        f"ordering+parity:r=4,c=3,{_GRTT},patience={_PARITY_PATIENCE_MS:g}ms",
    ),
    *(_as_it_comes(_lateral(r).name) for r in LATERAL_R),
    _as_it_comes("parity:r=4,c=3"),
    Contender("ack", "ack", f"ack:{_GRTT}", multicast=False, complete=True),
)  # fmt: skip


QUICK = ("udp", "tcp", "nak", "lateral:r=4,c=3", "lateral+nak:r=4,c=3", "parity:r=4,c=3",
         f"lateral:r=4,c=3{AS_IT_COMES}")  # fmt: skip


class FieldPlan(msgspec.Struct, frozen=True):
    """`losses` say how many updates each contender sends by itself."""

    receivers: tuple[int, ...]
    losses: dict[float, int]
    contenders: tuple[Contender, ...]
    slow: tuple[float, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        return [Cell(n, loss, 1.0, RATE_HZ) for n, loss in itertools.product(self.receivers, self.losses)]

    @property
    def slow_cells(self) -> list[Cell]:
        """In which all contenders are run at once."""
        return [Cell(n, loss, 1.0, rate) for rate, n, loss in itertools.product(self.slow, self.receivers, self.losses)]

    def contenders_of(self, cell: Cell) -> tuple[Contender, ...]:
        """udp comes first, because it measures the links."""
        return self.contenders

    @property
    def runs(self) -> int:
        return sum(len(self.contenders_of(cell)) for cell in self.cells) + len(self.slow_cells)


class QuickPlan(FieldPlan, frozen=True):
    """Where nothing is lost only udp is run."""

    def contenders_of(self, cell: Cell) -> tuple[Contender, ...]:
        return self.contenders if cell.loss else self.contenders[:1]


def field_plan(quick: bool) -> FieldPlan:
    if quick:
        return QuickPlan((3,), {NOTHING_LOST: 250, 0.03: 250}, tuple(c for c in CONTENDERS if c.name in QUICK))
    return FieldPlan((3, 10, 25), LOSSES, CONTENDERS, tuple(SLOW))


class Links(msgspec.Struct, frozen=True):
    """A network as the simulator takes it: delays are uniform from `delay_us` to `delay_us + jitter_us`."""

    delay_us: float
    jitter_us: float


def links_of(latencies_us: Sequence[float]) -> Links:
    """From the delays of udp without loss: a low quantile as the delay, and the jitter that gives the median.

    The median and not the mean, because a pause of the machine is no property of a link. Raises ValueError for no
    samples.
    """
    least = quantile(latencies_us, 0.05)
    return Links(least, 2 * (quantile(latencies_us, 0.5) - least))


def prediction(cell: Cell, contender: Contender, links: Links, updates: int, seed: int) -> Scenario:
    return Scenario(
        transport=contender.simulated.replace(_PATIENCE, f"{_lateral_patience_ms(contender.r, cell.rate_hz):g}ms"),
        multicast=contender.multicast, receivers=cell.receivers, loss=cell.loss,
        burst=cell.burst, rate_hz=cell.rate_hz, updates=updates, payload_bytes=PAYLOAD_BYTES,
        delay_us=links.delay_us, jitter_us=links.jitter_us, send_us=0.0, seed=seed,
    )  # fmt: skip

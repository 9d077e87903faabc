"""Environments drawn at random, far beyond paper 004's: what a model of which transport is best where is trained on.

Receivers, loss, bursts, rate, size, delay and bandwidth are drawn independently, each over the span where it changes
who wins, and most of them by their magnitude. What a publisher could not even send to everybody in turn is drawn
again: on a line that is full only the queue would be measured. One seed decides all of it. Pure values.
"""

from __future__ import annotations

import random

from ringcast.lab.adamant_grid import BASELINES, Cell, Grid

SEED = 4
MOST_LOAD = 0.5
"""Of its line, that a publisher may need for one datagram to each receiver."""
HEADS_BYTES = 120
"""Of a datagram, in our header and those below it, at most."""

LATERAL = tuple(f"lateral:r={r},c={c}" for r, c in ((4, 2), (4, 5), (8, 3)))
PARITY = ("parity:r=4,c=1,flush=1s", "parity:r=4,c=2,flush=1s", "parity:r=8,c=2,flush=1s", "parity:r=4,c=3",
          "parity:r=16,c=1,flush=1s")  # fmt: skip
BOTH = ("lateral+nak:r=4,c=3", "parity+nak:r=4,c=1,flush=1s", "parity+nak:r=8,c=2,flush=1s", "parity+nak:r=4,c=3")
CANDIDATES = (*BASELINES, "nak", "ack", *LATERAL, *PARITY, *BOTH)
"""Transports and settings to choose from."""


def environments(number: int, seed: int = SEED) -> tuple[Cell, ...]:
    """The first of them are the same however many are asked for."""
    chance = random.Random(seed)
    drawn: list[Cell] = []
    while len(drawn) < number:
        cell = _drawn(chance)
        if load(cell) <= MOST_LOAD:
            drawn.append(cell)
    return tuple(drawn)


def load(cell: Cell) -> float:
    """Share of the publisher's line that a datagram to each receiver takes."""
    return cell.receivers * (cell.payload_bytes + HEADS_BYTES) * 8 * cell.rate_hz / (cell.bandwidth_mbit * 1e6)


def environment_grid(quick: bool) -> Grid:
    return Grid(environments(160 if quick else 1_200), CANDIDATES, 500 if quick else 1_500, 2)


def _drawn(chance: random.Random) -> Cell:
    def magnitude(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** chance.random():.3g}")

    lossless = chance.random() < 0.1
    return Cell(
        receivers=round(magnitude(2, 25)),
        loss=0.0 if lossless else magnitude(0.002, 0.1),
        burst=1.0 if lossless or chance.random() < 0.5 else magnitude(1.5, 6),
        rate_hz=magnitude(5, 1_000),
        payload_bytes=round(magnitude(12, 1_200)),
        delay_us=magnitude(50, 40_000),
        bandwidth_mbit=magnitude(0.5, 200),
    )

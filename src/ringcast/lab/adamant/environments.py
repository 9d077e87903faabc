"""Environments drawn at random, far beyond paper 004's: what a model of which transport is best where is trained on.

Receivers, loss, bursts, rate, size and delay are drawn independently, each over the span where it changes who wins, and
most of them on a logarithmic scale; every eighth has one receiver. The bandwidth follows from the share of its line
that a publisher would need for a datagram to each receiver. That is at most half: on a full line only the queue would
be measured. One seed decides all of it. Pure values.
"""

from __future__ import annotations

import hashlib
import random

from ringcast.lab.adamant.grid import BASELINES, Cell, Grid

SEED = 4
TUNING_SEED = 1_804
"""Of the environments by which settings of the training are compared. They were the unseen ones once, and have been
looked at since."""
UNSEEN_SEED = int.from_bytes(hashlib.sha256(b"ringcast: environments that nobody has looked at, 3").digest()[:4])
"""Of the environments on which models are compared that are finished: nobody chose or tuned anything by them. A digest
chose it, before any of them was run."""
GATE_SEED = int.from_bytes(hashlib.sha256(b"ringcast: environments by which models are let in, 1").digest()[:4])
"""Of the environments by which a new model is compared with the one in use, as often as one is trained or loaded. They
are not those by which it is said how good the models of the package are: what is looked at often is seen."""
ONE_RECEIVER = 8
"""Of so many environments, one has a single receiver, to whom nobody can help and multicast is udp."""
UNSEEN_NUMBER = 500
"""Of fewer, two models of which one is right a hundredth more often can hardly be told apart."""
LOAD = (0.02, 0.5)
"""Of its line, that a publisher needs for a datagram to each receiver: least and most."""
HEADS_BYTES = 120
"""Of a datagram, in our header and those below it, at most."""

LATERAL = tuple(f"lateral:r={r},c={c}" for r, c in ((4, 2), (4, 5), (8, 3)))
PARITY = ("parity:r=4,c=1,flush=1s", "parity:r=4,c=2,flush=1s", "parity:r=8,c=2,flush=1s", "parity:r=4,c=3",
          "parity:r=16,c=1,flush=1s")  # fmt: skip
BOTH = ("lateral+nak:r=4,c=3", "parity+nak:r=4,c=1,flush=1s", "parity+nak:r=8,c=2,flush=1s", "parity+nak:r=4,c=3")
IN_ORDER = tuple(f"ordering+{name}" for name in ("lateral:r=4,c=5", "parity:r=4,c=2,flush=1s", "parity:r=4,c=3"))
CANDIDATES = (*BASELINES, "nak", *LATERAL, *PARITY, *BOTH, *IN_ORDER)
"""Transports and settings to choose from. Not `ack`: it costs an answer from every receiver to every message, and the
simulator does not model that cost."""


def environments(number: int, seed: int = SEED) -> tuple[Cell, ...]:
    """The first of them are the same however many are asked for."""
    chance = random.Random(seed)
    return tuple(_drawn(chance, alone=at % ONE_RECEIVER == ONE_RECEIVER - 1) for at in range(number))


def environment_grid(quick: bool) -> Grid:
    if quick:
        return Grid(environments(120), CANDIDATES, 500, 1)
    # More environments teach more than each of them twice: what chance does to one, its neighbours even out.
    return Grid(environments(6_000), CANDIDATES, 600, 1, losses=120)


def judged_grid(quick: bool, seed: int, number: int = 300) -> Grid:
    """Each is run four times, so that it can be said how well the experiment repeats itself."""
    if quick:
        return Grid(environments(4, seed), CANDIDATES, 500, 4)
    return Grid(environments(number, seed), CANDIDATES, 600, 4, losses=120)


def _drawn(chance: random.Random, alone: bool) -> Cell:
    def magnitude(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** chance.random():.3g}")

    lossless = chance.random() < 0.1
    receivers, payload_bytes, rate_hz = round(magnitude(2, 25)), round(magnitude(12, 1_200)), magnitude(5, 1_000)
    receivers = 1 if alone else receivers
    in_turn_mbit = receivers * (payload_bytes + HEADS_BYTES) * 8e-6 * rate_hz
    return Cell(
        receivers=receivers,
        loss=0.0 if lossless else magnitude(0.002, 0.1),
        burst=1.0 if lossless or chance.random() < 0.5 else magnitude(1.5, 6),
        rate_hz=rate_hz,
        payload_bytes=payload_bytes,
        delay_us=magnitude(50, 40_000),
        bandwidth_mbit=float(f"{in_turn_mbit / magnitude(*LOAD):.3g}"),
    )

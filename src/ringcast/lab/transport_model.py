"""Results of transport experiments from a small model, where nobody has measured any. Seeded; pure.

It has the shape of the real thing and none of its truth: good for trying the training, not for choosing a transport.
Per message of a channel with `loss` p, `rate_hz` f and `receivers` n, on machines as slow as those of paper 004:

    udp            1.5 ms + 50 us n                                     delivers 1 - p
    multicast      1.7 ms                                               delivers 1 - p
    tcp            udp + p d (1 + f d/2), d = 0.2                       delivers all: what follows a loss waits too
    nak            multicast + p d (1 + f d/2), d = 1/f + 2 ms + 0.4 ms n   delivers all but p^6
    lateral r, c   multicast + 1.2 ms/r + 10 us c + p r/2f              delivers all but p (1 - (1-p)^(r-1))^min(c, n-1)
    parity r       multicast + 0.8 ms/r + p r/2f                        delivers all but p (1 - (1-p)^r)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import numpy as np

TRANSPORTS = ("udp", "multicast", "tcp", "nak", "lateral:r=4,c=3", "lateral:r=8,c=3", "parity:r=4", "parity:r=8")


def outcome(transport: str, loss: float, rate_hz: float, receivers: int) -> tuple[float, float]:
    """Mean latency in seconds, and the share that is delivered."""
    kind, _, rest = transport.partition(":")
    options = {name: int(value) for name, _, value in (part.partition("=") for part in rest.split(",") if part)}
    r, c = options.get("r", 4), options.get("c", 3)
    if kind == "udp":
        return 1.5e-3 + 5e-5 * receivers, 1 - loss
    if kind == "multicast":
        return 1.7e-3, 1 - loss
    if kind in ("tcp", "nak"):
        tcp = kind == "tcp"
        base = 1.5e-3 + 5e-5 * receivers if tcp else 1.7e-3
        repair = 0.2 if tcp else 1 / rate_hz + 2e-3 + 4e-4 * receivers
        return base + loss * repair * (1 + rate_hz * repair / 2), 1.0 if tcp else 1 - loss**6
    if kind == "lateral":
        left = loss * (1 - (1 - loss) ** (r - 1)) ** min(c, max(1, receivers - 1))
        return 1.7e-3 + 1.2e-3 / r + 1e-5 * c + loss * r / (2 * rate_hz), 1 - left
    if kind == "parity":
        return 1.7e-3 + 8e-4 / r + loss * r / (2 * rate_hz), 1 - loss * (1 - (1 - loss) ** r)
    raise ValueError(f"the model knows no transport {transport!r}; it knows {', '.join(TRANSPORTS)}")


def results(seed: int = 1, repetitions: int = 3, version: str = "model-1") -> Iterator[dict[str, Any]]:
    """Rows of the one schema for experiments, over a grid wider than paper 004's."""
    random = np.random.default_rng(seed)
    losses = (0.0, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05)
    rates, receivers = (10, 15, 25, 35, 50, 75, 100, 200), (3, 5, 8, 12, 18, 25)
    for loss, rate, count, transport in product(losses, rates, receivers, TRANSPORTS):
        latency, delivered = outcome(transport, loss, rate, count)
        configuration = msgspec.json.encode(
            {"loss": loss, "rate_hz": rate, "receivers": count, "transport": transport}, order="sorted"
        ).decode()
        for repetition in range(repetitions):
            noisy = latency * float(random.lognormal(0, 0.01))
            values = {"latency": (noisy, "s"), "delivered": (delivered, "1"),
                      "relate2": (noisy * (100 * (1 - delivered) + 1), "s")}  # fmt: skip
            for metric, (value, unit) in values.items():
                yield {
                    "experiment": "transport-model", "configuration": configuration, "repetition": repetition,
                    "metric": metric, "value": value, "unit": unit, "machine": "none", "version": version,
                }  # fmt: skip

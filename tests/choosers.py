"""A calm environment, a model that predicts the same costs everywhere within its spans, and what fits a line by the
plain arithmetic."""

from __future__ import annotations

import msgspec

from ringcast.adapt import Chooser
from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import bytes_sent
from ringcast.adapt.lines import KEPT_SHARE, SHARE

CALM = Environment(
    receivers=3, loss_percent=1.0, burst=1.0, rate_hz=100.0, payload_bytes=12.0, delay_us=150.0, bandwidth_mbit=100.0,
    messages=1_000,
)  # fmt: skip


def around(**numbers: float) -> Environment:
    return msgspec.structs.replace(CALM, **numbers)


def model(labels: list[str], costs: list[float], **spans: tuple[float, float]) -> Chooser:
    return Chooser.parse(
        msgspec.json.encode(
            {
                "metric": "relate2", "family": "costs", "share": 1.0, "features": ["loss_percent"], "labels": labels,
                "predicts": "costs", "weights": [[0.0]] * len(labels), "constants": costs,
                "spans": {"loss_percent": (0.0, 10.0), **spans},
            }
        )
    )  # fmt: skip


def fits(transport: str, environment: Environment, current: str = "") -> bool:
    """Whether it leaves something of the line, as a decision says it in less time."""
    share = KEPT_SHARE if transport == current else SHARE
    return bytes_sent(transport, environment) <= share * 125_000 * environment.bandwidth_mbit / environment.rate_hz

"""A model that predicts the same costs everywhere within its spans."""

from __future__ import annotations

import msgspec

from ringcast.adapt import Chooser


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

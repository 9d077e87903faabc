"""What is wanted: a metric, promises, and what models are for. Pure.

For an order, other transports are worth it: what waits for a repair holds up all that follows. So there are two models
for each metric, and that for an order is called "METRIC in order".
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.model.carrier import DEADLINE_S, METRICS

IN_ORDER = " in order"
MORE_IS_BETTER = ("delivered", "usable_frames")
"""Metrics in percent whose best is 100. All others are better the lower they are."""
SLACK = {"delivered": 0.05, "usable_frames": 0.5, "late_or_lost_100ms": 0.05}
"""How many points beside the best are no difference: the lowest cost may be 0, of which 5 % are nothing."""
_ORDERING = {"ordering", "nak", "ack", "tcp"}


class Wish(NamedTuple):
    """What is asked for: the metric, the share of messages that may be missing, promises, and after how long a message
    is late, where that is the metric."""

    metric: str
    loss: float = 1.0
    reliable: bool = False
    ordered: bool = True
    deadline_s: float = DEADLINE_S

    @property
    def learned(self) -> str:
        """What models call the metric; '' for a deadline that no experiment measured."""
        return METRICS[self.metric] if self.metric != "deadline" or self.deadline_s == DEADLINE_S else ""


def plain(metric: str) -> tuple[str, bool]:
    """(the metric itself, whether it is for those who want an order)."""
    return metric.removesuffix(IN_ORDER), metric.endswith(IN_ORDER)


def orders(transport: str) -> bool:
    """Whether a transport, as experiments call it, keeps the order."""
    return bool(_ORDERING & set(transport.partition(":")[0].split("+")))


def candidate(transport: str, in_order: bool) -> bool:
    """Whether a model may choose it: one without an order is not asked to keep one that nobody wants."""
    return orders(transport) if in_order else not transport.startswith("ordering+")

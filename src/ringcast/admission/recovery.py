"""What a lost packet costs: how much later its message comes, by transport. Pure.

Taken from what the transports do: their stages and times are those of `ringcast.transport`, defaults included, so a
changed default changes the bound.
"""

from __future__ import annotations

import math

from ringcast import _core
from ringcast.admission.model import AdmissionError
from ringcast.errors import BadTransport, QosMismatch
from ringcast.transport.recipe import read as recipe

TCP_LEAST_RTO_NS = 200_000_000
"""Linux repeats a lost segment no sooner when no later one is acknowledged."""
LEAST_HOLD_NS, MOST_HOLD_NS, MOST_DOUBLINGS = 2_000_000, 1_000_000_000, 6
"""Of `native/recovery/nak_receiver.cpp`: how long an answer to a request is waited for."""
PUMPED = ("tcp",)
INLINE_BYTES = 64 * 1024
"""A larger message is sent by a thread of the daemon."""
_PLAIN = ("udp", "tcp")


def check_transport(where: str, transport: str) -> None:
    """Raises AdmissionError."""
    if transport in _PLAIN:
        return
    try:
        recipe(transport)
    except (BadTransport, QosMismatch) as exc:
        raise AdmissionError(where, str(exc)) from exc


def is_pumped(transport: str, size: float) -> bool:
    """Whether a thread of the daemon sends, and not the publisher's own."""
    if size > INLINE_BYTES or transport in PUMPED:
        return True
    return transport not in _PLAIN and recipe(transport).shape.pumped


def delay_ns(transport: str, losses: int, period_ns: int, one_way_ns: float) -> float:
    """How much later a message comes that was lost `losses` times in a row, over a path that takes `one_way_ns`.

    What a transport does not repair is not late but missing: then it is 0, as for best effort.
    """
    if losses == 0 or transport == "udp":
        return 0
    if math.isinf(one_way_ns):
        return math.inf
    trip = 2 * one_way_ns
    if transport == "tcp":
        return max(TCP_LEAST_RTO_NS, trip) * ((1 << losses) - 1) + losses * trip
    found = recipe(transport)
    tuning = {**_core.recovery_tuning(), **found.tuning}
    stages = found.shape.stages
    if "ack" in stages:
        waits = [tuning["ack_timeout_ns"] << min(i, MOST_DOUBLINGS) for i in range(losses)]
        return sum(waits) + losses * trip
    if "nak" in stages:
        return _nak_ns(tuning, losses, period_ns, trip)
    if "lateral" in stages:
        return (tuning["r"] - 1) * tuning["stagger"] * period_ns + one_way_ns
    if "parity" in stages:
        full = tuning["r"] * tuning["stagger"] * period_ns
        return (min(full, tuning["flush_ns"]) if tuning["flush_ns"] else full) + one_way_ns
    return 0


def _nak_ns(tuning: dict[str, int], losses: int, period_ns: int, trip: float) -> float:
    """The next message or a heartbeat reveals the gap; doubt, back-off and a round trip follow, and after each further
    loss a longer wait for the answer."""
    grtt = max(trip, tuning["grtt_ns"])
    backoff = tuning["backoff_k"] * grtt if tuning["group"] > 1 else 0
    grace = min(tuning["grace_gaps"] * period_ns, tuning["grace_most_ns"])
    first = min(period_ns, tuning["heartbeat_ns"]) + max(tuning["reorder_ns"], grace) + backoff + trip
    hold, most = max(2 * grtt, LEAST_HOLD_NS), max(2 * grtt, MOST_HOLD_NS)
    later = [2 * grtt if i == 0 else min(hold * (1 << min(i, MOST_DOUBLINGS)), most) for i in range(losses - 1)]
    return first + sum(wait + backoff + trip for wait in later)

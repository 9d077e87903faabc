"""Who may receive a stream of another node itself, and not have it received by this daemon. Pure.

Only whoever is alone with it: nobody else has to trust its mirror, or to wait for its process. Everything else is as
for ordinary channels, so a stream moves from one to the other as streams move.
"""

from __future__ import annotations

from ringcast.daemon.rings.demand import Demand
from ringcast.errors import QosMismatch
from ringcast.model.tag import is_pattern
from ringcast.transport.recipe import read
from ringcast.transport.stack import ORDERING

MOST_SUBSCRIPTIONS = 16
"""Of a program that receives itself: each such stream costs it a thread, most of the time asleep."""
MOST_BYTES = 64 * 1024 * 1024
"""Of a ring that changes hands, since what it holds is copied then. Where messages are long, a wake-up more or less
does not matter."""
STAGES = {ORDERING, "nak"}


def may_receive(pattern: str, demand: Demand, subscriptions: int) -> bool:
    """Whether a reader of `pattern`, in a program with so many subscriptions, may receive what it demands."""
    plain = Demand(at="", transport=demand.transport)
    if is_pattern(pattern) or subscriptions > MOST_SUBSCRIPTIONS or demand != plain or not _stacked(demand.transport):
        return False
    try:
        shape = read(demand.transport).shape
    except QosMismatch:  # another's, of that name
        return False
    return not shape.multicast and set(shape.stages) == STAGES


def _stacked(transport: str) -> bool:
    return "nak" in transport.partition(":")[0].split("+")

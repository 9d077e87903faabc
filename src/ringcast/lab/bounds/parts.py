"""Of what a message's delay consists, beside what its bound is made of. Pure.

| part | measured | computed |
|---|---|---|
| starts | neither run nor behind others, until the message is sent | what a ready thread waits |
| computes | what publisher and subscriber were given to compute | the same |
| behind | ready while others had the core, as the kernel counts it, both | more important work and each of its |
| | | wakings; what cannot be preempted |
| handed over | neither, from sending until it is done: through the ring | publish, deliver, a ready thread's wait |

So a bound that is exceeded, or nearly, says which of its terms is too small.
"""

from __future__ import annotations

import msgspec

from ringcast.admission.model import NS, Stream, System
from ringcast.admission.verdict import judge

NEAR = 0.8
"""Messages that took so much of their bound are shown."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Nanoseconds: when its period began, it was sent, received and done, and how long its publisher and its subscriber
    waited behind others."""

    began: int
    sent: int
    received: int
    done: int
    before: int
    after: int

    @property
    def delay(self) -> int:
        return self.done - self.began


class Parts(msgspec.Struct, frozen=True):
    """Seconds."""

    starts: float
    computes: float
    behind: float
    handed_over: float

    @property
    def whole(self) -> float:
        return self.starts + self.computes + self.behind + self.handed_over

    def over(self, computed: Parts) -> dict[str, float]:
        """By how much each is longer than it was computed."""
        return {name: getattr(self, name) - getattr(computed, name) for name in self.__struct_fields__}


def measured(message: Message, stream: Stream) -> Parts:
    (reader,) = stream.subscribers
    starts = (message.sent - message.began - message.before) / NS - stream.compute_s
    handed_over = (message.done - message.sent - message.after) / NS - reader.compute_s
    computes = stream.compute_s + reader.compute_s
    return Parts(starts, computes, (message.before + message.after) / NS, handed_over)


def computed(system: System) -> dict[str, Parts]:
    """Of every stream of one node, by its tag. What a term adds to a bound is what the bound is longer with it."""
    (node,) = system.nodes
    at_once = msgspec.structs.replace(node, waking_s=0.0)
    whole, without = (_bounds(msgspec.structs.replace(system, nodes=(one,))) for one in (node, at_once))
    costs = system.costs_of(node)
    found = {}
    for stream in system.streams:
        (reader,) = stream.subscribers
        costing = (costs.publish.ns(stream.bytes) + costs.deliver.ns(stream.bytes)) / NS
        computes = stream.compute_s + reader.compute_s
        behind = without[stream.tag] - costing - computes
        waits = (whole[stream.tag] - without[stream.tag]) / 2  # of two threads
        found[stream.tag] = Parts(waits, computes, behind, costing + waits)
    return found


def _bounds(system: System) -> dict[str, float]:
    return {one.tag: one.bound_s for one in judge(system).judged if one.kind == "subscriber"}

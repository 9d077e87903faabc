"""A stack's text as transports use it: what may not change while a channel runs (`Shape`), and what may. Pure.

The text is `stack.py`'s with two words more: `multicast` and `unordered` beside stages. Every recipe has the ordering
stage, unless it says `unordered`: then each message is put into the mirror as soon as it is whole. A stack that asks
again has nothing to gain from that, for it must not lose what it waits for, and refuses the word.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ringcast.errors import BadTransport, QosMismatch
from ringcast.transport.interface import Promises
from ringcast.transport.stack import BARE, ORDERING, Loss, parse

PATIENCE = "patience_ns"
UNORDERED = "unordered"
NativeLoss = tuple[float, float, float, float, float, int]
"""(rate, enter, leave, duplicate, overtake, seed)"""


class Shape(NamedTuple):
    stages: tuple[str, ...]
    multicast: bool

    @property
    def ordered(self) -> bool:
        return ORDERING in self.stages

    @property
    def pumped(self) -> bool:
        """Whether the publisher cannot send by itself, since it would have to wait for room."""
        return "ack" in self.stages

    @property
    def knows_peers(self) -> bool:
        return self.multicast or "lateral" in self.stages

    @property
    def codes(self) -> bool:
        """Whether repairs travel that are longer than the packets they repair."""
        return "lateral" in self.stages or "parity" in self.stages


class Recipe(NamedTuple):
    text: str
    shape: Shape
    tuning: dict[str, int]
    loss: Loss | None
    promises: Promises

    @property
    def patient(self) -> bool:
        """Whether it says itself how long a gap is waited for."""
        return PATIENCE in self.tuning

    def native_loss(self, salt: int) -> NativeLoss:
        """Each end of a channel loses by a seed of its own."""
        if self.loss is None:
            return 0.0, 0.0, 1.0, 0.0, 0.0, 0
        return (*self.loss.native(), self.loss.duplicate, self.loss.overtake, self.loss.seed + salt)


def read(text: str) -> Recipe:
    """Raises QosMismatch, which says what there is."""
    names, colon, settings = text.partition(":")
    words = names.split("+")
    stages = [word for word in words if word not in (BARE, UNORDERED)]
    try:
        stack = parse("+".join(stages or [BARE]) + colon + settings)
    except BadTransport as exc:
        remedy = "write it like 'nak', 'lateral+nak:r=4,c=3' or 'multicast+nak'"
        raise QosMismatch(f"transport {text!r}", exc.reason, remedy) from exc
    if BARE in words and "ack" in stages:
        remedy = "use 'ack', or 'multicast+nak'"
        raise QosMismatch(f"transport {text!r}", "ack waits for each receiver by itself", remedy)
    if UNORDERED in words:
        if words.count(UNORDERED) > 1 or ORDERING in stack.stages:
            remedy = f"leave {UNORDERED!r} out, or use 'lateral', 'parity' or 'multicast' with it"
            raise QosMismatch(f"transport {text!r}", "it orders, or asks again for what is lost", remedy)
        promises = Promises(reliable=False, ordered=False)
        return Recipe(text, Shape(stack.stages, BARE in words), stack.tuning, stack.loss, promises)
    ordered = stack.stages if ORDERING in stack.stages else (ORDERING, *stack.stages)
    promises = Promises(reliable=stack.promises.reliable, ordered=True)
    return Recipe(text, Shape(ordered, BARE in words), stack.tuning, stack.loss, promises)


@cache
def unordered(text: str) -> str:
    """The same transport without an order, where it can do without; otherwise itself. Pure text: 'lateral:r=4' becomes
    'lateral+unordered:r=4'."""
    names, colon, settings = text.partition(":")
    wanted = f"{names}+{UNORDERED}{colon}{settings}"
    try:
        read(wanted)
    except QosMismatch:
        return text
    return wanted

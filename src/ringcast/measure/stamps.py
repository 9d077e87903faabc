"""The way of one message as the LabMap paper's Figure 1 divides it: five times and what lies between. Pure.

All five are by the clock of the node that reads. Times of another node's clock were translated on arrival, so a part
that begins there and ends here is right to within that clock's bound, and may be less than 0 by no more than that.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ringcast.message import Message


class Stamps(NamedTuple):
    """UTC in nanoseconds. On the publisher's own node there is no t3 and no t4; a stream (tcp) has no t3."""

    change_ns: int
    """t1: the state changed, as the application said (`event_ns`)."""
    send_ns: int
    """t2: `send` was called (`sent_ns`)."""
    kernel_ns: int | None
    """t3: the reader's kernel took the datagram that completed it (SO_TIMESTAMPNS)."""
    mirror_ns: int | None
    """t4: it was in the mirror of the reader's node."""
    hand_ns: int
    """t5: the application had it (`received_ns`)."""

    @property
    def parts_ns(self) -> dict[str, int]:
        """What lies between one time and the next that is known, and `total`, t5 - t1."""
        named = {"change": self.change_ns, "send": self.send_ns, "kernel": self.kernel_ns, "mirror": self.mirror_ns}
        known = [(name, at) for name, at in named.items() if at is not None] + [("hand", self.hand_ns)]
        between = {f"{name}_to_{after}": until - at for (name, at), (after, until) in pairwise(known)}
        return {**between, "total": self.hand_ns - self.change_ns}


def stamps_of(message: Message[Any]) -> Stamps:
    return Stamps(
        message.event_ns, message.sent_ns, message.kernel_ns or None, message.arrived_ns or None, message.received_ns
    )

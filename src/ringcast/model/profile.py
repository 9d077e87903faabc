"""What a publisher offers or a subscriber asks for, as a value that travels. Files and matching are in `ringcast.qos`.

None of a time means: nothing is promised, or nothing is asked for. Pure.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Time = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
PriorityClass = Literal["low", "normal", "high", "critical"]


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Offered: a message at least every `period_s`, at most `latency_s` late, a sign of life within `lease_s`, the last
    `history` messages kept. Requested: the same, at least as good. `transport`, `priority`, `sched` and `bandwidth` are
    how a subscriber with this profile receives, unless it says otherwise."""

    name: Annotated[str, msgspec.Meta(max_length=255)] = ""
    reliable: bool = False
    ordered: bool = True
    period_s: Time | None = None
    latency_s: Time | None = None
    lease_s: Time | None = None
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32)] = 0
    transport: Annotated[str, msgspec.Meta(max_length=255)] = ""
    priority: PriorityClass = "normal"
    sched: Annotated[str, msgspec.Meta(max_length=255)] = ""
    """A schedule for the threads of the subscriber's channels, as "fifo:30" or "deadline:1ms/10ms"."""
    bandwidth: Annotated[str, msgspec.Meta(max_length=255)] = ""
    """What is kept of the link for each of its channels, as "5mbit"."""
    fidelity: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """How good a publisher's stream is among those of the same thing; the highest is the best. Nothing is compared."""

    @property
    def urgency(self) -> str:
        """Class, schedule and reservation as words (`ringcast.model.priority`); '' is as others."""
        level = self.priority if self.priority != "normal" else ""
        bandwidth = f"bandwidth:{self.bandwidth}" if self.bandwidth else ""
        return " ".join(filter(None, (level, self.sched, bandwidth)))

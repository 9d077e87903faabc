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
    `history` messages kept. Requested: the same, at least as good. `transport` and `priority` are how a subscriber with
    this profile receives, unless it says otherwise."""

    name: Annotated[str, msgspec.Meta(max_length=255)] = ""
    reliable: bool = False
    ordered: bool = True
    period_s: Time | None = None
    latency_s: Time | None = None
    lease_s: Time | None = None
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32)] = 0
    transport: Annotated[str, msgspec.Meta(max_length=255)] = ""
    priority: PriorityClass = "normal"
    fidelity: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """How good a publisher's stream is among those of the same thing; the highest is the best. Nothing is compared."""

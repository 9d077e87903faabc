"""What becomes of a session's connection to its daemon. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ConnectionChange:
    """`connected` when it is there at first, `lost` when the daemon went away, `back` when it was found again and knows
    everything that this session has open. `reason` says why it was lost."""

    state: Literal["connected", "lost", "back"]
    reason: str = ""

"""What a page may use. Pure: the time is an argument."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of a gateway. Defaults suit a few dozen pages on one machine."""

    pages: int = 64
    """Connections at once."""
    message_bytes: int = 4 * 1024 * 1024
    """The longest frame that a page may send; the connection ends when one is longer."""
    messages_per_s: float = 2000.0
    bytes_per_s: float = 32 * 1024 * 1024
    """How fast a page is read: faster ones wait in their own browser."""
    backlog_bytes: int = 2 * 1024 * 1024
    """What waits in the gateway for one page. A single longer message is let through when nothing else waits."""
    streams: int = 256
    """Publishers, subscriptions and watches of one page, each."""
    pulled_messages: int = 1000
    """What one pull may return; ask again for more."""
    linger_s: float = 10.0
    """How long all that a page holds is kept after its connection broke without a goodbye."""
    silent_s: float = 15.0
    """A connection that says nothing for so long is broken."""
    beat_s: float = 0.5
    """The gateway says that it is there so often."""

    def check(self) -> Limits:
        """Raises ValueError."""
        for name in self.__struct_fields__:
            if not getattr(self, name) > 0:
                raise ValueError(f"the limit {name} is more than 0, not {getattr(self, name)}")
        return self


class Allowance:
    """A token bucket that never refuses: it says how long to wait."""

    def __init__(self, per_s: float, burst_s: float = 1.0) -> None:
        self._per_s = per_s
        self._most = per_s * burst_s
        self._left = self._most
        self._at_s = 0.0

    def take(self, amount: float, now_s: float) -> float:
        """Use `amount`; returns for how many seconds nothing more should be taken, 0 when there is some left."""
        self._left = min(self._most, self._left + max(0.0, now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        self._left -= amount
        return max(0.0, -self._left / self._per_s)

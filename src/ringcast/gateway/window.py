"""How many messages of one stream may be on their way to a page before its application has taken them. Pure.

A browser reads its sockets whether or not the page keeps up, and so do the kernels in between: what they hold is
megabytes, and minutes of delay. Only the application's own word says how far it is. The window follows the delay
between sending and taking: it grows while that stays near the shortest seen, and halves when messages wait.
"""

from __future__ import annotations

from ringcast.errors import BadMessage
from ringcast.gateway.frames import WRAP

LEAST, FIRST, MOST = 2.0, 16.0, 1024.0
CALM_S, LATE_S = 0.1, 0.3
_FORGET = 0.02  # of the gap to a longer delay: a path that became longer is accepted after some dozens of messages


class Window:
    """Counts messages; the caller keeps the messages themselves."""

    def __init__(self) -> None:
        self.limit = FIRST
        self.in_flight = 0
        self._taken = 0
        self._shortest_s: float | None = None
        self._was_full = False
        self._calm_after_s = 0.0

    @property
    def is_open(self) -> bool:
        if self.in_flight < int(self.limit):
            return True
        self._was_full = True
        return False

    def sent(self) -> None:
        self.in_flight += 1

    def newly_taken(self, number_untrusted: int) -> int:
        """How many more were taken, by the page's running number. Raises BadMessage when it took what it never got."""
        more = (number_untrusted - self._taken) % WRAP
        if more > self.in_flight:
            raise BadMessage(f"{more} messages were taken, and {self.in_flight} are on their way")
        return more

    def took(self, more: int, delay_s: float, now_s: float) -> None:
        """`more` were taken; the last of them `delay_s` after it was sent."""
        self._taken = (self._taken + more) % WRAP
        self.in_flight -= more
        shortest = delay_s if self._shortest_s is None else self._shortest_s
        self._shortest_s = min(delay_s, shortest + _FORGET * (delay_s - shortest))
        if delay_s > shortest + LATE_S:
            if now_s >= self._calm_after_s:
                self.limit = max(LEAST, self.limit / 2)
                self._calm_after_s = now_s + delay_s  # what is under way was sent under the old limit
        elif delay_s < shortest + CALM_S and self._was_full:
            self.limit = min(MOST, self.limit + more)
        self._was_full = False

    def resume(self, received_untrusted: int) -> int:
        """A new connection: how many of those on their way never arrived. Raises BadMessage."""
        arrived = (received_untrusted - self._taken) % WRAP
        if arrived > self.in_flight:
            raise BadMessage(f"{arrived} messages arrived, and {self.in_flight} were on their way")
        never = self.in_flight - arrived
        self.in_flight = arrived
        self.limit = FIRST
        self._shortest_s = None
        return never

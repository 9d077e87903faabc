"""From the pump that sends a stream's history to the publisher that goes on by itself.

The pump follows the publisher until it is close behind. Then the publisher is told to begin with what the pump has not
sent yet, so that what the publisher sends is whole and in order by itself: a receiver that has later messages takes no
earlier ones. Only after that is it looked how far the stream is, which is where the pump stops: a publisher that sends
nothing more does not look whom to push to, and what it sent last is pumped. What both send, the mirror drops once.
Stopping the pump first would leave all that is sent meanwhile to the publisher, in one burst. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringcast import _core
    from ringcast.transport.interface import Source

NEVER = 2**64 - 1
CLOSE_BEHIND = 64
"""Messages that the pump may still have to send when the publisher is told to begin with them."""
MOST_RETURNS = 8
"""A publisher that gives the stream back more often has more to send than it may send at once. It begins with its next
message then; what the pump still has to send comes late to a receiver that has later ones already."""
MOST_TRIES = 100
"""A pump that does not come that close is slower than its publisher."""


class Handover:
    """`pump` makes one that starts at a number; `push_from` tells the publisher to push from a number on."""

    def __init__(self, source: Source, pump: Callable[[int], _core.Pump], push_from: Callable[[int], None]) -> None:
        self._source = source
        self._make = pump
        self._push_from = push_from
        self._tries = 0
        self._returns = 0
        self.pump: _core.Pump | None = None
        self.pushed = False

    def begin(self, first_seq: int) -> None:
        """Send the stream from that message on, by pump or by publisher."""
        if first_seq < self._source.next_seq:
            self.follow(first_seq)
        else:
            self.push(first_seq)

    def push(self, first_seq: int) -> None:
        """The publisher pushes; what it sent before it could have known is pumped."""
        self.pushed = True
        self._push_from(first_seq)
        if self.pump is not None:
            self.pump.stop_before(max(first_seq, self._source.next_seq))
        elif first_seq < self._source.next_seq:
            self.until(first_seq, self._source.next_seq)

    def follow(self, first_seq: int) -> None:
        """Pump from there on until further notice."""
        self.stop()
        self._tries = 0
        self.pushed = False
        self.pump = self._make(first_seq)

    def until(self, first_seq: int, end: int) -> None:
        self.stop()
        self.pump = self._make(first_seq)
        self.pump.stop_before(end)

    def behind(self, seq: int) -> None:
        """The publisher gave the stream back."""
        if not self.pushed:
            return
        self.pushed = False
        self._tries = 0
        self._returns += 1
        if self.pump is None:
            self.pump = self._make(seq)
        else:
            self.pump.stop_before(NEVER)

    def settle(self) -> None:
        """To be called regularly while there is a pump."""
        if self.pump is None:
            return
        state, reached = self.pump.state, self.pump.next_seq
        if self.pushed:
            if state != "running":
                self.stop()
        elif state == "done":  # it had come to its end when the publisher gave the stream back
            self.follow(reached)
        elif state == "running":
            self._tries += 1
            newest = self._source.next_seq
            if newest - reached <= CLOSE_BEHIND and self._returns < MOST_RETURNS:
                self.push(reached)
            elif newest - reached <= CLOSE_BEHIND or self._tries > MOST_TRIES:
                self.push(newest)

    @property
    def broken(self) -> bool:
        return self.pump is not None and self.pump.state == "broken"

    def stop(self) -> None:
        if self.pump is not None:
            self.pump.close()
            self.pump = None

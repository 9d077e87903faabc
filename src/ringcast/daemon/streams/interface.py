"""What an outgoing channel needs of the node it leaves from. Fakes in tests implement this and nothing more. Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ringcast.control.service import Start
from ringcast.daemon.rings.demand import StageSpec
from ringcast.daemon.rings.ring import Hold
from ringcast.transport import Source


class Wanted(NamedTuple):
    """The source that a channel reads."""

    incarnation: int
    transport: str
    reliable: bool
    spec: StageSpec | None
    priority: str


class HeldSource(Source, Protocol):
    @property
    def oldest_seq(self) -> int: ...
    @property
    def fresh_seq(self) -> int: ...
    @property
    def age_ns(self) -> int | None:
        """The publisher's age."""

    @property
    def ended(self) -> bool:
        """The ring was dropped; what a stage makes may be in another one by now."""

    def factor(self, every: int, rate_hz: float) -> int:
        """The n of "every n-th message" for a channel that reads it."""

    def changed_factor(self, every: int, rate_hz: float) -> bool:
        """Whether that n is different by now."""

    def keep_place(self) -> Hold | None:
        """Keep what reliable channels have not sent, though one of them ends. Raises RingcastError."""

    def take_over(self) -> None:
        """A reliable channel has a place of its own."""


class Sources(Protocol):
    """Where a channel gets its ring from on this node."""

    async def source(
        self, incarnation: int, transport: str, reliable: bool, spec: StageSpec | None = None, priority: str = "",
        start: Start = "new",
    ) -> HeldSource:  # fmt: skip
        """The ring of a publisher, or what a stage makes of it, to be sent on by that transport and as urgently.

        Raises PublisherGone, QosMismatch, BrokenError.
        """

    def release(
        self, incarnation: int, transport: str, reliable: bool, spec: StageSpec | None = None, priority: str = ""
    ) -> None:
        """One channel less reads it."""

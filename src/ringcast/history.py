"""A history: what the rings of a tag hold, read by index or by time. Pull: nothing is sent to a history.

`History` is the one interface, wherever the rings are. Rings of this node are read in place, without a message or a
system call (`ringcast.client.rings.local_history`); for rings of other nodes the daemon is asked
(`ringcast.client.remote_history`). Numbers are one publisher's: where several number their messages, the only one
alive is meant, and if there is no such one the caller has to say.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from ringcast.control.status import PublisherStatus
from ringcast.message import Message, T
from ringcast.model.identity import PublisherInfo
from ringcast.publisher import Publisher

if TYPE_CHECKING:
    from ringcast.tag import Tag

Whose = PublisherInfo | PublisherStatus | Publisher[Any] | int
"""Names a publisher: its info or status, itself, or its incarnation."""


def incarnation_of(whose: Whose) -> int:
    """The stream that `whose` names: a publisher, its info or status, or its incarnation. Raises TypeError."""
    if isinstance(whose, PublisherStatus):
        return whose.info.incarnation
    if isinstance(whose, PublisherInfo | Publisher):
        return whose.incarnation
    if isinstance(whose, int) and not isinstance(whose, bool):
        return whose
    raise TypeError(f"publisher is a PublisherInfo, PublisherStatus, Publisher or an incarnation, not {whose!r}")


@runtime_checkable
class History(Protocol[T]):
    """Made by `tag.history()`. `History[T]` has messages of type T. Use it from any thread, with `with` or `close`.

    Every pull raises Empty (nothing is held), HistoryError (it does not go back that far; several publishers number
    their messages), CorruptRing, DecodeError, ClosedError, ForkedError; and where rings of other nodes are read, or
    the daemon finds messages by time, BrokenError (a node is not there) and DaemonUnavailable.
    """

    @property
    def tag(self) -> Tag[object]: ...

    @property
    def closed(self) -> bool: ...

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Nodes with publishers of the tag that did not answer the last pull: they may hold something newer, or more.
        When nobody answered, the pull has raised. Empty where nobody has to be asked."""

    def latest(self, back: int = 0, copy: bool = True) -> Message[T]:
        """The newest message, or the one `back` before it, by send time over all publishers. With `copy=False`, data on
        this node may be a view of the ring: ask `msg.valid` after having used it."""

    def at(self, seq: int, *, copy: bool = True) -> Message[T]:
        """By sequence number. Raises also Overwritten, NotYet."""

    def range(self, first: int, last: int) -> list[Message[T]]:
        """Those still held, both ends included; `lost` of each counts the missing ones before it that were due."""

    def since(self, seq: int) -> list[Message[T]]:
        """Everything held from `seq` on; `lost` of the first says how many are gone."""

    def bounds(self) -> tuple[int, int]:
        """(oldest held, newest); (n, n - 1) when empty."""

    def before(self, sent_ns: int) -> Message[T]:
        """The newest message that had been sent at `sent_ns` (UTC), by its publisher's clock. Raises also TypeError,
        ValueError."""

    def between(self, first_ns: int, last_ns: int) -> list[Message[T]]:
        """Those held of all publishers that were sent from `first_ns` to `last_ns` (UTC), in the order of sending, by
        the clocks of their publishers' nodes. Raises also TypeError, ValueError."""

    def staleness_s(self) -> float:
        """How much older than what its publisher has now the newest message may be, at most: the publisher's period,
        which is the longest of the last 16 gaps between its messages, and on other nodes the delay of the pull.
        Infinite when the publisher has left or has sent less than two messages."""

    def close(self) -> None:
        """Let go of the rings, or of the buffer that is held elsewhere. A second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

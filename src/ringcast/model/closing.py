"""Things that are closed, by hand or by a `with` block. Pure."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self


class HasClose(Protocol):
    def close(self) -> None:
        """Closing twice is closing once."""


class Closing:
    """Leaving the `with` block closes it. No abstract class: native classes have a metaclass of their own."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self: HasClose, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Things that are made of others, opened one after the other by a `with` block. Invariant: what was opened is closed,
the last first, also when opening the next one failed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self


class Opened:
    """`_stack` holds what is open; more may be put there."""

    _stack: ExitStack

    def _open(self, stack: ExitStack) -> None:
        """Enter all that it consists of into `stack`."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

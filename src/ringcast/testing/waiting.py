"""Waiting in tests for what there is no event for, such as a daemon's having noticed something.

Patience only keeps a failing test from hanging: no test depends on how fast anything is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringcast.errors import WouldBlock

if TYPE_CHECKING:
    from ringcast import _core
    from ringcast.message import Message

PATIENCE_S = 30.0
_POLL_S = 0.005


def wait_until(condition: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Ask again and again until the condition holds. Raises AssertionError when it does not within `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come true within {patience_s:g} s")
        time.sleep(_POLL_S)


async def wait_until_async(condition: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """The same without blocking the event loop. Raises TimeoutError."""
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(_POLL_S)


def drained(reader: _core.RingReader) -> list[Message]:
    """Everything that a subscriber or reader has by now."""
    found: list[Message] = []
    while True:
        try:
            found.append(reader.recv_nowait())
        except WouldBlock:
            return found

"""How a verb ends when it is told to: by Ctrl-C (SIGINT), or by SIGTERM as a service manager sends it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: with KeyboardInterrupt, so that everything is cleared away."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def on_end(stop: Callable[[], None]) -> None:
    """From now on both signals call `stop`, and the verb ends by itself."""

    def end(*_: object) -> None:
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

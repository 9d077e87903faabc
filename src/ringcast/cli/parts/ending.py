"""How a verb ends when it is told to: by Ctrl-C (SIGINT), or by SIGTERM as a service manager sends it."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator

AGAIN_S = 0.01


@contextlib.contextmanager
def terminable(error: Callable[[], BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: with KeyboardInterrupt, or this error, so that everything is cleared away.

    Python swallows what is raised while an object is finalised, so a signal that comes in that moment would be lost:
    it is raised again a moment later.
    """

    def interrupt(*_: object) -> None:
        raise error()

    def swallowed(what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt | SystemExit):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, swallowed
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def on_end(stop: Callable[[], None]) -> None:
    """From now on both signals call `stop`, and the verb ends by itself."""

    def end(*_: object) -> None:
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

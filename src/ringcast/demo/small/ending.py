"""How a process of the demo learns that it is over: its standard input ends, even if whoever started it was killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator


class Ending:
    """`then` runs on a thread of its own when the end comes."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._then: Callable[[], None] = lambda: None
        threading.Thread(target=self._listen, name="end of input", daemon=True).start()

    def then(self, action: Callable[[], None]) -> None:
        self._then = action
        if self._over.is_set():
            action()

    def wait(self) -> None:
        self._over.wait()

    def ticks(self, rate_hz: float) -> Iterator[int]:
        """0, 1, 2, ... at that rate until the end. By the clock and not by adding pauses, or the error would add up."""
        begin = time.monotonic()
        number = 0
        while not self._over.wait(max(0.0, begin + number / rate_hz - time.monotonic())):
            yield number
            number += 1

    def _listen(self) -> None:
        # Not sys.stdin: at exit the interpreter would wait for the lock that a thread reading it holds, and abort.
        while os.read(0, 4096):
            pass
        self._over.set()
        self._then()

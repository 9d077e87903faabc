"""What a service manager is told: that the daemon is ready, reloading, stopping, and that its loop goes round.

The protocol is one datagram of `NAME=value` lines to the Unix socket in NOTIFY_SOCKET (sd_notify(3)). Invariant:
without NOTIFY_SOCKET nothing happens, and nothing here ever blocks or fails the daemon.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping


class Notifier:
    """Tells the manager named in `environment`, if there is one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog: asyncio.TimerHandle | None = None
        self.watchdog_s = _watchdog_s(environment) if address else None
        """After how much silence the manager kills a daemon; None when it does not watch."""

    def ready(self, status: str) -> None:
        self._tell(f"READY=1\nMAINPID={os.getpid()}\nSTATUS={status}")
        if self.watchdog_s is not None and self._watchdog is None:
            self._feed()

    def reloading(self) -> None:
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")
        # Goodbyes to other nodes take their time; the manager has a limit of its own for that (TimeoutStopSec).
        self.close()

    def close(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    def _feed(self) -> None:
        """From the event loop: a loop that hangs is a daemon that hangs."""
        assert self.watchdog_s is not None
        self._tell("WATCHDOG=1")
        self._watchdog = asyncio.get_running_loop().call_later(self.watchdog_s / 2, self._feed)

    def _tell(self, words: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as sock:
                sock.sendto(words.encode(), self._address)
        except OSError:  # the manager is not there any more, or does not read
            pass


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    limit = environment.get("WATCHDOG_USEC", "")
    return int(limit) / 1e6 if limit.isdigit() and int(limit) > 0 else None

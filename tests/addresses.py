"""Addresses of this host for daemons that tests start."""

from __future__ import annotations

import contextlib
import random
import socket

_ports = random.SystemRandom()  # several processes of tests run beside each other


def free_addresses(number: int) -> list[str]:
    """Addresses that nobody listens on. Their ports are below those that the kernel gives to whoever asks for any, so
    nobody takes one before a daemon listens there."""
    found: list[str] = []
    with contextlib.ExitStack() as probes:
        while len(found) < number:
            port = _ports.randrange(10_000, 32_000)
            with contextlib.suppress(OSError):  # taken
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(f"127.0.0.1:{port}")
    return found

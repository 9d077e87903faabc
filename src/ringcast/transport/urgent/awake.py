"""Processors that stay awake while channels have a schedule.

A core that fell asleep runs its next thread tens of microseconds later, one of a virtual machine a hundred or more:
longer than all that a schedule saves. Linux takes requests against that: while a process holds `/dev/cpu_dma_latency`
open with a number of microseconds in it, no core falls into a sleep that takes longer to end. With 0 none sleeps.

Invariant: the request is there while somebody holds it and not longer, whichever threads hold and release; the kernel
drops it when the process dies.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEVICE = Path("/dev/cpu_dma_latency")
_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")
_VALUE = struct.Struct("=i")
ANY_US = -1
"""Cores may sleep as they like."""
SHALLOW_US = 3
"""A processor of its own wakes so soon from its lightest sleep."""


class Awake:
    """`latency_us` is how late a core may wake, ANY_US for any; None lets the machine decide (`usual_us`)."""

    def __init__(self, device: Path = DEVICE, driver: Path = _DRIVER) -> None:
        self.latency_us: int | None = None
        self._device = device
        self._driver = driver
        self._held = 0
        self._request = -1
        self._turn = threading.Lock()
        self.refused = ""
        """Why cores may fall asleep although somebody holds them awake."""

    def hold(self) -> None:
        """Until `release`, as often as it is called."""
        with self._turn:
            self._held += 1
            wanted = self.usual_us() if self.latency_us is None else self.latency_us
            if self._request < 0 and wanted != ANY_US:
                self._ask(wanted)

    def _ask(self, wanted: int) -> None:
        try:
            self._request = os.open(self._device, os.O_RDWR | os.O_CLOEXEC)
            os.write(self._request, _VALUE.pack(wanted))
            self.refused = ""
        except OSError as exc:
            self._drop()
            self.refused = f"{self._device}: {exc.strerror}"

    def release(self) -> None:
        with self._turn:
            self._held = max(0, self._held - 1)
            if not self._held:
                self._drop()

    @contextmanager
    def held(self) -> Iterator[None]:
        self.hold()
        try:
            yield
        finally:
            self.release()

    def in_force(self) -> int | None:
        """What the kernel has, the strictest of all processes' requests; None while this one has none."""
        with self._turn:
            if self._request < 0:
                return None
            try:
                return int(_VALUE.unpack(os.pread(self._request, _VALUE.size, 0))[0])
            except (OSError, struct.error):
                return None

    def usual_us(self) -> int:
        """In a virtual machine the lightest sleep is a way to the hypervisor and back, whatever its driver says."""
        try:
            return 0 if self._driver.read_text().strip() == "haltpoll" else SHALLOW_US
        except OSError:
            return SHALLOW_US

    def _drop(self) -> None:
        if self._request >= 0:
            os.close(self._request)
        self._request = -1


AWAKE = Awake()
"""Of this process."""

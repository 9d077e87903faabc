"""What set-up says while it works: a line per step and per large package, and at a step's end its size and time."""

from __future__ import annotations

import re
import time

_TAKEN = re.compile(r"(?:Downloading|Using cached) (?P<what>\S+) \((?P<size>[\d.]+) (?P<unit>[kMG]?B)\)")
_BUILDING = re.compile(r"Building wheel for (?P<what>\S+) .*: started")
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SHOWN_BYTES = 5_000_000
"""Smaller packages are counted, not named."""


class Progress:
    def __init__(self, steps: int) -> None:
        self._steps, self._at, self._begin, self._bytes = steps, 0, 0.0, 0

    def begin(self, what: str) -> None:
        self.end()
        self._at += 1
        print(f"set-up {self._at}/{self._steps}: {what}", flush=True)
        self._begin, self._bytes = time.monotonic(), 0

    def hear(self, line: str) -> None:
        """A line that pip printed."""
        if taken := package(line):
            name, size = taken
            self._bytes += size
            if size >= _SHOWN_BYTES:
                _say(f"{name}, {size / 1e6:.0f} MB")
        elif building := _BUILDING.search(line):
            _say(f"building {building['what']}")
        elif line.startswith("Installing collected packages:"):
            _say(f"installing {line.count(',') + 1} packages")

    def end(self) -> None:
        took = time.monotonic() - self._begin
        if self._at and took >= 1:
            _say(f"{self._bytes / 1e6:.0f} MB in {took:.0f} s" if self._bytes else f"{took:.0f} s")


def package(line: str) -> tuple[str, int] | None:
    """Name and size of the file that pip says it takes; None for other lines. Pure."""
    found = _TAKEN.search(line)
    if found is None or found["what"].endswith(".metadata"):
        return None
    return found["what"].rpartition("/")[2], int(float(found["size"]) * _UNITS[found["unit"]])


def _say(words: str) -> None:
    print(f"    {words}", flush=True)

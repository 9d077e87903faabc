"""Quantities as people write and read them: sizes, rates, durations. Pure, both ways.

Reading raises argparse.ArgumentTypeError, so that every function here can be the `type` of an option and a bad number
becomes a sentence before anything is connected to.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TypeVar

_Number = TypeVar("_Number", int, float)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size(text: str) -> int:
    """`512`, `64K`, `4MiB` in bytes."""
    found = _SIZE.fullmatch(text.strip())
    value = int(float(found[1]) * 1024 ** _POWERS[found[2].upper()]) if found else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 4096, 64K or 4M")
    return value


def count(text: str) -> int:
    """A whole number from 1."""
    return _checked(text, _whole(text), lambda value: value >= 1, "a whole number from 1 on")


def index(text: str) -> int:
    """A whole number from 0."""
    return _checked(text, _whole(text), lambda value: value >= 0, "a whole number from 0 on")


def positive(text: str) -> float:
    """A number above 0: seconds, or a rate in Hz."""
    return _checked(text, _real(text), lambda value: value > 0, "a number above 0")


def not_negative(text: str) -> float:
    """A number from 0."""
    return _checked(text, _real(text), lambda value: value >= 0, "a number from 0 on")


def _checked(text: str, value: _Number, fits: Callable[[_Number], bool], what: str) -> _Number:
    if not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def _whole(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        return -1
    return value if value < 1 << 63 else -1


def _real(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if value <= 1e9 else -1.0  # neither infinity nor NaN, and no timeout that the kernel refuses


def show_bytes(number: float) -> str:
    """`512 B`, `4.0 KiB`, `1.5 MiB`."""
    if number < 1024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1024
        if number < 1023.95:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} TiB"


def show_hz(rate: float | None) -> str:
    """`0.50 Hz`, `29.97 Hz`, `1.000 kHz`; a dash when it is not known."""
    if rate is None:
        return "-"
    if rate >= 999_995:
        return f"{rate / 1e6:.3f} MHz"
    if rate >= 999.995:
        return f"{rate / 1e3:.3f} kHz"
    return f"{rate:.2f} Hz" if rate else "0 Hz"


def show_ns(duration: float | None) -> str:
    """`850 ns`, `53.1 us`, `1.20 ms`, `3.5 s`, `2 min 5 s`, `1 h 4 min`; a dash when it is not known."""
    if duration is None:
        return "-"
    sign, duration = ("-", -duration) if duration < 0 else ("", duration)
    if duration < 1000:
        return f"{sign}{duration:.0f} ns"
    if duration < 999_950:
        return f"{sign}{duration / 1e3:.1f} us"
    if duration < 999_995_000:
        return f"{sign}{duration / 1e6:.2f} ms"
    seconds = duration / 1e9
    if seconds < 99.95:
        return f"{sign}{seconds:.1f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{sign}{minutes} min {seconds % 60:.0f} s"
    hours = minutes // 60
    return f"{sign}{hours} h {minutes % 60} min" if hours < 48 else f"{sign}{hours // 24} d {hours % 24} h"


def show_signed_ns(duration: float) -> str:
    """As `show_ns`, with a sign before what is more than nothing too."""
    return f"+{show_ns(duration)}" if duration > 0 else show_ns(duration)


def show_age(then_ns: int, now_ns: int) -> str:
    """How long ago; a dash for never (0)."""
    return show_ns(max(0, now_ns - then_ns)) if then_ns else "-"

"""Rates of links as text and as bits per second: `500kbit`, `5mbit`, `2.5gbit`. Pure values."""

from __future__ import annotations

import re

LEAST_BPS, MOST_BPS = 8_000, 1_000_000_000_000
"""Below the least, one packet takes longer than a second."""
EXPECTED = "a bandwidth as '500kbit', '5mbit' or '1gbit'"
_UNITS = {"bit": 1, "kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?bit)(?:/s)?", re.IGNORECASE)


def read(text: str) -> int:
    """Bits per second. Raises ValueError, which says what was expected."""
    found = _RATE.fullmatch(text.strip()) if isinstance(text, str) else None
    value = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not LEAST_BPS <= value <= MOST_BPS:
        raise ValueError(f"{EXPECTED}, from {show(LEAST_BPS)} to {show(MOST_BPS)}; not {text!r}")
    return value


def show(bps: int) -> str:
    """The shortest text that `read` reads as the same."""
    unit = next(unit for unit in ("gbit", "mbit", "kbit", "bit") if bps % _UNITS[unit] == 0)
    return f"{bps // _UNITS[unit]}{unit}"

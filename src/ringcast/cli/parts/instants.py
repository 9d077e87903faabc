"""Points in time as people write them on a command line: a date, a time of today, an age, or nanoseconds.

Reading raises argparse.ArgumentTypeError, so that these functions can be the `type` of an option. A date or time
without a zone is UTC, as everything that Ringcast prints.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import time

HOW = "write it as 2026-05-01T10:00, 10:00:30 (today), 5s, 2min, 1h or 3d (ago), or nanoseconds since 1970; UTC"
"""How to write one, for errors and help."""

_AGO = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|s|min|h|d)")
_UNIT_NS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_NANOSECONDS = re.compile(r"\d{10,19}")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def instant(text: str) -> dt.datetime:
    """A date and time: `2026-05-01T10:00`, `2026-05-01T12:00+02:00`."""
    try:
        value = dt.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it as 2026-05-01T10:00") from None
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def instant_ns(text: str) -> int:
    """Any of the ways in `HOW`, in nanoseconds since 1970."""
    now_ns = time.time_ns()
    if ago := _AGO.fullmatch(text):
        value = now_ns - round(float(ago[1]) * _UNIT_NS[ago[2]])
    elif _NANOSECONDS.fullmatch(text):
        value = int(text)
    else:
        value = _written_ns(text, now_ns)
    if not 0 <= value < 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970 or too far away; {HOW}")
    return value


def _written_ns(text: str, now_ns: int) -> int:
    try:
        if "-" in text:
            moment = instant(text)
        else:
            today = (_EPOCH + dt.timedelta(seconds=now_ns // 10**9)).date()
            moment = instant(f"{today}T{text}")
    except (argparse.ArgumentTypeError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; {HOW}") from None
    return (moment - _EPOCH) // dt.timedelta(microseconds=1) * 1000

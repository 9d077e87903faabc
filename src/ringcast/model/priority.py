"""How urgent a channel is, as words: a class, a code point for its packets, a schedule for its threads, and a bandwidth
that is reserved for it. Pure values.

The words stand in any order, parted by blanks: `high`, `AF42 fifo:30`, `critical deadline:1ms/10ms bandwidth:5mbit`.
Classes are those of paper 003, Table 1: a switch treats packets by their DSCP, Linux puts them into a band of its queue
by the socket's priority. Invariant: `settled` gives equal urgencies equal texts, so that channels can be compared by
them; '' is a channel without any.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ringcast.model import schedule

LOW, NORMAL, HIGH, CRITICAL = "low", "normal", "high", "critical"
CLASSES = (LOW, NORMAL, HIGH, CRITICAL)
Level = Literal["low", "normal", "high", "critical"]
MAX_CHARS = 128
MAX_DSCP = 63


class Marking(NamedTuple):
    """What the kernel is told of a socket's packets: their code point, and the socket's priority (`SO_PRIORITY`), which
    chooses the queue's band. Above 6 that needs CAP_NET_ADMIN."""

    dscp: int = 0
    queue: int = 0


_BULK, _BEST_EFFORT, _INTERACTIVE = 2, 0, 6
"""Priorities that pfifo_fast puts into its bands 2, 1 and 0."""
TABLE = {
    LOW: Marking(10, _BULK),
    NORMAL: Marking(0, _BEST_EFFORT),
    HIGH: Marking(36, _INTERACTIVE),
    CRITICAL: Marking(44, _INTERACTIVE),
}
BAND = {_BULK: 2, _BEST_EFFORT: 1, _INTERACTIVE: 0}

CODE_POINTS = (
    {f"CS{n}": n << 3 for n in range(8)}
    | {f"AF{n}{m}": (n << 3) | (m << 1) for n in range(1, 5) for m in range(1, 4)}
    | {"DEFAULT": 0, "LE": 1, "VA": 44, "EF": 46}
)
_NAMES = {value: name for name, value in CODE_POINTS.items() if name != "DEFAULT"}
LEAST_BPS, MOST_BPS = 8_000, 1_000_000_000_000
"""Below the least, one packet takes longer than a second."""
RATE = "a bandwidth as '500kbit', '5mbit' or '1gbit'"
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?bit)(?:/s)?", re.IGNORECASE)
_UNITS = {"bit": 1, "kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
_BANDWIDTH = "bandwidth"
EXPECTED = (
    "some of a class (low, normal, high, critical), a DSCP (AF42, EF, CS6, 0 to 63), a schedule (fifo:30) and "
    "bandwidth:5mbit"
)


class Priority(NamedTuple):
    """Each as text; '' leaves it to whoever is asked next."""

    level: str = ""
    dscp: str = ""
    sched: str = ""
    bandwidth: str = ""

    @property
    def text(self) -> str:
        reserved = f"{_BANDWIDTH}:{self.bandwidth}" if self.bandwidth else ""
        return " ".join(word for word in (self.level, self.dscp, self.sched, reserved) if word)

    @property
    def bandwidth_bps(self) -> int:
        """Of the link, what is reserved; 0 is nothing."""
        return rate_bps(self.bandwidth) if self.bandwidth else 0

    @property
    def marking(self) -> Marking:
        if not self.dscp:
            return TABLE[self.level or NORMAL]
        code = code_point(self.dscp)
        return Marking(code, TABLE[self.level].queue if self.level else _queue_of(code))

    @property
    def schedule(self) -> schedule.Schedule:
        return schedule.read(self.sched or schedule.OTHER)

    @property
    def apart(self) -> bool:
        """Whether it is received apart from others: with a schedule, or above the normal class."""
        return bool(self.sched) or self.marking.queue == _INTERACTIVE

    @property
    def order(self) -> tuple[tuple[int, int], int, int]:
        """The larger is served first."""
        marking = self.marking
        return self.schedule.rank, -BAND.get(marking.queue, 0), marking.dscp


class Change(NamedTuple):
    """What is to be different: None leaves a part as it is, '' takes it back."""

    level: str | None = None
    dscp: str | None = None
    sched: str | None = None
    bandwidth: str | None = None

    def __bool__(self) -> bool:
        return any(part is not None for part in self)

    def check(self) -> Change:
        """The same in its one spelling. Raises ValueError, which names the part that is wrong."""
        return Change(
            self.level if not self.level else check_class(self.level),
            self.dscp if not self.dscp else name_of(code_point(self.dscp)),
            self.sched if not self.sched else schedule.read(self.sched).text,
            self.bandwidth if not self.bandwidth else show_rate(rate_bps(self.bandwidth)),
        )

    def applied(self, to: str) -> str:
        """The words with the change. Raises ValueError."""
        if not self:
            return to
        known, new = read(to), self.check()
        return Priority(*(old if part is None else part for old, part in zip(known, new, strict=True))).text


def read(text: str) -> Priority:
    """Raises ValueError, which says what was expected."""
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        raise ValueError(f"a priority is {EXPECTED}")
    found: dict[str, str] = {}
    for word in text.split():
        kind, value = _word(word)
        if kind in found:
            raise ValueError(f"priority {text!r} says two things of one kind: {found[kind]!r} and {value!r}")
        found[kind] = value
    return Priority(**found)


@lru_cache(maxsize=1024)
def settled_parts(asked: tuple[str, ...]) -> str:
    """Of each kind the first word that somebody said. Raises ValueError."""
    said = [read(text) for text in asked if text]
    return Priority(*(next(filter(None, parts), "") for parts in zip(*said, strict=True))).text


@lru_cache(maxsize=1024)
def settled(asked: tuple[str, ...]) -> str:
    """What comes of several who ask, the first word of each kind; equal urgencies have equal texts. Raises
    ValueError."""
    level, dscp, sched, reserved = read(settled_parts(asked))
    level = "" if level == NORMAL and not dscp else level
    if dscp and code_point(dscp) == TABLE[level or NORMAL].dscp:
        dscp = ""
    level = "" if level == NORMAL and not dscp else level
    return Priority(level, dscp, "" if sched == schedule.OTHER else sched, reserved).text


def check_class(name: str) -> str:
    """Raises ValueError."""
    if isinstance(name, str) and name.lower() in CLASSES:
        return name.lower()
    raise ValueError(f"the classes are {', '.join(CLASSES)}; there is no {name!r}")


def code_point(text: str | int) -> int:
    """The number of a DSCP by name or as digits. Raises ValueError."""
    name = str(text).upper()
    if name in CODE_POINTS:
        return CODE_POINTS[name]
    if name.isdecimal() and int(name) <= MAX_DSCP:
        return int(name)
    raise ValueError(f"a DSCP is a number from 0 to {MAX_DSCP}, or CS0 to CS7, AF11 to AF43, EF, VA, LE; not {text!r}")


def name_of(code: int) -> str:
    """The DSCP's name, or its digits."""
    return _NAMES.get(code, str(code))


def rate_bps(text: str) -> int:
    """Bits per second of a bandwidth. Raises ValueError, which says what was expected."""
    found = _RATE.fullmatch(text.strip()) if isinstance(text, str) else None
    value = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not LEAST_BPS <= value <= MOST_BPS:
        raise ValueError(f"{RATE}, from {show_rate(LEAST_BPS)} to {show_rate(MOST_BPS)}; not {text!r}")
    return value


def show_rate(bps: int) -> str:
    """The shortest text that `rate_bps` reads as the same."""
    unit = next(unit for unit in ("gbit", "mbit", "kbit", "bit") if bps % _UNITS[unit] == 0)
    return f"{bps // _UNITS[unit]}{unit}"


def _word(word: str) -> tuple[str, str]:
    if word.lower() in CLASSES:
        return "level", word.lower()
    if word.lower().partition(":")[0] in schedule.POLICIES:
        return "sched", schedule.read(word).text
    if word.lower().startswith(f"{_BANDWIDTH}:"):
        return _BANDWIDTH, show_rate(rate_bps(word.partition(":")[2]))
    try:
        return "dscp", name_of(code_point(word))
    except ValueError as exc:
        raise ValueError(f"{word!r} is no priority; it is {EXPECTED}") from exc


def _queue_of(code: int) -> int:
    """The band that a switch which honours DSCP would choose: class selectors 4 and above are urgent, 1 is bulk."""
    selector = code >> 3
    return _INTERACTIVE if selector >= 4 else _BULK if selector == 1 or code == 1 else _BEST_EFFORT

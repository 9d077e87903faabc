"""Every table and figure of the five papers, and where in our experiments its like is found (`entries.toml`)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

PAPERS = {
    "000": "Push-pull: real-time push-pull communications for distributed systems",
    "001": "Push-pull with quality of service: where proxies belong",
    "002": "LabMap: a middleware for measuring and control",
    "003": "YARP: priorities of channels",
    "004": "ADAMANT: transports for search and rescue",
}


NUMBERED = {"000": (3, 18), "001": (4, 12), "002": (2, 7), "003": (1, 5), "004": (3, 22)}
"""How many tables and figures each paper has, counted in the papers."""

BEYOND = {
    "adaptation": "A transport that chooses itself (the future work of paper 004)",
    "bounds": "Measured delays beside computed bounds",
    "security": "Sealed streams, attacked; and what seals cost",
}
"""Experiments that are no table and no figure of a paper."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    paper: str
    label: str
    title: str
    statement: str
    experiment: str = ""
    rows: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    instead: str = ""
    only_full: str = ""
    """What of it the quick form leaves out."""

    @property
    def key(self) -> str:
        return f"{self.paper}-{self.label}".lower().replace(" ", "-")


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why rows of an experiment may be missed (`reasons.toml`)."""

    experiment: str
    rows: tuple[str, ...]
    why: str


@cache
def entries() -> tuple[Entry, ...]:
    data = tomllib.loads(Path(__file__).with_name("entries.toml").read_text())
    return msgspec.convert(data["entry"], tuple[Entry, ...])


@cache
def reasons() -> tuple[Reason, ...]:
    data = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text())
    return msgspec.convert(data["reason"], tuple[Reason, ...])


def why_missed(experiment: str, row: str) -> str:
    """What is known of it; '' where nothing is."""
    found = (one.why for one in reasons() if one.experiment == experiment and matches(row, one.rows))
    return next(found, "")


def matches(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a row, a table or a picture belongs to what is wanted: it begins so; * stands for anything."""
    return any(_pattern(one).match(name) for one in wanted)


@cache
def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, wanted.split("*"))), re.IGNORECASE | re.DOTALL)

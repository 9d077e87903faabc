"""One line of `ringcast doctor`. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["ok", "limited", "missing"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`limited` works with less; `missing` does not work. `needed`: without it Ringcast does not run here.

    Whatever is not ok has a remedy: one sentence that says what is lost and how to get it.
    """

    name: str
    state: State
    value: str
    remedy: str = ""
    needed: bool = False

    def __post_init__(self) -> None:
        if (self.state == "ok") == bool(self.remedy):
            raise ValueError(f"{self.name}: a remedy is for what is not ok, and only for that")


def ok(name: str, value: str, needed: bool = False) -> Finding:
    return Finding(name=name, state="ok", value=value, needed=needed)


def limited(name: str, value: str, remedy: str) -> Finding:
    return Finding(name=name, state="limited", value=value, remedy=remedy)


def missing(name: str, value: str, remedy: str, needed: bool = False) -> Finding:
    return Finding(name=name, state="missing", value=value, remedy=remedy, needed=needed)


def healthy(findings: list[Finding]) -> bool:
    """Nothing that is needed is missing."""
    return not any(finding.needed and finding.state == "missing" for finding in findings)

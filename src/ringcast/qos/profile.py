"""Profiles by name: those that every node knows, and those of a file. Pure."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ringcast.errors import BadConfiguration
from ringcast.model import priority
from ringcast.model.profile import Profile
from ringcast.model.toml_lines import line_of, line_of_error, lines_of


@cache
def built_in() -> dict[str, Profile]:
    text = resources.files("ringcast.qos").joinpath("profiles.toml").read_text(encoding="utf-8")
    return read(text, "the built-in profiles")


def read(text: str, path: str) -> dict[str, Profile]:
    """Every table of the file is a profile. Raises BadConfiguration, with the line."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line, reason = line_of_error(exc, text)
        raise BadConfiguration(path, line, f"this is not TOML: {reason[:1].lower()}{reason[1:]}") from exc
    lines = lines_of(text)
    return {name: _profile(name, table, path, lines) for name, table in parsed.items()}


def find(profile: str | Profile, known: dict[str, Profile]) -> Profile:
    """Raises ValueError."""
    if isinstance(profile, Profile):
        return profile
    if profile in known:
        return known[profile]
    close = difflib.get_close_matches(profile, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}"
    raise ValueError(f"there is no profile {profile!r}; {hint}")


def _profile(name: str, table: Any, path: str, lines: dict[tuple[str | int, ...], int]) -> Profile:
    if not isinstance(table, dict):
        raise BadConfiguration(path, line_of(lines, (name,)), f"{name} is not a table; a profile is [{name}]")
    for field in table:
        if field not in Profile.__struct_fields__ or field == "name":
            close = difflib.get_close_matches(field, Profile.__struct_fields__, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(Profile.__struct_fields__[1:])}"
            raise BadConfiguration(path, line_of(lines, (name, field)), f"a profile has no {field!r}; {hint}")
        try:
            msgspec.convert({field: table[field]}, Profile)
        except msgspec.ValidationError as exc:
            words = str(exc).partition(" - at")[0]
            reason = f"{name}.{field}: {words[:1].lower()}{words[1:]}"
            raise BadConfiguration(path, line_of(lines, (name, field)), reason) from exc
    made = msgspec.convert({**table, "name": name}, Profile)
    for field, words in (("sched", made.sched), ("bandwidth", made.bandwidth and f"bandwidth:{made.bandwidth}")):
        try:
            priority.read(words)
        except ValueError as exc:
            raise BadConfiguration(path, line_of(lines, (name, field)), f"{name}.{field}: {exc}") from exc
    return made

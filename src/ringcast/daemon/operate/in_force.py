"""A daemon's settings as they are in force, and where each came from. Pure.

Of four who may give a value the first counts: a flag, the environment, the file, the default. Invariant: every key has
a value and an origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict

from ringcast.control.status import SettingStatus
from ringcast.daemon.operate.configuration import KEYS, File, Rule
from ringcast.security.rules import Rule as AccessRule

SOCKET_VARIABLE = "RINGCAST_SOCKET"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`config` is the file that was read, or ''."""

    values: dict[str, Any]
    origins: dict[str, str]
    file: File | None = None

    @property
    def config(self) -> str:
        return self.file.path if self.file is not None else ""

    @property
    def name(self) -> str:
        return str(self.values["name"])

    @property
    def mesh(self) -> str:
        return str(self.values["mesh"])

    @property
    def tags(self) -> dict[str, dict[str, Any]]:
        return dict(self.values["tags"])

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self.values["transports"])


def resolve(
    defaults: Mapping[str, Any], file: File | None, environment: Mapping[str, Any], flags: Mapping[str, Any]
) -> Settings:
    """`defaults` has every key; in the others, None means absent. A flag's name is its key's."""
    values = dict(defaults)
    origins = dict.fromkeys(KEYS, "default")
    if file is not None:
        for key, value in file.values.items():
            values[key], origins[key] = value, file.place(*key.split("."))
    for given, said in ((environment, "environment"), (flags, "flag")):
        for key, value in given.items():
            if value is not None:
                values[key], origins[key] = value, said
    return Settings(values=values, origins=origins, file=file)


def rows(settings: Settings) -> list[SettingStatus]:
    """As `ringcast config show` lists them: tags and rules each by itself."""
    found = []
    for key in KEYS:
        value, origin = settings.values[key], settings.origins[key]
        if key == "tags" and value:
            found += [
                SettingStatus(key=f'tags."{tag}"', value=_shown(held), origin=_place(settings, "tags", tag))
                for tag, held in value.items()
            ]
        elif key == "transports" and value:
            found += [
                SettingStatus(
                    key=f"transports[{number}]",
                    value=_shown(_said(rule)),
                    origin=_place(settings, "transports", number),
                )
                for number, rule in enumerate(value)
            ]
        elif key == "rules" and value:
            found += [
                SettingStatus(key=f"rules[{number}]", value=_shown(_rule(rule)), origin=_place(settings, key, number))
                for number, rule in enumerate(value)
            ]
        else:
            found.append(SettingStatus(key=key, value=_shown(value), origin=origin))
    return found


def changed(old: Settings, new: Settings) -> tuple[list[str], list[str]]:
    """The keys whose values differ: those that a running daemon can take over, and those that it cannot."""
    differing = [key for key in KEYS if old.values[key] != new.values[key]]
    return [key for key in differing if KEYS[key].live], [key for key in differing if not KEYS[key].live]


def taken_over(old: Settings, new: Settings) -> Settings:
    """The new settings, as far as a running daemon can have them; the rest stays as it was."""
    kept = [key for key in KEYS if not KEYS[key].live and old.values[key] != new.values[key]]
    return Settings(
        values=new.values | {key: old.values[key] for key in kept},
        origins=new.origins | {key: old.origins[key] for key in kept},
        file=new.file,
    )


def _place(settings: Settings, *path: str | int) -> str:
    return settings.file.place(*path) if settings.file is not None else settings.origins[str(path[0])]


def _said(rule: Rule) -> dict[str, str]:
    return {name: held for name, held in msgspec.structs.asdict(rule).items() if held}


def _rule(rule: AccessRule) -> dict[str, object]:
    """As it was written, but for names of users and groups, which are numbers by now."""
    held = {key.removesuffix("s") if key != "tags" else key: value for key, value in asdict(rule).items()}
    return {key: list(value) or "*" for key, value in held.items() if value is not None}


def _shown(value: object) -> str:
    """As TOML would have it, but for null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_shown(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return json.dumps(value)

"""`[[rules]]` of `ringcast.toml`, checked. Names of users and groups become numbers here.

Invariant: a rule that could not mean what its author thinks is refused, with the place of the mistake.
"""

from __future__ import annotations

import grp
import pwd
import re
from collections.abc import Callable
from typing import Any

from ringcast.control.peering import NAME_PATTERN
from ringcast.daemon.operate.mistakes import Wrong, shown, unknown
from ringcast.errors import BadTagName
from ringcast.model.tag import check_pattern
from ringcast.security.rules import ACTIONS, EVERYBODY, Rule

MOST = 4096
_TOKEN = r"[A-Za-z0-9_.-]{1,64}"


def rules(value: object) -> tuple[Rule, ...]:
    """Raises ValueError with what was expected, Wrong with the place inside."""
    if not isinstance(value, list):
        raise ValueError("tables that begin with [[rules]]")
    if len(value) > MOST:
        raise ValueError(f"at most {MOST} rules")
    return tuple(_rule(number, item) for number, item in enumerate(value))


def _rule(number: int, value: object) -> Rule:
    if not isinstance(value, dict):
        raise Wrong((), f"rules must be tables that begin with [[rules]], not {shown(value)}")
    fields: dict[str, Any] = {}
    for name, held in value.items():
        if name not in _KEYS:
            raise Wrong((number, name), unknown(name, _KEYS))
        field, check = _KEYS[name]
        fields[field] = tuple(_each(number, name, held, check))
    whom = fields.keys() & {"users", "groups", "programs", "nodes", "tokens"}
    if not whom:
        raise Wrong((number,), "a rule says for whom it is: user, group, program, node or token")
    for alone in ("nodes", "tokens"):
        if alone in whom and len(whom) > 1:
            word = alone.removesuffix("s")
            raise Wrong((number,), f"a rule for a {word} is for nobody else: give users, groups and programs another")
    for name in ("may", "tags"):
        if not fields.get(name):
            example = 'may = ["subscribe"]' if name == "may" else 'tags = ["lab/**"]'
            raise Wrong((number,), f"a rule needs {name}, as {example}")
    if fields.get("users") and EVERYBODY in fields["users"]:
        fields["users"] = ()
    return Rule(**fields)


def _each(number: int, name: str, held: object, check: Callable[[object], Any]) -> list[Any]:
    found = []
    for item in held if isinstance(held, list) else [held]:
        try:
            found.append(check(item))
        except ValueError as exc:
            raise Wrong((number, name), f"{name} must be {exc}, not {shown(item)}") from exc
        except (BadTagName, LookupError) as exc:
            raise Wrong((number, name), str(exc.args[0] if isinstance(exc, LookupError) else exc)) from exc
    if not found:
        raise Wrong((number, name), f"{name} is empty; a rule with nothing in {name} would say nothing")
    return found


def _user(value: object) -> int | str:
    if value == EVERYBODY:
        return EVERYBODY
    try:
        return _number(value) if isinstance(value, int) else pwd.getpwnam(_word(value)).pw_uid
    except KeyError as exc:
        raise LookupError(f"there is no user {value!r} on this machine") from exc


def _group(value: object) -> int:
    try:
        return _number(value) if isinstance(value, int) else grp.getgrnam(_word(value)).gr_gid
    except KeyError as exc:
        raise LookupError(f"there is no group {value!r} on this machine") from exc


def _number(value: int) -> int:
    if isinstance(value, bool) or not 0 <= value < 2**32:
        raise ValueError("a name, or a number from 0 on")
    return value


def _word(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("a name, or a number from 0 on")
    return value


def _program(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError("the path of an executable, which begins with /")
    return value


def _node(value: object) -> str:
    if not isinstance(value, str) or not (value == EVERYBODY or re.fullmatch(NAME_PATTERN, value)):
        raise ValueError('the name of a node, or "*" for every node')
    return value


def _token(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_TOKEN, value):
        raise ValueError("the name of a token: up to 64 letters, digits and _ . -")
    return value


def _action(value: object) -> str:
    if value not in ACTIONS:
        raise ValueError(" or ".join(f'"{action}"' for action in ACTIONS))
    return str(value)


def _tags(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError('a tag or a pattern, as "lab/**"')
    return check_pattern(value)


_KEYS: dict[str, tuple[str, Callable[[object], Any]]] = {
    "user": ("users", _user), "group": ("groups", _group), "program": ("programs", _program),
    "node": ("nodes", _node), "token": ("tokens", _token), "may": ("may", _action), "tags": ("tags", _tags),
}  # fmt: skip

"""What may stand in `ringcast.toml`, and what a daemon's settings may be, whoever gives them. Pure.

One table of keys serves the file, the flags, `ringcast config show` and reloading. Invariants: a file with an unknown
key, or with a value that cannot be, is refused whole, with the line of the mistake; a value that was accepted can be
put in force without being checked again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ringcast.control.peering import MAX_ADDRESSES, NAME_PATTERN
from ringcast.daemon.operate import rule_tables
from ringcast.daemon.operate.mistakes import Wrong, shown, unknown
from ringcast.daemon.table.attributes import resolve
from ringcast.errors import BadConfiguration, BadTagName, BadTransport, QosMismatch
from ringcast.model import addresses, priority
from ringcast.model.place import AUTO, Setting, check_place
from ringcast.model.schedule import MOST_PRIORITY
from ringcast.model.tag import check_name, check_pattern, matches
from ringcast.model.toml_lines import Path, line_of, line_of_error, lines_of
from ringcast.transport.registry import check_transport
from ringcast.transport.urgent.awake import ANY_US
from ringcast.transport.urgent.queues import MOST_SHARE

CONTROL_PORT = 7417
METRICS_PORT = 9417
LEVELS = ("error", "warning", "info", "debug")
FORMATS = ("text", "json")
_TABLES = ("limits", "clock")
MAX_PEERS = 1024
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Key(NamedTuple):
    """`check` returns the value as it is used, and raises ValueError with what was expected. `live` can be changed by
    reloading."""

    check: Callable[[object], Any]
    live: bool
    default: str
    """In words."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Where proxies sit, what carries tags that match and how urgently, for streams to `node` ('' is every node)."""

    tags: str
    node: str = ""
    at: str = ""
    transport: str = ""
    priority: str = ""


class File(msgspec.Struct, frozen=True):
    """A valid file: its values by key, and the line of each."""

    path: str
    values: dict[str, Any]
    lines: dict[Path, int]

    def place(self, *path: str | int) -> str:
        return f"{self.path}:{line_of(self.lines, path)}"


def read(text: str, path: str) -> File:
    """Raises BadConfiguration, for the first mistake."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line, reason = line_of_error(exc, text)
        raise BadConfiguration(path, line, f"this is not TOML: {reason[:1].lower()}{reason[1:]}") from exc
    lines = lines_of(text)
    values: dict[str, Any] = {}
    for name, at, value in _flat(parsed):
        try:
            if name not in KEYS:
                raise Wrong((), unknown(name, KEYS))
            values[name] = _checked(name, value)
        except Wrong as exc:
            raise BadConfiguration(path, line_of(lines, (*at, *exc.path)), str(exc)) from exc
    return File(path, values, lines)


def check(name: str, value: object, said: str) -> Any:
    """A value from elsewhere than the file, called `said` there. Raises ValueError, which says what was expected."""
    try:
        return _checked(name, value, said)
    except Wrong as exc:
        raise ValueError(str(exc)) from exc


def settings_for(rules: tuple[Rule, ...], tag: str) -> dict[str, Setting]:
    """What the rules say of a tag, by the node that receives. The first rule that says something counts."""
    found: dict[str, Setting] = {}
    for rule in rules:
        if matches(rule.tags, tag):
            known = found.get(rule.node, Setting())
            found[rule.node] = Setting(
                at=known.at or rule.at, transport=known.transport or rule.transport,
                priority=known.priority or rule.priority,
            )  # fmt: skip
    return found


def _flat(parsed: dict[str, Any]) -> list[tuple[str, Path, Any]]:
    """(key, path, value); the entries of some tables are keys of their own."""
    found: list[tuple[str, Path, Any]] = []
    for name, value in parsed.items():
        if name in _TABLES and isinstance(value, dict):
            found += [(f"{name}.{inner}", (name, inner), held) for inner, held in value.items()]
        else:
            found.append((name, (name,), value))
    return found


def _checked(name: str, value: object, said: str = "") -> Any:
    try:
        return KEYS[name].check(value)
    except Wrong:
        raise
    except ValueError as exc:
        raise Wrong((), f"{said or name} must be {exc}, not {shown(value)}") from exc


# ------------------------------------------------------------------ what values may be


def _text(pattern: str, expected: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(expected)
        return value

    return check


def _one_of(words: tuple[str, ...]) -> Callable[[object], str]:
    expected = " or ".join(f'"{word}"' for word in words)

    def check(value: object) -> str:
        if value not in words:
            raise ValueError(expected)
        return str(value)

    return check


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31:
        raise ValueError("a whole number from 0 on")
    return value


def _lease(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError("a number of seconds; 0 keeps tags for ever")
    return float(value)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 4096:
        raise ValueError("a number of cores, as 0.5")
    return float(value)


def _priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PRIORITY:
        raise ValueError(f"the highest fifo or rr priority of a channel's threads, from 0 to {MOST_PRIORITY}")
    return value


def _latency(value: object) -> int:
    """Microseconds."""
    found = re.fullmatch(r"(\d{1,6})us", value) if isinstance(value, str) else None
    if value == "any":
        return ANY_US
    if found is None:
        raise ValueError('how late a core may wake, as "20us", "0us" for cores that do not sleep, or "any"')
    return int(found[1])


def _rate(value: object) -> int:
    try:
        return priority.rate_bps(value if isinstance(value, str) else "")
    except ValueError as exc:
        raise ValueError(priority.RATE) from exc


def _link_share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_SHARE:
        raise ValueError(f"what of a link channels may reserve, from 0 to {MOST_SHARE:g}")
    return float(value)


def _period(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.01 <= value <= 60:
        raise ValueError("a number of seconds from 0.01 to 60")
    return float(value)


def size(value: object) -> int:
    """`512M`, `"2G"`, or bytes as a number. Raises ValueError with what was expected."""
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    number = int(float(found[1]) * 1024 ** _POWERS[found[2].upper()]) if found else value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number < 2**62:
        raise ValueError('a size such as "512M" or "2G"')
    return number


def _address(port: int) -> Callable[[object], str]:
    def check(value: object) -> str:
        try:
            return addresses.join(*addresses.split(str(value) if isinstance(value, str) else "", port))
        except ValueError as exc:
            raise ValueError("an address HOST:PORT, or [HOST]:PORT for IPv6") from exc

    return check


def _addresses(most: int) -> Callable[[object], tuple[str, ...]]:
    one = _address(CONTROL_PORT)

    def check(value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or len(value) > most:
            raise ValueError(f"a list of at most {most} addresses HOST:PORT")
        for item in value:
            try:
                one(item)
            except ValueError as exc:
                raise Wrong((), f"{shown(item)} is not {exc}") from exc
        return tuple(map(one, value))

    return check


def _tags(value: object) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise ValueError('tables such as [tags."lab/temperature"]')
    for name, attributes in value.items():
        try:
            check_name(name)
        except BadTagName as exc:
            raise Wrong((name,), str(exc)) from exc
        if name.startswith("@"):
            raise Wrong((name,), f"tag {name!r} is the daemons' own; names that begin with @ are not declared")
        if not isinstance(attributes, dict):
            raise Wrong((name,), f'tag {name!r} must be a table, as [tags."{name}"], not {shown(attributes)}')
        for attribute, held in attributes.items():
            try:
                resolve(name, {attribute: held}, None)
                if attribute == "transport" and held:
                    check_transport(held)
            except (QosMismatch, BadTransport) as exc:
                words = f"{exc.offered}; {exc.remedy}" if isinstance(exc, QosMismatch) else str(exc)
                raise Wrong((name, attribute), f"tag {name!r}, {attribute} = {shown(held)}: {words}") from exc
    return value


def _rules(value: object) -> tuple[Rule, ...]:
    if not isinstance(value, list):
        raise ValueError("tables that begin with [[transports]]")
    return tuple(_rule(number, item) for number, item in enumerate(value))


def _rule(number: int, value: object) -> Rule:
    if not isinstance(value, dict):
        raise Wrong((), f"transports must be tables that begin with [[transports]], not {shown(value)}")
    for name, held in value.items():
        if name == "proxy":  # what this key was called first
            raise Wrong((number, name), "'proxy' is called 'at' here, as everywhere else: write at = \"node:NAME\"")
        if name not in Rule.__struct_fields__:
            raise Wrong((number, name), unknown(name, dict.fromkeys(Rule.__struct_fields__)))
        if not isinstance(held, str):
            raise Wrong((number, name), f"{name} must be text, not {shown(held)}")
        try:
            if name == "tags":
                check_pattern(held)
            elif name == "node" and not re.fullmatch(NAME_PATTERN, held):
                raise ValueError(f"node must be the name of a node, not {shown(held)}")
            elif name == "transport":
                check_transport(held)
            elif name == "priority":
                priority.read(held)
            elif name == "at" and check_place(held) == AUTO:
                raise ValueError("at must be 'publisher', 'subscriber' or 'node:NAME'; leave it out for 'auto'")
        except QosMismatch as exc:
            raise Wrong((number, name), f"transport {shown(held)}: {exc.offered}; {exc.remedy}") from exc
        except (BadTagName, BadTransport, ValueError) as exc:
            raise Wrong((number, name), str(exc)) from exc
    if "tags" not in value or not {"at", "transport", "priority"} & value.keys():
        raise Wrong((number,), 'a rule needs tags = "PATTERN", and some of transport, at and priority')
    return Rule(**value)


_NODE = "the name of a node: up to 64 letters, digits and _ . -"
_MESH = "the name of a mesh: up to 64 letters, digits and _ . -, or empty"

_PATH = 'a path that begins with /, or "none"'

KEYS: dict[str, Key] = {
    "name": Key(_text(NAME_PATTERN, _NODE), False, "the host's name"),
    "mesh": Key(_text(r"[A-Za-z0-9_.-]{0,64}", _MESH), False, "no name"),
    "socket": Key(_text(r"/.*", "a path that begins with /"), False, "the usual place"),
    "listen": Key(_addresses(MAX_ADDRESSES), False, "no network"),
    "peers": Key(_addresses(MAX_PEERS), True, "none"),
    "scout": Key(_bool, False, "yes"),
    "identity": Key(_text(r"/.*|none", _PATH), False, "the usual folder, if there is one"),
    "audit": Key(_text(r"/.*|none", _PATH), False, "beside the socket"),
    "metrics": Key(_address(METRICS_PORT), False, "not served"),
    "metrics_rules": Key(_text(r"/.*|none", _PATH), True, "none needed on this machine"),
    "log": Key(_one_of(FORMATS), True, "text"),
    "log_level": Key(_one_of(LEVELS), True, "warning"),
    "limits.memory": Key(size, True, "half of the memory"),
    "limits.lingering_rings": Key(_count, True, "an eighth of the open files"),
    "limits.lingering_rings_per_tag": Key(_count, True, "8"),
    "limits.tag_lease_s": Key(_lease, False, "a day"),
    "limits.cpu_share": Key(_share, True, "unlimited"),
    "limits.sched_priority": Key(_priority, True, "99"),
    "limits.sched_share": Key(_share, True, "what the kernel grants"),
    "limits.wake_latency": Key(_latency, True, "0us in a virtual machine, else 3us"),
    "limits.link_rate": Key(_rate, True, "what the network card says"),
    "limits.link_share": Key(_link_share, True, f"{MOST_SHARE:g}"),
    "limits.user_connections": Key(_count, True, "4096"),
    "limits.requests_per_s": Key(_count, True, "10000"),
    "limits.user_tags": Key(_count, True, "8192"),
    "limits.user_rings": Key(_count, True, "16384"),
    "limits.user_memory": Key(size, True, "half of all rings' for other users"),
    "clock.source": Key(_one_of(("own", "common")), False, "own"),
    "clock.probe_s": Key(_period, False, "0.1 s"),
    "tags": Key(_tags, True, "none"),
    "transports": Key(_rules, True, "none"),
    "rules": Key(rule_tables.rules, True, "this user everything, others nothing"),
}

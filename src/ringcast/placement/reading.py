"""A problem from a file: TOML or JSON with the same names. Pure: text in, `Problem` out.

Every complaint is one sentence with the line (when the text is not TOML or JSON) or the field (when it is, and says
something that cannot be). A name that is not known is a typo, not an extension.
"""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

from ringcast.placement.checks import check
from ringcast.placement.model import Costs, Demand, Link, Node, Objective, PlacementError, Problem, Subscriber

T = TypeVar("T")
_REQUIRED: Any = object()
_TOP = ("nodes", "links", "demands", "costs", "cost", "charge", "max_proxies_per_tag")


def read(text: str, *, toml: bool) -> Problem:
    """Raises PlacementError."""
    return check(problem(_toml(text) if toml else _json(text)))


def network(text: str, *, toml: bool) -> Problem:
    """Of a file that declares a network: what it says of demands is left out. Raises PlacementError."""
    document = _toml(text) if toml else _json(text)
    return check(problem({**document, "demands": []} if isinstance(document, dict) else document))


def problem(document: Any) -> Problem:
    """From what a file says, unchecked but for its types. Raises PlacementError."""
    top = _Table("", document, _TOP)
    return Problem(
        nodes=top.list("nodes", _node),
        links=top.list("links", _link, default=()),
        demands=top.list("demands", _demand),
        costs=top.table("costs", _costs, Costs()),
        objective=_objective(top),
        charge=top.text("charge", "unicast"),  # type: ignore[arg-type]  # checks.check knows which there are
        max_proxies_per_tag=top.whole("max_proxies_per_tag", None, null=True),
    )


def _node(where: str, value: Any) -> Node:
    table = _Table(where, value, ("name", "cpu"))
    return Node(table.text("name"), table.number("cpu", math.inf))


def _link(where: str, value: Any) -> Link:
    table = _Table(where, value, ("a", "b", "bandwidth", "latency_s"))
    return Link(table.text("a"), table.text("b"), table.number("bandwidth", math.inf), table.number("latency_s", 0.0))


def _demand(where: str, value: Any) -> Demand:
    table = _Table(where, value, ("tag", "publisher", "period_s", "bytes", "subscribers"))
    return Demand(
        table.text("tag"), table.text("publisher"), table.number("period_s"), table.number("bytes"),
        table.list("subscribers", _subscriber),
    )  # fmt: skip


def _subscriber(where: str, value: Any) -> Subscriber:
    table = _Table(where, value, ("name", "node", "every", "scaled_bytes", "deadline_s"))
    return Subscriber(
        table.text("name"), table.text("node"), table.whole("every", 1) or 0,
        table.number("scaled_bytes", None, null=True), table.number("deadline_s", math.inf, null=True),
    )  # fmt: skip


def _costs(where: str, value: Any) -> Costs:
    table = _Table(where, value, ("in_s", "out_s", "scale_s"))
    return Costs(table.number("in_s", 0.0), table.number("out_s", 0.0), table.number("scale_s", 0.0))


def _objective(top: _Table) -> Objective:
    value = top.value.get("cost", "bandwidth")
    if value == "bandwidth":
        return Objective(1.0, 0.0)
    if value == "cpu":
        return Objective(0.0, 1.0)
    if isinstance(value, dict):
        table = _Table("cost", value, ("bandwidth", "cpu"))
        return Objective(table.number("bandwidth", 0.0), table.number("cpu", 0.0))
    raise PlacementError("cost", f"is {value!r}; it is 'bandwidth', 'cpu' or a table with a weight for each")


class _Table:
    """One table of the file, and where it is."""

    def __init__(self, where: str, value: Any, known: tuple[str, ...]) -> None:
        if not isinstance(value, dict):
            raise PlacementError(where, f"is {_kind(value)}; here belongs a table with {', '.join(known)}")
        self.where = where
        self.value = value
        for name in value:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
                raise PlacementError(self.at(name), f"there is no such field; {hint}")

    def at(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            raise PlacementError(self.at(name), f"is {_kind(value)}; here belongs a text in quotes")
        return value

    def number(self, name: str, default: Any = _REQUIRED, *, null: bool = False) -> Any:
        """A float; what is left out is the default. `null` is the same as left out only where it is said to be."""
        value = self._get(name, default)
        if value is default or (value is None and null):
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PlacementError(self.at(name), f"is {_kind(value)}; here belongs a number, or leave it out")
        return float(value)

    def whole(self, name: str, default: int | None, *, null: bool = False) -> int | None:
        value = self._get(name, default)
        if value is default or (value is None and null):
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise PlacementError(self.at(name), f"is {_kind(value)}; here belongs an integer, as 4")
        return value

    def table(self, name: str, make: Callable[[str, Any], T], default: T) -> T:
        return make(self.at(name), self.value[name]) if name in self.value else default

    def list(self, name: str, make: Callable[[str, Any], T], default: Any = _REQUIRED) -> tuple[T, ...]:
        value = self._get(name, default)
        if not isinstance(value, list | tuple):
            raise PlacementError(self.at(name), f"is {_kind(value)}; here belongs a list")
        return tuple(make(f"{self.at(name)}[{i}]", one) for i, one in enumerate(value))

    def _get(self, name: str, default: Any) -> Any:
        if name not in self.value and default is _REQUIRED:
            raise PlacementError(self.at(name), "is missing")
        return self.value.get(name, default)


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise PlacementError("", f"not TOML: {exc}") from exc


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise PlacementError("", f"not JSON: {exc.msg} (at line {exc.lineno}, column {exc.colno})") from exc


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else repr(value)

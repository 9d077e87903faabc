"""`ringcast vars`: the variables of a tag: list, watch, get, set, browse, owners."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.model.policy import OnChange, Periodic, Policy
from ringcast.model.tag import check_name

if TYPE_CHECKING:
    from ringcast.model.identity import PublisherInfo
    from ringcast.variables.changes import Changes
    from ringcast.variables.mapping import Variables

HELP = "Variables behind a tag: list them, watch them change, get one from its owner, have its owner set one."

EPILOG = """\
Names may hold wildcards: '*' for any letters within a segment, '**' for any at all. 'list' and 'watch' read what is
sent; 'get', 'browse' and 'owners' ask the owners what they have now. 'set' asks the owner, which may refuse.

examples:
  ringcast vars plant                              list all, with type, value and age
  ringcast vars plant list 'engine/*'
  ringcast vars plant watch 'engine/*'             print changes as they come
  ringcast vars plant watch --period 1 engine/rpm  the newest value once a second
  ringcast vars plant watch --on-change --dead-band 0.5 'engine/*'
  ringcast vars plant get engine/rpm
  ringcast vars plant set valve 0.4
  ringcast vars plant browse 'engine/*'            ask every owner, whatever is sent
  ringcast vars plant owners                       who has variables, how many, and how often they are sent
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="the tag that carries the variables, as plant")
    parser.set_defaults(what="list", names=[], timeout=5.0, period=None, on_change=False, dead_band=0.0, count=None)
    add_json(parser, "one JSON document, or with watch one object per line,")
    add_access(parser)
    parts = parser.add_subparsers(dest="what", metavar="WHAT")
    for what, names, text in (
        ("list", "names or wildcards (default: all)", "list them with type, value and time (the default)"),
        ("watch", "names or wildcards (default: all)", "print changes as they come"),
        ("get", "names", "ask the owner what it has now"),
        ("set", "a name and a value", "ask the owner to change one"),
        ("browse", "names or wildcards (default: all)", "ask the owners which ones they have"),
        ("owners", "", "ask the owners how they send"),
    ):
        part = parts.add_parser(what, help=text, description=text)
        if names:
            part.add_argument("names", nargs="*", metavar="NAME", help=names)
        part.add_argument("--timeout", type=float, default=5.0, metavar="S", help="how long to wait (default: 5)")
        part.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON instead of text")
        if what == "watch":
            part.add_argument("--period", type=float, metavar="S", help="the newest values once in S seconds")
            part.add_argument("--on-change", action="store_true", help="only what changed")
            part.add_argument("--dead-band", type=float, default=0.0, metavar="X", help="a number must move by more")
            part.add_argument("--count", type=int, metavar="N", help="end after N changes")


def run(args: argparse.Namespace) -> int:
    """Raises Misuse, RingcastError, KeyError."""
    check_name(args.tag)
    output = Output(args.json)
    with connect(args, "vars") as session:
        rows = session.tags(args.tag)
        if rows and rows[0].attributes.codec != "variables":
            raise Misuse(f"{args.tag!r} has codec {rows[0].attributes.codec!r} and no variables; see 'ringcast sub'")
        if not rows:
            raise Misuse(f"there is no tag {args.tag!r}; a program makes it with session.variables({args.tag!r})")
        variables = session.variables(args.tag)
        do: Callable[[argparse.Namespace, Variables, Output], int] = _VERBS[args.what or "list"]
        try:
            return do(args, variables, output)
        except (KeyError, TypeError, ValueError, TimeoutError) as exc:
            raise Misuse(str(exc.args[0] if exc.args else exc)) from exc


def _list(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    mirror = variables.mirror
    if not any(row.alive for row in variables.tag.publishers()):
        raise TimeoutError(f"nobody owns variables of {args.tag!r} now")
    mirror.wait_complete(args.timeout)
    from ringcast import _core

    found = []
    for name in sorted(mirror.names()):
        if args.names and not any(_core.variable_matches(pattern, name) for pattern in args.names):
            continue
        owner = mirror.owner_of(name)
        found.append(
            {
                "name": name, "type": mirror.table_of(name).type(name), "value": _plain(mirror[name]),
                "event_ns": mirror.time_ns(name), "owner": _owner(owner),
            }
        )  # fmt: skip
    if args.names and not found:
        raise KeyError(f"no variable of {args.tag!r} fits {' '.join(args.names)}")
    if output.json:
        output.document(found)
    else:
        heads = ("name", "type", "value", "set at (UTC)", "owner")
        rows = [(r["name"], r["type"], _shown(r["value"]), _instant(r["event_ns"]), r["owner"]) for r in found]
        output.table(heads, [[str(cell) for cell in row] for row in rows])
    return 0


def _watch(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    if args.count is not None and args.count < 1:
        raise ValueError(f"--count is at least 1, not {args.count}")
    left = args.count
    with variables.subscribe(*args.names, policy=_policy(args)) as subscription:
        queue = subscription.queue()
        while left is None or left > 0:
            left = _print(queue.get(), left, output)
    return 0


def _policy(args: argparse.Namespace) -> Policy | None:
    if args.on_change or args.dead_band:
        return OnChange(period_s=args.period or 0.0, dead_band=args.dead_band, by="value")
    return Periodic(args.period) if args.period is not None else None


def _print(changes: Changes, left: int | None, output: Output) -> int | None:
    for (name, value, event_ns), repeated in zip(changes.items(), changes.repeated.tolist(), strict=True):
        if left == 0:
            break
        if output.json:
            output.record({"name": name, "value": _plain(value), "event_ns": event_ns, "repeated": repeated})
        else:
            output.line(f"{_instant(event_ns)}  {name} = {_shown(_plain(value))}{'  (repeated)' if repeated else ''}")
        left = None if left is None else left - 1
    return left


def _get(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    if not args.names:
        raise ValueError("say which: ringcast vars TAG get NAME...")
    found = {name: _plain(value) for name, value in variables.ask(*args.names, timeout=args.timeout).items()}
    if output.json:
        output.document(found)
    else:
        for name, value in found.items():
            output.line(_shown(value) if len(found) == 1 else f"{name} = {_shown(value)}")
    return 0


def _set(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    if len(args.names) != 2:
        raise ValueError("say which, and to what: ringcast vars TAG set NAME VALUE")
    name, text = args.names
    variables.ask_set({name: _value(text)}, timeout=args.timeout)
    if output.json:
        output.document({name: _plain(_value(text))})
    return 0


def _browse(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    found = sorted(variables.browse(*args.names, timeout=args.timeout), key=lambda one: one.name)
    if output.json:
        output.document(
            [
                {"name": one.name, "type": one.type, "value": _plain(one.value), "owner": _owner(one.owner)}
                for one in found
            ]
        )
    else:
        heads = ("name", "type", "value", "owner")
        output.table(heads, [[one.name, one.type, _shown(_plain(one.value)), _owner(one.owner)] for one in found])
    return 0


def _owners(args: argparse.Namespace, variables: Variables, output: Output) -> int:
    found = variables.owners(timeout=args.timeout)
    if output.json:
        output.document(
            [
                {"owner": _owner(one.owner), "program": one.owner.program, "variables": one.variables,
                 "period_s": one.period_s, "frame_s": one.frame_s, "late": one.late}
                for one in found
            ]
        )  # fmt: skip
    else:
        heads = ("owner", "program", "variables", "period (s)", "frame (s)", "late")
        rows = [
            [_owner(one.owner), one.owner.program, one.variables, f"{one.period_s:g}", f"{one.frame_s:g}", one.late]
            for one in found
        ]
        output.table(heads, [[str(cell) for cell in row] for row in rows])
    return 0


def _owner(info: PublisherInfo) -> str:
    return f"{info.node}/{info.id}"


def _value(text: str) -> Any:
    """JSON where it is JSON, text where it is not."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list):
        import numpy as np

        return np.array(value, dtype=np.float64)
    return value if isinstance(value, bool | int | float | str) else text


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value.tolist() if hasattr(value, "tolist") else value


def _shown(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _instant(event_ns: int) -> str:
    when = datetime.datetime.fromtimestamp(event_ns / 1e9, datetime.UTC)
    return when.strftime("%H:%M:%S.%f")[:-3]


_VERBS = {"list": _list, "watch": _watch, "get": _get, "set": _set, "browse": _browse, "owners": _owners}

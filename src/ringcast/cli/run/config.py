"""`ringcast config`: a daemon's settings, with the origin of each; and whether a file is valid."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.cli.run import daemon
from ringcast.errors import DaemonUnavailable

if TYPE_CHECKING:
    from ringcast.control.status import SettingStatus

HELP = "The daemon's settings: what is in force and where each came from, or whether a file is valid."

EPILOG = """\
'show' asks the daemon that runs. When none runs, or with --config or another setting, it shows what a daemon would use
that is started with these options. An origin is default, flag, environment, or a file and its line. 'check' reads a
file as a daemon would; the exit code is 1 when it cannot be used, with the line of the mistake.

examples:
  ringcast config show
  ringcast config show --config ringcast.toml --mesh team-b      what a daemon would use then
  ringcast config check /etc/ringcast/ringcast.toml
"""

_HEADS = ("setting", "value", "from")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the settings in force, and where each came from")
    daemon.add_settings(show)
    add_json(show)
    check = actions.add_parser("check", help="is this file valid?")
    check.add_argument("file", metavar="FILE", nargs="?", help="the file (default: the one a daemon would read)")
    add_json(check, "what the file says, as one JSON document,")


def run(args: argparse.Namespace) -> int:
    return _show(args) if args.action == "show" else _check(args)


def _show(args: argparse.Namespace) -> int:
    output = Output(args.json)
    try:
        given = daemon.flags(args)
        rows = None if args.config is not None or given.keys() - {"socket"} else _running(args.socket, output)
        if rows is None:
            rows = _would_be(args.config, given, output)
    except ValueError as exc:
        raise Misuse(str(exc)) from exc
    _print(output, rows)
    return 0


def _running(path: str | None, output: Output) -> list[SettingStatus] | None:
    import ringcast

    try:
        with ringcast.connect(path, start=False, program="ringcast config") as session:
            rows, status = session.settings(), session.status()
    except DaemonUnavailable:
        return None
    output.note(f"in force in the daemon, process {status.pid} ({status.config or 'no file was read'})")
    return rows


def _would_be(config: str | None, given: dict[str, object], output: Output) -> list[SettingStatus]:
    from ringcast.daemon.operate.config_file import settle
    from ringcast.daemon.operate.in_force import rows

    settings = settle(config, given)
    output.note(f"in force for a daemon that is started with these options ({settings.config or 'no file was read'})")
    return rows(settings)


def _check(args: argparse.Namespace) -> int:
    from ringcast.daemon.operate.config_file import find_file, search_path, settle
    from ringcast.daemon.operate.in_force import rows

    output = Output(args.json)
    path = find_file(args.file)
    if path is None:
        raise Misuse(f"there is no file to check; name one, or write {' or '.join(search_path())}")
    try:
        settings = settle(path, {})
    except ValueError as exc:
        raise Misuse(str(exc)) from exc
    if args.json:
        _print(output, [row for row in rows(settings) if row.origin.startswith(path)])
    else:
        output.line(f"{path} is valid")
    return 0


def _print(output: Output, rows: list[SettingStatus]) -> None:
    if output.json:
        output.document(rows)
    else:
        output.table(_HEADS, [[row.key, row.value, row.origin] for row in rows])

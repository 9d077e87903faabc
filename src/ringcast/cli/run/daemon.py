"""`ringcast daemon`: serve this node's clients until a signal stops it."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ringcast.errors import BadConfiguration, RingcastError

HELP = "Run this node's daemon."

EPILOG = """\
Settings come from flags, then from a file: --config, or RINGCAST_CONFIG, or ringcast/ringcast.toml in XDG_CONFIG_HOME
(~/.config), or /etc/ringcast/ringcast.toml. 'ringcast config show' says what is in force and where it came from. SIGHUP
reloads the file: tags, peers, transports, rules, limits and the log change at once. The log names the settings that
need a restart.

examples:
  ringcast daemon                                                this machine alone
  ringcast daemon --listen 0.0.0.0:7417 --peer 10.0.0.2:7417     joined with others
  ringcast daemon --config ringcast.toml --check                 is the file valid? then exit
  ringcast daemon --listen 0.0.0.0:7417 --mesh team-a --metrics 127.0.0.1:9417 --log json
  ringcast daemon --metrics 0.0.0.0:9417 --metrics-rules readers.toml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument("--check", action="store_true", help="say whether the settings are valid, and exit")
    parser.add_argument("--until-idle", action="store_true", help="end when the last client has left")
    parser.add_argument(
        "--idle-linger",
        metavar="S",
        type=_seconds,
        default=1.0,
        help="with --until-idle: end S seconds after that (default: 1)",
    )
    # For ringcast.connect(): detach from the caller, and write to this descriptor when clients may connect.
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The flags that win over the file. Their default is None: not given."""
    parser.add_argument("--config", metavar="FILE", help="read this file (default: the first of the usual places)")
    parser.add_argument(
        "--no-config", dest="config", action="store_const", const="", help="read no file, even where there is one"
    )
    parser.add_argument("--socket", metavar="PATH", help="listen here (default: RINGCAST_SOCKET, or the usual place)")
    parser.add_argument("--name", metavar="NODE", help="this node's name (default: the host's)")
    parser.add_argument("--mesh", metavar="NAME", help="join only nodes of the mesh of this name (default: no name)")
    parser.add_argument("--budget", metavar="SIZE", help="memory for rings, as 2G (default: half of the machine's)")
    parser.add_argument(
        "--tag-lease", metavar="S", type=float,
        help="delete tags that nobody has used for S seconds; 0 keeps them (default: a day)",
    )  # fmt: skip
    parser.add_argument(
        "--cpu-share", metavar="CORES", type=float,
        help="proxies that place themselves take no more than this here, as 0.5 (default: unlimited)",
    )  # fmt: skip
    parser.add_argument(
        "--listen", metavar="HOST:PORT", action="append",
        help="join other nodes, which reach this one here; repeatable (default: no network)",
    )  # fmt: skip
    parser.add_argument(
        "--peer", metavar="HOST:PORT", action="append", help="the address of another node of the mesh; repeatable"
    )
    parser.add_argument(
        "--no-scout", dest="scout", action="store_const", const=False, help="do not look for other nodes by multicast"
    )
    parser.add_argument(
        "--identity", metavar="FOLDER",
        help="prove this node's name by the certificate in here, or 'none' (default: as 'ringcast secure' wrote it)",
    )  # fmt: skip
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve metrics for Prometheus here (default: nowhere)")
    parser.add_argument(
        "--metrics-rules", metavar="FILE",
        help="metrics are for those who show a token of this file, or 'none' for whoever comes; needed where others "
        "can reach them ('ringcast gateway --new-token' makes tokens)",
    )  # fmt: skip
    parser.add_argument("--log", choices=("text", "json"), help="log lines as text (default) or JSON")
    parser.add_argument(
        "--log-level", choices=("error", "warning", "info", "debug"), help="log this level and worse (default: warning)"
    )
    parser.add_argument(
        "--verbose", dest="log_level", action="store_const", const="info", help="the same as --log-level info"
    )


def flags(args: argparse.Namespace) -> dict[str, Any]:
    """What the flags say, by the keys of the file. Raises ValueError."""
    from ringcast.daemon.operate.configuration import check

    given = {
        "name": ("--name", args.name), "mesh": ("--mesh", args.mesh),
        "socket": ("--socket", os.path.abspath(args.socket) if args.socket else None),
        "listen": ("--listen", args.listen), "peers": ("--peer", args.peer), "scout": ("--no-scout", args.scout),
        "identity": ("--identity", _path(args.identity)), "metrics": ("--metrics", args.metrics),
        "metrics_rules": ("--metrics-rules", _path(args.metrics_rules)),
        "log": ("--log", args.log),
        "log_level": ("--log-level", args.log_level), "limits.memory": ("--budget", args.budget),
        "limits.tag_lease_s": ("--tag-lease", args.tag_lease),
        "limits.cpu_share": ("--cpu-share", args.cpu_share),
    }  # fmt: skip
    return {key: check(key, value, flag) for key, (flag, value) in given.items() if value is not None}


def run(args: argparse.Namespace) -> int:
    if args.ready_fd is not None and os.fork():
        os._exit(0)
    from ringcast.daemon.operate.config_file import settle
    from ringcast.daemon.operate.program import Program

    try:
        settings = settle(args.config, flags(args))
        if args.check:
            print(f"ringcast daemon: the settings are valid ({settings.config or 'no file was read'})")
            return 0
        linger = args.idle_linger if args.until_idle else None
        program = Program(
            settings, lambda: settle(args.config, flags(args)), idle_linger_s=linger, ready_fd=args.ready_fd
        )
    except (BadConfiguration, ValueError) as exc:
        return _say(exc, 2)  # a service is not started again with it: RestartPreventExitStatus
    try:
        program.run()
    except RingcastError as exc:
        return _say(exc, 1)
    except OSError as exc:
        where = ", ".join(settings.values["listen"]) or "its socket"
        return _say(f"cannot listen on {where}: {exc.strerror or exc}; choose another address", 1)
    return 0


def _path(path: str | None) -> str | None:
    return path if path in (None, "none") else os.path.abspath(path)


def _say(what: object, code: int) -> int:
    print(f"ringcast daemon: {what}", file=sys.stderr)
    return code


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return seconds

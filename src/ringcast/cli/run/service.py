"""`ringcast service`: the systemd unit that runs the daemon, printed."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
from importlib import resources

from ringcast.cli.parts.output import Output
from ringcast.cli.program import Misuse

HELP = "Print the systemd unit that runs the daemon with this Python."

EPILOG = """\
The daemon serves programs of the user it runs as, and root's. As a service of the machine its socket is
/run/ringcast/daemon.sock, and programs find it by RINGCAST_SOCKET; as a service of a user (--scope user) it is where
programs of that user look by themselves. docs/operating.md has all steps.

examples:
  ringcast service --user robot | sudo tee /etc/systemd/system/ringcast.service
  sudo systemctl daemon-reload && sudo systemctl enable --now ringcast
  ringcast service --scope user > ~/.config/systemd/user/ringcast.service
  systemctl --user enable --now ringcast
"""

SOCKET = "/run/ringcast/daemon.sock"
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?")
_SYSTEM = """\
User={user}
RuntimeDirectory=ringcast
RuntimeDirectoryMode=0711
Environment=RINGCAST_SOCKET={socket}
# {what}
CapabilityBoundingSet={capabilities}
AmbientCapabilities={capabilities}
# While channels have a schedule cores do not fall asleep: the device is root's otherwise.
ExecStartPre=-+/bin/chown {user} /dev/cpu_dma_latency
"""
_CAPABILITIES = {
    False: ("Nothing but priorities of its own threads.", "CAP_SYS_NICE"),
    True: ("Priorities of its own threads, and queues of the links.", "CAP_SYS_NICE CAP_NET_ADMIN"),
}
# As PrivateDevices=yes, but for the one device that keeps cores awake.
_PRIVATE = "PrivateTmp=yes\nDevicePolicy=closed\nDeviceAllow=/dev/cpu_dma_latency rw"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope", choices=("system", "user"), default="system", help="a service of the machine (default) or of a user"
    )
    parser.add_argument("--user", metavar="NAME", help="the user that runs it, with --scope system (default: you)")
    parser.add_argument(
        "--bandwidth", action="store_true",
        help="with --scope system: let it reserve bandwidth of links for channels (CAP_NET_ADMIN)",
    )  # fmt: skip
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (default: the usual places)")


def run(args: argparse.Namespace) -> int:
    if args.scope == "user" and args.user is not None:
        raise Misuse("--user is for --scope system; a user's own service runs as that user")
    if args.scope == "user" and args.bandwidth:
        raise Misuse("--bandwidth is for --scope system; a user's own service may not set up queues of links")
    user = args.user or getpass.getuser()
    if not _USER.fullmatch(user):
        raise Misuse(f"{user!r} is not the name of a user")
    Output(False).line(unit(args.scope, user, args.config, bandwidth=args.bandwidth).rstrip("\n"))
    return 0


def unit(scope: str, user: str, config: str | None, *, bandwidth: bool = False) -> str:
    """The unit's text."""
    command = [sys.executable, "-P", "-m", "ringcast", "daemon"]
    command += ["--config", os.path.abspath(config)] if config else []
    text = resources.files("ringcast.daemon.operate").joinpath("ringcast.service.in").read_text()
    system = scope == "system"
    what, capabilities = _CAPABILITIES[bandwidth]
    return text.format(
        command=" ".join(map(quoted, command)),
        identity=_SYSTEM.format(user=user, socket=SOCKET, what=what, capabilities=capabilities) if system else "",
        private=_PRIVATE if system else "",  # a user's manager may not mount anything
        target="multi-user.target" if system else "default.target",
    )


def quoted(word: str) -> str:
    """As systemd reads a word: `%` and `$` mean something to it, and so do spaces and quotes."""
    word = word.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$").replace('"', '\\"')
    return f'"{word}"' if re.search(r"[\s'\"\\;]", word) else word

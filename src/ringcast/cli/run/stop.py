"""`ringcast stop`: end this node's daemon, and wait until it has."""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket

from ringcast.cli.parts.access import add_socket
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import positive
from ringcast.errors import BrokenError, DaemonUnavailable

HELP = "End this node's daemon, and wait until it has. Programs go on with the rings they have, and attach to the next."

EPILOG = """\
The daemon tells other nodes that it leaves before it ends. If it has not ended after --timeout, the exit code is 1 and
the daemon goes on; with --kill it is killed then. A daemon that systemd runs is ended by 'systemctl stop ringcast'.

examples:
  ringcast stop
  ringcast stop --timeout 30
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_socket(parser)
    parser.add_argument("--timeout", type=positive, default=10.0, metavar="S", help="wait S seconds (default: 10)")
    parser.add_argument("--kill", action="store_true", help="kill a daemon that has not ended by then")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from ringcast.control.socket_path import default_socket_path

    path = os.path.abspath(args.socket) if args.socket else default_socket_path()
    pid, process = find(path)
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not _ended(process, args.timeout):
            if not args.kill:
                raise BrokenError(
                    f"the daemon, process {pid}, has not ended within {args.timeout:g} s; wait longer with --timeout, "
                    "or use --kill"
                )
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _ended(process, args.timeout)
    except ProcessLookupError:  # it has ended by itself
        pass
    except PermissionError as exc:
        raise BrokenError(f"the daemon, process {pid}, belongs to another user; ask as that user, or as root") from exc
    finally:
        os.close(process)
    output = Output(args.json)
    if output.json:
        output.document({"pid": pid, "socket": path})
    else:
        output.line(f"the daemon, process {pid}, has ended")
    return 0


def find(path: str) -> tuple[int, int]:
    """The process that listens at `path`, as the kernel knows it: its number, and a descriptor that stands for it
    whatever becomes of the number. Raises DaemonUnavailable."""
    from ringcast.daemon.machine import peer_of, pidfd_of

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        try:
            sock.connect(path)
            pid = peer_of(sock).pid
            return pid, pidfd_of(sock, pid)
        except OSError as exc:
            raise DaemonUnavailable(path, exc.strerror or str(exc)) from exc


def _ended(process: int, timeout: float) -> bool:
    return bool(select.select([process], [], [], timeout)[0])

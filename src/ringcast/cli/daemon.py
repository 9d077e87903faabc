"""`ringcast daemon`: serve this node's clients until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from ringcast.errors import RingcastError

if TYPE_CHECKING:
    from ringcast.daemon.network import NetworkSettings

HELP = "run this node's daemon"

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_NODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="listen here (default: RINGCAST_SOCKET, or the usual place)")
    parser.add_argument("--name", metavar="NODE", type=_node, help="this node's name (default: the host's)")
    parser.add_argument("--budget", metavar="SIZE", type=_size, help="memory for rings, as 2G (default: half of all)")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", action="append", default=[],
        help="join other nodes, reachable here; may be given again (default: no network at all)",
    )  # fmt: skip
    parser.add_argument(
        "--peer", metavar="HOST:PORT", action="append", default=[],
        help="another node to begin with; may be given again",
    )  # fmt: skip
    parser.add_argument("--no-scout", action="store_true", help="do not look for other nodes by multicast")
    parser.add_argument("--until-idle", action="store_true", help="end when the last client has left")
    parser.add_argument("--idle-linger", metavar="S", type=_seconds, default=1.0, help="wait so long (default: 1 s)")
    parser.add_argument(
        "--tag-lease", metavar="S", type=_lease, default=86400.0,
        help="end tags that nobody has used for so long; 0 keeps them (default: a day)",
    )  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="say more on standard error")
    # For ringcast.connect(): detach from the caller, and write to this descriptor when clients may connect.
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.ready_fd is not None and os.fork():
        os._exit(0)
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING,
        format=f"%(asctime)s ringcast daemon[{os.getpid()}] %(levelname)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(_serve(args))
    except RingcastError as exc:
        print(f"ringcast daemon: {exc}", file=sys.stderr)
        return 1
    except OSError as exc:
        where = ", ".join(args.listen) or "its socket"
        reason = exc.strerror or exc
        print(f"ringcast daemon: cannot listen on {where}: {reason}; choose another address", file=sys.stderr)
        return 1
    except ValueError as exc:
        print(f"ringcast daemon: {exc}", file=sys.stderr)
        return 2
    return 0


def _network(args: argparse.Namespace) -> NetworkSettings | None:
    from ringcast.daemon.network import NetworkSettings

    if not args.listen:
        if args.peer:
            raise ValueError("--peer needs --listen HOST:PORT: the others must be able to reach this node")
        return None
    return NetworkSettings(listen=tuple(args.listen), peers=tuple(args.peer), scout=not args.no_scout)


async def _serve(args: argparse.Namespace) -> None:
    from ringcast import _core
    from ringcast.daemon.lifecycle import Claim, default_socket_path
    from ringcast.daemon.machine import memory_bytes, node_name, raise_file_limit
    from ringcast.daemon.server import Server

    max_files = raise_file_limit()
    claim = Claim(args.socket or default_socket_path())
    try:
        server = Server(
            claim, _core, node=args.name or node_name(), budget_bytes=args.budget or memory_bytes() // 2,
            max_files=max_files, idle_linger_s=args.idle_linger if args.until_idle else None, network=_network(args),
            tag_lease_s=args.tag_lease,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        if sys.stderr.isatty():
            print(f"ringcast daemon: listening on {claim.socket_path}; Ctrl-C ends it", file=sys.stderr)
        await server.run(partial(_tell_ready, args.ready_fd) if args.ready_fd is not None else None)
    finally:
        claim.close()


def _tell_ready(fd: int) -> None:
    try:
        os.write(fd, b"ready\n")
        os.close(fd)
    except OSError:  # whoever asked for us is gone; others may come
        pass


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * 1024 ** _POWERS[found[2].upper()]) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 512M or 2G")
    return size


def _node(text: str) -> str:
    if not _NODE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a node's name: up to 64 letters, digits and _ . -")
    return text


def _lease(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds; 0 keeps tags for ever")
    return seconds


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return seconds

"""Floods of connections and requests at a daemon while a reliable stream runs beside them.

`python -m ringcast.lab.security.floods KIND SOCKET COUNT` is one attacker.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ringcast
from ringcast.control import link
from ringcast.control.requests import GetStatus, Hello
from ringcast.errors import RingcastError
from ringcast.lab.measuring.report import Analysed
from ringcast.lab.measuring.rows import Row
from ringcast.lab.security.cells import Flood, stream_rows, streamed, told
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.figures import Measured

KINDS = ("connections", "requests")
CALM = 2000
"""Messages without a flood, to compare with."""
PACE_S = 0.0005
START_S = 30.0


def measured(quick: bool) -> list[Measured]:
    """Of each kind, a stream before the flood and beside it. Raises LabError."""
    count = 20_000 if quick else 1_000_000
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as place, _daemon(Path(place)) as path:
        for kind in KINDS:
            calm_ns, _ = _stream(path, None)
            flooded_ns, missing = _stream(path, _attacker(kind, path, count))
            found += streamed(kind, count, calm_ns, flooded_ns, missing)
    return found


def judged(analysed: Analysed) -> list[Row]:
    floods = [flood for flood in told(analysed, "missing", Flood) if flood.kind in KINDS]
    return [row for flood in floods for row in stream_rows(analysed, f"{flood.number:,} {flood.kind}", flood)]


def _stream(path: str, attacker: subprocess.Popen[bytes] | None) -> tuple[list[int], int]:
    """(times of messages, how many are missing), until the attacker is done."""
    times: list[int] = []
    with ringcast.connect(socket=path, start=False) as session:
        tag = session.tag("stream")
        publisher, subscriber = tag.publisher(), tag.subscribe(reliable=True)
        sent = 0
        while sent < CALM or (attacker is not None and attacker.poll() is None):
            publisher.send(b"x" * 64)
            sent += 1
            message = subscriber.recv(START_S)
            times.append(message.received_ns - message.sent_ns)
            time.sleep(PACE_S)
        missing = sent - len(times) + subscriber.stats().lost
    if attacker is not None and attacker.wait() != 0:
        raise LabError("the attacker failed: the daemon served it no longer")
    return times, missing


def _attacker(kind: str, path: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "ringcast.lab.security.floods", kind, path, str(count)])


@contextlib.contextmanager
def _daemon(folder: Path) -> Iterator[str]:
    path = str(folder / "d.sock")
    command = [sys.executable, "-m", "ringcast", "daemon", "--socket", path, "--config", ""]
    with subprocess.Popen(command) as daemon:
        try:
            deadline = time.monotonic() + START_S
            while True:
                try:
                    ringcast.connect(socket=path, start=False).close()
                    break
                except RingcastError:
                    if time.monotonic() > deadline:
                        raise LabError("no daemon came up to be flooded") from None
                    time.sleep(0.05)
            yield path
        finally:
            daemon.terminate()


def main(kind: str, path: str, count: str) -> None:
    if kind == "connections":
        for _ in range(int(count)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock, contextlib.suppress(OSError):
                sock.connect(path)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(path)
        link.send(sock, Hello(id=1, program="flood"))
        link.receive_reply(sock)
        for number in range(int(count)):
            link.send(sock, GetStatus(id=number + 2))
            link.receive_reply(sock)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Somebody connects and sends garbage again and again; each time in another way, so that it is always news."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ringcast.control.limits import LOG_LINES_PER_MINUTE
from ringcast.control.peering import Hello, NodeRecord, encode_frame

TIMES = 300


def test_the_log_grows_by_a_few_lines_and_tells_of_no_forged_ones(
    tmp_path: Path, free_addresses: Callable[[int], list[str]], eventually: Callable[..., None]
) -> None:
    (address,), path = free_addresses(1), tmp_path / "log"
    options = ["--name", "a", "--listen", address, "--no-scout", "--socket", str(tmp_path / "d.sock")]
    with path.open("wb") as log:
        daemon = subprocess.Popen([sys.executable, "-m", "ringcast", "daemon", *options], stderr=log, stdout=log)
    try:
        eventually(lambda: _connects(address))
        before = len(path.read_text().splitlines())
        for number in range(TIMES):
            _offend(address, b"\xff\xff" + number.to_bytes(2, "big"))  # a frame of that length is not allowed
            hello = Hello(record=NodeRecord(f"m{number}", 2**40 + number, control=("127.0.0.1:9",)))
            bad = {"t": "ping", "seq": -number, "evil\nWARNING all is well": 1}
            _offend(address, encode_frame(hello) + _frame(bad))
        lines = path.read_text().splitlines()[before:]
        assert len(lines) <= 4 * LOG_LINES_PER_MINUTE, lines
        assert not [line for line in lines if line.startswith("WARNING all is well")]
    finally:
        daemon.terminate()
        daemon.wait(30.0)


def _frame(value: Any) -> bytes:
    body = msgspec.msgpack.encode(value)
    return len(body).to_bytes(4, "big") + body


def _connects(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def _offend(address: str, data: bytes) -> None:
    """Say it, and wait until the daemon hangs up."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 30.0) as sock:
        sock.sendall(data)
        try:
            while sock.recv(65536):
                pass
        except ConnectionResetError:
            pass

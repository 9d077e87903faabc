"""A flood of datagrams at every UDP port of a node, forged ones and plain rubbish, while a sealed stream goes there.

`python -m ringcast.lab.security.datagrams COUNT SEED HEAD PORT...` is the attacker. HEAD is, in hex, how a true
datagram begins: what somebody on the way sees of it, channel key included.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import ringcast
from ringcast.lab.measuring.report import Analysed
from ringcast.lab.measuring.rows import Row, at_least, at_most
from ringcast.lab.security.cells import FLOODED, Flood, stream_rows, streamed, told, values
from ringcast.lab.security.meshes import Mesh, mesh
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.figures import Measured

TRANSPORT = "nak"
KIND = "datagrams"
MEMORY_BYTES = 8 << 20
"""What a daemon may grow by meanwhile: the stream's own numbers; an interpreter takes memory by the megabyte."""
CALM = 2000
PACE_S = 0.0005
WAIT_S = 60.0
CLEAR_BYTES = 16
_LOOPBACK = "127.0.0.1"
_IPV4 = 0x0800
_KINDS = range(1, 9)
_DIFFERENT = 512


class Flooded(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the stream, and of the daemon that was flooded."""

    calm_ns: list[int]
    flooded_ns: list[int]
    missing: int
    dropped: int
    """Datagrams that the daemon received and dropped; the kernel drops what it does not get round to."""
    grown_bytes: int
    failed: int
    """Daemons that are not the same any more, and requests that failed in them."""
    overheard: bool
    """Whether the attacker saw the stream, and so had its channel's key; that takes the right to read the network."""


def measured(quick: bool) -> list[Measured]:
    """Raises LabError."""
    count = 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as place, mesh(Path(place) / "mesh", secured=True) as nodes:
        return list(counted(flood(nodes, count), count))


def counted(found: Flooded, count: int) -> Iterator[Measured]:
    yield from streamed(KIND, count, found.calm_ns, found.flooded_ns, found.missing)
    cell = Flood(KIND, count, FLOODED)
    yield from values(cell, "grown", [[found.grown_bytes]], "bytes")
    yield from values(cell, "failed", [[found.failed]], "daemons")
    yield from values(cell, "dropped", [[found.dropped]], "datagrams")


def judged(analysed: Analysed) -> list[Row]:
    rows = []
    grown, failed = (told(analysed, metric, Flood) for metric in ("grown", "failed"))
    for cell, dropped in told(analysed, "dropped", Flood).items():
        name = f"{cell.number:,} datagrams, forged and rubbish"
        rows += stream_rows(analysed, name, cell)
        rows.append(at_most(f"{name}: the daemon grew by", grown[cell]["most"], "bytes", MEMORY_BYTES))
        rows.append(at_most(f"{name}: daemons that failed", failed[cell]["total"], "daemons", 0))
        rows.append(at_least(f"{name}: received, dropped and counted", dropped["total"], "datagrams", 1))
    return rows


def flood(nodes: Mesh, count: int, seed: int = 1) -> Flooded:
    """The stream goes from node a to node b, and so does the flood. Raises LabError."""
    with (
        ringcast.connect(socket=nodes.a, start=False) as here,
        ringcast.connect(socket=nodes.b, start=False) as there,
    ):
        stream = _Stream(here, there)
        before = there.status()
        head, overheard = _overhear(stream, udp_ports(before.pid))
        calm_ns = stream.run(CALM)
        dropped, memory = _dropped(there), _memory_bytes(before.pid)
        command = [sys.executable, "-m", "ringcast.lab.security.datagrams", str(count), str(seed), head.hex()]
        attacker = subprocess.Popen([*command, *map(str, udp_ports(before.pid))])
        try:
            flooded_ns = stream.run(CALM, attacker)
        finally:
            attacker.kill()
            attacker.wait()
        if attacker.returncode != 0:
            raise LabError(f"the attacker failed with {attacker.returncode}")
        after = there.status()
        return Flooded(
            calm_ns=calm_ns, flooded_ns=flooded_ns, missing=stream.missing(), dropped=_dropped(there) - dropped,
            grown_bytes=max(0, _memory_bytes(after.pid) - memory),
            failed=int(after.pid != before.pid) + after.mistakes - before.mistakes, overheard=overheard,
        )  # fmt: skip


class _Stream:
    def __init__(self, here: ringcast.Session, there: ringcast.Session) -> None:
        self._subscriber = there.tag("stream").subscribe(reliable=True, transport=TRANSPORT)
        self._publisher = here.tag("stream").publisher()
        self._publisher.wait_for_subscribers(1, timeout=WAIT_S)
        self._sent = self._received = 0

    def one(self) -> int:
        """How long a message took, in nanoseconds."""
        self._publisher.send(b"x" * 64)
        self._sent += 1
        message = self._subscriber.recv(WAIT_S)
        self._received += 1
        return message.received_ns - message.sent_ns

    def run(self, least: int, attacker: subprocess.Popen[bytes] | None = None) -> list[int]:
        """At least so many messages, and until the attacker is done."""
        times: list[int] = []
        while len(times) < least or (attacker is not None and attacker.poll() is None):
            times.append(self.one())
            time.sleep(PACE_S)
        return times

    def missing(self) -> int:
        return self._sent - self._received + self._subscriber.stats().lost


# ------------------------------------------------------------------ what an attacker finds out


def udp_ports(pid: int) -> list[int]:
    """The ports that a process listens on, as a scan of it would find them."""
    links = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):  # closed in this moment
            links.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    ports = set()
    for table in ("udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes:
                ports.add(int(words[1].rpartition(":")[2], 16))
    return sorted(ports)


def _overhear(stream: _Stream, ports: list[int]) -> tuple[bytes, bool]:
    """How a datagram of the stream begins; one with a made-up key where this user may not read the network."""
    made_up = b"RC\x02\x01" + bytes(4) + random.Random(1).randbytes(8)
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_IPV4)) as wire:
            wire.bind(("lo", _IPV4))
            wire.settimeout(WAIT_S)
            stream.one()
            while True:
                packet = wire.recv(65_536)
                begin = (packet[0] & 0x0F) * 4
                if packet[9] != socket.IPPROTO_UDP or len(packet) < begin + 8 + CLEAR_BYTES:
                    continue
                payload = packet[begin + 8 :]
                if struct.unpack_from("!H", packet, begin + 2)[0] in ports and payload.startswith(b"RC"):
                    return payload[:CLEAR_BYTES], True
    except (PermissionError, TimeoutError):
        return made_up, False


def _dropped(session: ringcast.Session) -> int:
    counted = sum(count for reasons in session.dropped().values() for count in reasons.values())
    channels = (row.counters for row in session.channels())
    return counted + sum(row.get(name, 0) for row in channels for name in ("forged", "replayed", "old_key"))


def _memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


# ------------------------------------------------------------------ the attacker


def made(head: bytes, seed: int) -> Iterator[bytes]:
    """Datagrams of every kind under the channel's key, with anything behind; and anything at all."""
    random_ = random.Random(seed)
    for number in range(_DIFFERENT):
        if number % 2:
            yield random_.randbytes(random_.randrange(1, 1400))
        else:
            kind = random_.choice(_KINDS)
            yield head[:3] + bytes([kind]) + head[4:] + random_.randbytes(random_.randrange(0, 1300))


def main(count: str, seed: str, head: str, *ports: str) -> None:
    sockets: list[Any] = []
    for port in ports:
        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sockets[-1].connect((_LOOPBACK, int(port)))
    datagrams = list(made(bytes.fromhex(head), int(seed)))
    for number in range(int(count)):
        with contextlib.suppress(ConnectionRefusedError):  # a port that was closed meanwhile
            sockets[number % len(sockets)].send(datagrams[number % len(datagrams)])


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the network here allows: finding other nodes by multicast, and letting the kernel cut long messages into
datagrams. Sends a few datagrams to itself, on a port of its own, so no daemon hears them."""

from __future__ import annotations

import secrets
import select
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

from ringcast.cli.parts.checks.finding import Finding, limited, ok
from ringcast.control.peering import Scout, encode_scout
from ringcast.daemon.mesh.scouting import ScoutSettings

PATIENCE_S = 0.5
_DEVICES = Path("/sys/class/net")
_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000
_UDP_SEGMENT, _UDP_GRO = 103, 104
_SEGMENT_BYTES, _SEGMENTS = 1000, 3


def look() -> list[Finding]:
    return [_multicast(), _segmentation(), _coalescing()]


def _multicast() -> Finding:
    names = interfaces()
    deaf = {name: reason for name in names if (reason := hears_itself(name))}
    good = [name for name in names if name not in deaf]
    if good and not deaf:
        return ok("multicast", f"a call is heard on {', '.join(good)}")
    said = "; ".join(f"{name}: {reason}" for name, reason in deaf.items()) or "the loopback is the only interface"
    if good:
        remedy = "Nodes behind the other interfaces are not found by multicast; name them with --peer HOST:PORT."
        return limited("multicast", f"works on {', '.join(good)}; {said}", remedy)
    remedy = "Nodes do not find each other by multicast; name one of them with --peer HOST:PORT, one is enough."
    return limited("multicast", said, remedy)


def interfaces() -> list[str]:
    """Those that are up and know of multicast, the loopback left out."""
    names = [name for _, name in socket.if_nameindex()]
    return [name for name in names if _flags(name) & (_UP | _MULTICAST | _LOOPBACK) == _UP | _MULTICAST]


def _flags(name: str) -> int:
    try:
        return int((_DEVICES / name / "flags").read_text(), 16)
    except OSError:  # it has gone, or is hidden
        return 0


def hears_itself(interface: str) -> str:
    """Call out on an interface as a daemon does, and listen there. '' when it was heard, else why not."""
    group = ScoutSettings().groups[0]
    packet = encode_scout(Scout(incarnation=secrets.randbits(63) | 1, port=1))
    try:
        where = struct.pack("=4s4si", socket.inet_aton(group), bytes(4), socket.if_nametoindex(interface))
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.bind((group, 0))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, where)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, where)
            sender.sendto(packet, receiver.getsockname())
            return "" if _heard(receiver, packet) else "nothing is heard"
    except OSError as exc:
        return (exc.strerror or str(exc)).lower()


def _heard(receiver: socket.socket, packet: bytes) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while select.select([receiver], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if receiver.recv(len(packet) + 1) == packet:
            return True
    return False


def _segmentation() -> Finding:
    """Ringcast hands long messages to the kernel in one call where it can cut them (UDP GSO)."""
    remedy = "Long messages cost a system call per datagram; use Linux 4.18 or newer."
    with ExitStack() as stack:
        receiver, sender = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        try:
            receiver.bind(("127.0.0.1", 0))
            receiver.settimeout(PATIENCE_S)
            sender.setsockopt(socket.SOL_UDP, _UDP_SEGMENT, _SEGMENT_BYTES)
            sender.sendto(bytes(_SEGMENT_BYTES * _SEGMENTS), receiver.getsockname())
            sizes = [len(receiver.recv(65536)) for _ in range(_SEGMENTS)]
        except OSError as exc:
            reason = exc.strerror or str(exc)
            return limited("udp segmentation", reason.lower(), remedy)
    if sizes != [_SEGMENT_BYTES] * _SEGMENTS:
        return limited("udp segmentation", f"cut into {sizes} bytes", remedy)
    return ok("udp segmentation", "the kernel cuts long messages into datagrams (GSO)")


def _coalescing() -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.setsockopt(socket.SOL_UDP, _UDP_GRO, 1)
        except OSError as exc:
            remedy = "Datagrams are taken one by one, which costs more at high rates; use Linux 5.0 or newer."
            reason = exc.strerror or str(exc)
            return limited("udp coalescing", reason.lower(), remedy)
    return ok("udp coalescing", "the kernel can hand over datagrams together (GRO)")

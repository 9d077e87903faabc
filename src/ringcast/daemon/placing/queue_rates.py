"""How fast the queues of an interface are emptied, where somebody shapes them: asked of the kernel by rtnetlink.

Everybody may ask, and no program is needed for it. Of queues with classes counts the class of packets that no filter
names: its ceiling, and those of all classes above it. What is below a queue is emptied no faster than that one.
Invariant: `slowest` decides, and knows no socket.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

ROOT = 0xFFFFFFFF
"""Who is above the first queue, and above the first classes of one."""
_NETLINK_ROUTE = 0
_GET_QUEUES, _GET_CLASSES = 38, 42
_QUEUE, _CLASS = 36, 40
_ALL = 0x301
"""A request, for all that there are."""
_KIND, _OPTIONS = 1, 2
_HEAD, _BODY, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxxxiIII"), struct.Struct("=HH")
_NUMBER, _LONG = struct.Struct("=I"), struct.Struct("=Q")
_KINDS_OF_ATTRIBUTES = 0x3FFF
_NETEM_BYTES = 24
_ANSWER_BYTES = 1 << 16
_PATIENCE_S = 1.0
_SHAPED, _AROUND_ONE = ("htb", "hfsc"), ("tbf", "netem")
_MAJOR = 0xFFFF0000


class Queue(NamedTuple):
    """A queue, or a class of one. `handle` and `parent` are the numbers that `tc` shows, 16 bits on each side of the
    colon; `rate` is in bytes per second, 0 without any; `default` is the class of what no filter names, 0 for none."""

    kind: str
    handle: int
    parent: int
    rate: float = 0.0
    default: int = 0


def rate_of(interface: str) -> float:
    """Bytes per second at which the queues of an interface are emptied at most; 0 where nobody shapes them, or the
    kernel does not say."""
    try:
        index = socket.if_nametoindex(interface)
        queues = list(_read(_GET_QUEUES, index))
        shaped = any(one.kind in _SHAPED for one in queues)
        return slowest(queues, list(_read(_GET_CLASSES, index)) if shaped else [])
    except (OSError, struct.error):
        return 0.0


def slowest(queues: list[Queue], classes: list[Queue]) -> float:
    """Of all that a packet passes that no filter names; 0 where nothing of it has a rate. Pure."""
    below = {one.parent: one for one in queues}
    known = {one.handle: one for one in classes}
    passed: dict[int, float] = {}
    queue = below.get(ROOT)
    while queue is not None and queue.handle not in passed:
        passed[queue.handle] = queue.rate
        major = queue.handle & _MAJOR
        if queue.kind not in _SHAPED:
            # The one queue below has either number.
            queue = below.get(major | 1, below.get(major)) if major and queue.kind in _AROUND_ONE else None
            continue
        leaf = known.get(major | queue.default) if queue.default else None
        queue = below.get(leaf.handle) if leaf is not None else None
        while leaf is not None and leaf.handle not in passed:
            passed[leaf.handle] = leaf.rate
            leaf = known.get(leaf.parent)
    return min((rate for rate in passed.values() if rate > 0), default=0.0)


def _read(what: int, index: int) -> Iterator[Queue]:
    """Raises OSError, struct.error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as sock:
        sock.settimeout(_PATIENCE_S)
        asked = _BODY.pack(socket.AF_UNSPEC, index, 0, 0, 0)
        sock.send(_HEAD.pack(_HEAD.size + len(asked), what, _ALL, 1, 0) + asked)
        while True:
            answer = memoryview(sock.recv(_ANSWER_BYTES))
            at = 0
            while at + _HEAD.size <= len(answer):
                length, kind, _, _, _ = _HEAD.unpack_from(answer, at)
                if kind not in (_QUEUE, _CLASS) or length < _HEAD.size:  # the end, or an error
                    return
                found, owner = parsed(answer[at + _HEAD.size : at + length])
                if owner == index:
                    yield found
                at += -(-length // 4) * 4


def parsed(message: memoryview) -> tuple[Queue, int]:
    """And the number of the interface. Raises struct.error. Pure."""
    _, index, handle, parent, _ = _BODY.unpack_from(message)
    told = _attributes(message[_BODY.size :])
    kind = bytes(told.get(_KIND, b"")).rstrip(b"\0").decode(errors="replace")
    rate, default = _shape(kind, told.get(_OPTIONS, memoryview(b"")))
    return Queue(kind, handle, parent, rate, default), index


def _shape(kind: str, options: memoryview) -> tuple[float, int]:
    """(rate, default class): linux/pkt_sched.h has where they are."""
    if kind == "hfsc" and len(options) == 2:  # the queue; its classes have curves, of which the third is a ceiling
        return 0.0, int.from_bytes(options, sys.byteorder)
    if kind == "netem":
        options = options[_NETEM_BYTES:]
    told = _attributes(options)
    if kind == "tbf":
        return _rate(told, short=1, at=8, long=4), 0
    if kind == "netem":
        return _rate(told, short=6, at=0, long=8), 0
    if kind == "cake":
        return _rate(told, short=0, at=0, long=2), 0
    if kind == "hfsc":
        return _rate(told, short=3, at=8, long=0), 0
    if kind == "htb":
        return _rate(told, short=1, at=20, long=7), _NUMBER.unpack_from(told[2], 8)[0] if 2 in told else 0
    return 0.0, 0


def _rate(told: dict[int, memoryview], short: int, at: int, long: int) -> float:
    """Of the attribute `short`, or of `long` where that is there: 32 bits are too few for fast lines."""
    if long in told:
        return float(_LONG.unpack_from(told[long])[0])
    return float(_NUMBER.unpack_from(told[short], at)[0]) if short in told else 0.0


def _attributes(data: memoryview) -> dict[int, memoryview]:
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _KINDS_OF_ATTRIBUTES] = data[at + _ATTRIBUTE.size : at + length]
        at += -(-length // 4) * 4
    return found

"""How fast an interface's queues are emptied: along the way of packets that no filter names."""

from __future__ import annotations

import struct

import pytest

from ringcast.daemon.placing.queue_rates import ROOT, Queue, parsed, rate_of, slowest

TBF = Queue("tbf", 0x10000, ROOT, 250_000.0)
HTB = Queue("htb", 0x10000, ROOT, default=0x10)
TOP, LEAF, OTHER = (
    Queue("htb", 0x10001, ROOT, 500_000.0), Queue("htb", 0x10010, 0x10001, 900_000.0),
    Queue("htb", 0x10020, 0x10001, 1_000.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("queues", "classes", "rate"),
    [
        ([], [], 0.0),
        ([Queue("fq_codel", 0, ROOT)], [], 0.0),
        ([TBF, Queue("pfifo", 0x50000, 0x10001)], [], 250_000.0),
        ([Queue("netem", 0x10000, ROOT), Queue("tbf", 0x20000, 0x10001, 100.0)], [], 100.0),
        ([TBF, Queue("netem", 0x20000, 0x10000, 100.0)], [], 100.0),
        ([HTB, Queue("bfifo", 0x100000, 0x10010)], [LEAF, TOP, OTHER], 500_000.0),
        ([HTB, Queue("tbf", 0x100000, 0x10010, 7.0), Queue("tbf", 0x200000, 0x10020, 3.0)], [LEAF, TOP, OTHER], 7.0),
        ([HTB._replace(default=0)], [TOP, LEAF, OTHER], 0.0),
        ([HTB._replace(default=0x99)], [TOP, LEAF, OTHER], 0.0),
        ([Queue("prio", 0x10000, ROOT), Queue("tbf", 0x20000, 0x10001, 5.0)], [], 0.0),
        ([Queue("tbf", 0x10000, 0x20001, 5.0)], [], 0.0),
        ([HTB], [LEAF._replace(parent=LEAF.handle)], 900_000.0),
    ],
    ids=["none", "usual", "tbf", "below", "both", "class", "leaf", "no default", "unknown default", "bands", "no root",
         "a ring"],
)  # fmt: skip
def test_the_slowest_on_the_way_counts(queues: list[Queue], classes: list[Queue], rate: float) -> None:
    assert slowest(queues, classes) == rate
    assert slowest(queues[::-1], classes[::-1]) == rate


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def message(kind: str, options: bytes, handle: int = 0x10000, parent: int = ROOT) -> memoryview:
    body = struct.pack("=BxxxiIII", 0, 7, handle, parent, 0)
    return memoryview(body + attribute(1, kind.encode() + b"\0") + attribute(2, options))


def spec(rate: int) -> bytes:
    return struct.pack("=BBHhHI", 0, 1, 0, 0, 0, rate)


MOST = 2**32 - 1


@pytest.mark.parametrize(
    ("kind", "options", "rate", "default"),
    [
        ("tbf", attribute(1, spec(250_000) + spec(0) + bytes(12)), 250_000.0, 0),
        ("tbf", attribute(1, spec(MOST) + spec(0) + bytes(12)) + attribute(4, struct.pack("=Q", 10**10)), 1e10, 0),
        ("htb", attribute(2, struct.pack("=5I", 3, 10, 0x10, 0, 0)), 0.0, 0x10),
        ("htb", attribute(1, spec(125_000) + spec(500_000) + bytes(20)), 500_000.0, 0),
        ("htb", attribute(1, spec(1) + spec(MOST) + bytes(20)) + attribute(7, struct.pack("=Q", 10**10)), 1e10, 0),
        ("hfsc", struct.pack("=H", 2), 0.0, 2),
        ("hfsc", attribute(2, struct.pack("=3I", 9, 9, 9)) + attribute(3, struct.pack("=3I", 1, 2, 300)), 300.0, 0),
        ("netem", bytes(24) + attribute(6, struct.pack("=IiIi", 1_000, 0, 0, 0)), 1_000.0, 0),
        ("cake", attribute(2, struct.pack("=Q", 2_000)), 2_000.0, 0),
        ("pfifo", struct.pack("=I", 1_000), 0.0, 0),
    ],
    ids=["tbf", "fast tbf", "htb", "class", "fast class", "hfsc", "curve", "netem", "cake", "pfifo"],
)  # fmt: skip
def test_rates_and_classes_are_where_the_kernel_puts_them(kind: str, options: bytes, rate: float, default: int) -> None:
    assert parsed(message(kind, options)) == (Queue(kind, 0x10000, ROOT, rate, default), 7)


def test_an_interface_that_nobody_shapes_or_has_is_as_fast_as_it_can_be() -> None:
    assert rate_of("lo") == 0.0
    assert rate_of("nobody-has-it") == 0.0

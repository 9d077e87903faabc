"""Datagrams that carry a channel's key and were not sent by its ends: each kind is counted by reason, and nothing comes
of them."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest

from ringcast.testing.transports import Bench, Path, bench
from ringcast.transport import find

MAGIC, VERSION, REPAIR, NAK, CONFIRM, HEARTBEAT, ACK, CREDIT = 0x4352, 2, 2, 3, 4, 5, 6, 7
FAR = 1 << 40
TIMES = 20
REST_S = 0.25
Forge = Callable[[Path, int], bytes]
"""`turn` makes numbers that are far off differ: a second one near the first would be believed."""


def control(path: Path, kind: int, body: bytes, sender: int = 5) -> bytes:
    assert path.channel.seat is not None
    return struct.pack("<HBBIQ", MAGIC, VERSION, kind, sender, path.channel.seat.key) + body


def repair(path: Path, *listed: tuple[int, int], symbol: bytes = bytes(60)) -> bytes:
    """Of packets (ahead of 0, piece)."""
    head = struct.pack("<QBBHI", 0, 0, len(listed), len(symbol), 0)
    return control(path, REPAIR, head + b"".join(struct.pack("<II", *one) for one in listed) + symbol)


def heartbeat(path: Path, first: int, after: int) -> bytes:
    return control(path, HEARTBEAT, struct.pack("<QQ", first, after) + bytes(16))


def nak(path: Path, first: int) -> bytes:
    return control(path, NAK, struct.pack("<IIQQIII", 1, 0, 0, first, 5, 0, 0))


def far(turn: int) -> int:
    return FAR + (turn << 32)


CODED = ["lateral+nak:r=4", "parity", "multicast+lateral"]
STACKS = ["nak", "ack", *CODED]
TO_RECEIVER: dict[str, tuple[str, list[str], Forge]] = {
    "a repair whose list does not ascend": ("malformed", CODED, lambda p, _: repair(p, (0, 0), (0, 0))),
    "a repair shorter than a header": ("malformed", CODED, lambda p, _: repair(p, (0, 0), symbol=bytes(4))),
    "an empty repair": ("malformed", CODED, lambda p, _: control(p, REPAIR, b"")),
    "a heartbeat that ends before it begins": ("malformed", STACKS, lambda p, _: heartbeat(p, 9, 3)),
    "a heartbeat far ahead": ("absurd", STACKS, lambda p, turn: heartbeat(p, far(turn), far(turn) + 10)),
    "a request that lists more than it has": (
        "malformed", ["nak"], lambda p, _: control(p, NAK, struct.pack("<IIQ", 200, 0, 0)),
    ),
    "a credit": ("malformed", STACKS, lambda p, _: control(p, CREDIT, struct.pack("<Q", 9))),
}  # fmt: skip
"""What is sent, the counter that it goes into, and the transports that look at it."""
HARMLESS: dict[str, Forge] = {
    "a repair of a packet that is here": lambda p, _: repair(p, (0, 0), symbol=b"\xff" * 60),
    "a repair of nonsense": lambda p, _: repair(p, (1_000, 0), symbol=b"\xff" * 60),
    "a confirmation of what was never sent": lambda p, turn: control(
        p, CONFIRM, struct.pack("<IIQQIII", 1, 0, 0, far(turn), 5, 0, 0)
    ),
}
TO_SENDER: dict[str, tuple[str, list[str], Forge]] = {
    "a request for what was never sent": ("absurd", ["nak", "parity+nak"], lambda p, turn: nak(p, far(turn))),
    "a request that is cut short": (
        "malformed", ["nak", "parity+nak"], lambda p, _: control(p, NAK, struct.pack("<IIQ", 1, 0, 0)),
    ),
    "an acknowledgement of what was never sent": (
        "absurd", ["ack"], lambda p, turn: control(p, ACK, struct.pack("<QQ", far(turn), 0), sender=0),
    ),
    "an acknowledgement that is cut short": ("malformed", ["ack"], lambda p, _: control(p, ACK, bytes(3))),
    "a credit of nobody": (
        "absurd", ["nak", "ack"], lambda p, turn: control(p, CREDIT, struct.pack("<Q", far(turn)), sender=77),
    ),
    "a credit beyond what was sent": (
        "absurd", ["nak", "ack"], lambda p, turn: control(p, CREDIT, struct.pack("<Q", far(turn)), sender=0),
    ),
    "an empty credit": ("absurd", ["nak", "ack"], lambda p, _: control(p, CREDIT, b"")),
}  # fmt: skip


def cases(table: dict[str, tuple[str, list[str], Forge]]) -> list[tuple[str, str]]:
    return [(what, name) for what, (_, names, _) in table.items() for name in names]


@pytest.mark.parametrize(("what", "name"), cases(TO_RECEIVER))
def test_a_receiver_counts_each_forgery_by_its_reason(
    what: str, name: str, eventually: Callable[..., None]
) -> None:  # fmt: skip
    reason, _, forge = TO_RECEIVER[what]
    with bench(find(name)) as b, b.path() as path, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        _send(b, path, 0)
        before = path.mirror.counters()
        for turn in range(TIMES):
            forger.sendto(forge(path, turn), ("127.0.0.1", b.receiving.port))
            # One at a time: then the kernel has no reason to drop any.
            eventually(lambda due=turn + 1: path.mirror.counters()[reason] >= before[reason] + due)
        _send(b, path, 100)
        after = path.mirror.counters()
        refused = {key: after[key] - before[key] for key in ("malformed", "absurd", "forged")}
        assert refused == {"malformed": 0, "absurd": 0, "forged": 0, reason: TIMES}
        assert after["lost"] == 0


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("what", HARMLESS)
def test_what_a_forged_repair_makes_is_never_delivered(what: str, name: str) -> None:
    with bench(find(name)) as b, b.path() as path, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        _send(b, path, 0)
        for turn in range(3):
            forger.sendto(HARMLESS[what](path, turn), ("127.0.0.1", b.receiving.port))
        _send(b, path, 100)
        assert path.mirror.counters()["lost"] == 0


@pytest.mark.parametrize("name", STACKS)
def test_a_kind_that_does_not_exist_is_counted_where_it_arrives(name: str, eventually: Callable[..., None]) -> None:
    with bench(find(name)) as b, b.path() as path, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        before = b.receiving.counters()["malformed"]
        for turn in range(TIMES):
            forger.sendto(control(path, 9, bytes(16)), ("127.0.0.1", b.receiving.port))
            eventually(lambda due=turn + 1: b.receiving.counters()["malformed"] >= before + due)
        _send(b, path, 0)
        assert b.receiving.counters()["malformed"] == before + TIMES


@pytest.mark.parametrize(("what", "name"), cases(TO_SENDER))
def test_the_senders_node_counts_each_forgery_and_repairs_nothing(
    what: str, name: str, eventually: Callable[..., None]
) -> None:  # fmt: skip
    reason, _, forge = TO_SENDER[what]
    with bench(find(name)) as b, b.path(reliable=True) as path:
        assert path.channel.seat is not None
        _send(b, path, 0)
        before = _rested(path)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
            for turn in range(TIMES):
                forger.sendto(forge(path, turn), ("127.0.0.1", path.channel.seat.feedback))
                eventually(lambda due=turn + 1: path.sending.counters()[reason] >= before[reason] + due)
        after = path.sending.counters()
        refused = {key: after[key] - before[key] for key in ("malformed", "absurd")}
        assert refused == {"malformed": 0, "absurd": 0, reason: TIMES}
        assert after["repairs"] == before["repairs"]
        _send(b, path, 100)


def _rested(path: Path) -> dict[str, int]:
    """Counters from when the true receiver asks for nothing more: then what is repaired was asked for by forgers."""
    seen: dict[str, int] = {}
    for _ in range(100):
        before, seen = seen, path.sending.counters()
        if before and all(before[key] == seen[key] for key in ("repairs", "naks", "malformed", "absurd")):
            return seen
        time.sleep(REST_S)
    raise AssertionError(f"the receiver has everything and does not come to rest: {seen}")


def _send(b: Bench, path: Path, first: int) -> None:
    """A hundred messages, which all arrive."""
    b.send(*(b"%d" % i for i in range(first, first + 100)))
    assert [message.data for message in path.receive(100)] == [b"%d" % i for i in range(first, first + 100)]

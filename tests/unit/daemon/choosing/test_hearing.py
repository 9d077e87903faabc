"""What a node tells of a tag: what it receives, and what its kernel sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ringcast.control import service
from ringcast.control.between.choosing import AskHeard, Counted, Heard
from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.choosing.hearing import TOLD_S, Hearing
from ringcast.daemon.choosing.lines import Lines, Speeds


def channel(direction: str, transport: str, tag: str = "cam", node: str = "b", **counters: int) -> ChannelStatus:
    how: dict[str, Any] = {"direction": direction, "transport": transport, "tag": tag, "node": node}
    return ChannelStatus(
        **how, incarnation=7, every=1, reliable=False, messages=100, bytes=1000, lost=2, counters=counters
    )


class MadeUp(Lines):
    """Lines to nodes that are as fast as somebody says."""

    def __init__(self, **speeds: Speeds) -> None:
        self._speeds = speeds

    async def to(self, node: str) -> Speeds:
        return self._speeds.get(node, Speeds())


def heard(*rows: ChannelStatus, lines: Lines | None = None, **clocks: ClockStatus) -> Any:
    hearing = Hearing("a", lambda: rows, lambda: clocks, lines or MadeUp(), dict)
    return asyncio.run(hearing.heard(AskHeard(tags=["cam"]))).tags


def test_what_is_received_is_told_with_what_was_missing_before_any_repair() -> None:
    found = heard(channel("in", "nak", skipped=5, gaps=2), channel("in", "nak", tag="other"))
    assert list(found) == ["cam"]
    assert found["cam"].channels == [Counted(7, "nak", 100, 1000, 2, skipped=5, gaps=2)]
    assert found["cam"].sent == []


def test_what_is_sent_is_told_only_where_nobody_else_can_see_losses() -> None:
    found = heard(channel("out", "nak"), channel("out", "tcp", segments=110, resent=11))["cam"]
    assert found.channels == []
    assert found.sent == [Counted(7, "tcp to b", 110, 0, 0, skipped=11, gaps=11)]


def test_the_way_is_that_of_messages_where_it_is_longer_than_that_of_probes() -> None:
    clock = ClockStatus(source="measured", fastest_ns=40_000, bound_ns=10_000)
    assert heard(channel("in", "nak", least_delay_ns=210_000), b=clock)["cam"].round_trip_s == pytest.approx(400e-6)
    assert heard(channel("in", "nak", least_delay_ns=25_000), b=clock)["cam"].round_trip_s == pytest.approx(40e-6)
    unknown = ClockStatus(source="unknown")
    assert heard(channel("in", "nak", least_delay_ns=210_000), b=unknown)["cam"].round_trip_s == 0.0
    assert heard(channel("in", "nak", least_delay_ns=10**15), b=clock)["cam"].round_trip_s == 60.0


def test_packets_are_told_where_a_stack_counts_them() -> None:
    (told,) = heard(channel("in", "nak", heard=150))["cam"].channels
    assert told.packets == 150


def test_of_a_line_what_others_take_is_left_out() -> None:
    rows, lines = [channel("in", "nak")], MadeUp(b=Speeds(out=10.0, into=1_000.0))
    for others, left in ((0.0, 1_000.0), (400.0, 600.0), (5_000.0, 10.0)):
        hearing = Hearing("a", lambda: rows, dict, lines, dict, lambda node, of, others=others: others)  # type: ignore[misc]
        assert asyncio.run(hearing.heard(AskHeard(tags=["cam"]))).tags["cam"].bandwidth == left


def test_who_sends_tells_the_slowest_of_its_lines_whatever_carries_the_stream() -> None:
    lines = MadeUp(b=Speeds(out=900.0, into=5_000.0, leaves=70.0), c=Speeds(out=250.0, into=5_000.0, leaves=30.0))
    rows = [channel("out", "multicast+nak"), channel("out", "multicast+nak", node="c"), channel("out", "nak", node="d")]
    found = heard(*rows, lines=lines)["cam"]
    assert (found.line, found.leaves) == (250.0, 30.0)
    assert (found.channels, found.sent, found.bandwidth) == ([], [], 0.0), "it receives nothing"
    assert heard(channel("in", "nak"), lines=lines)["cam"].line == 0.0, "it sends nothing"


def test_what_a_keeper_told_of_senders_lines_is_known_until_it_is_silent() -> None:
    now_s = 0.0
    hearing = Hearing("a", list, dict, MadeUp(), dict, now_s=lambda: now_s)
    hearing.told({"cam": 250_000.0})
    assert (hearing.line("cam"), hearing.line("other")) == (250_000.0, 0.0)
    now_s = TOLD_S + 1
    assert hearing.line("cam") == 0.0


def test_a_daemon_that_knows_no_lines_is_understood_and_understands() -> None:
    """Of values that are sent as lists only the end may grow."""
    old = msgspec.msgpack.encode(["a", [[7, "nak", 100, 1000, 2]], 0.001, 1.25e6, []])
    found = msgspec.msgpack.decode(old, type=Heard)
    assert (found.bandwidth, found.line, found.leaves) == (1.25e6, 0.0, 0.0)
    new = msgspec.msgpack.decode(msgspec.msgpack.encode(Heard("a", [], 0.0, 0.0, [], 250.0, 30.0)))
    assert new == ["a", [], 0.0, 0.0, [], 250.0, 30.0, 0]
    assert service.decode_untrusted(msgspec.msgpack.encode({"tags": ["cam"]}), AskHeard).lines == {}

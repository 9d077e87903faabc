"""What a node tells of a tag: what it receives, and what its kernel sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.control.between.choosing import AskHeard, Counted
from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.choosing.hearing import Hearing


def channel(direction: str, transport: str, tag: str = "cam", **counters: int) -> ChannelStatus:
    how: dict[str, Any] = {"direction": direction, "transport": transport, "tag": tag}
    return ChannelStatus(
        **how, node="b", incarnation=7, every=1, reliable=False, messages=100, bytes=1000, lost=2, counters=counters
    )


async def nowhere(node: str) -> str:
    raise OSError


def heard(*rows: ChannelStatus, **clocks: ClockStatus) -> Any:
    hearing = Hearing("a", lambda: rows, lambda: clocks, nowhere, dict)
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

"""What a node tells of a tag: what it receives, and what its kernel sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.control.between.choosing import AskHeard, Counted, Explained
from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.choosing import hearing as hearing_module
from ringcast.daemon.choosing.hearing import TOLD_S, Hearing


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


def test_what_a_keeper_told_of_its_choices_is_shown_until_it_is_silent() -> None:
    now_s = 0.0
    hearing = Hearing("a", list, dict, nowhere, dict, now_s=lambda: now_s)
    hearing.told({"cam": [Explained("auto:p99", "nak", 5, "of loss", "the rule", "3 receivers", [("nak", 1.0)])]})
    (choice,) = hearing.choices("cam")
    assert (choice.asked, choice.transport, choice.candidates) == ("auto:p99", "nak", [("nak", 1.0)])
    assert hearing.choices("other") == []
    now_s = TOLD_S + 1
    assert hearing.choices("cam") == []


def test_of_a_line_what_others_take_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def there(node: str) -> str:
        return "10.0.0.2"

    monkeypatch.setattr(hearing_module.interfaces, "local_address", lambda host: "10.0.0.1")
    monkeypatch.setattr(hearing_module.interfaces, "bytes_per_second", lambda address: 1_000.0)
    rows = [channel("in", "nak")]
    for others, left in ((0.0, 1_000.0), (400.0, 600.0), (5_000.0, 10.0)):
        hearing = Hearing("a", lambda: rows, dict, there, dict, lambda node, of, others=others: others)  # type: ignore[misc]
        assert asyncio.run(hearing.heard(AskHeard(tags=["cam"]))).tags["cam"].bandwidth == left

"""What a channel met: from its counters of the last seconds, the clocks, the interface and the cores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringcast.control.status import ChannelStatus, ClockStatus
from ringcast.daemon.choosing import lines, meeting
from ringcast.daemon.choosing.lines import WAY_S, Lines
from ringcast.daemon.choosing.meeting import LOOKS, Meeting, core_ticks
from ringcast.errors import BrokenError


def channel(messages: int, direction: str = "in", transport: str = "nak", **counters: int) -> ChannelStatus:
    how: dict[str, Any] = {"direction": direction, "transport": transport}
    return ChannelStatus(
        **how, node="b", tag="cam", incarnation=7, every=1, reliable=False, messages=messages, bytes=200 * messages,
        lost=0, counters=counters,
    )  # fmt: skip


class World:
    """A made-up clock, and an interface on which a made-up number of bytes comes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s, self.bytes, self.ticks = 100.0, 0, (0, 0)
        self.looked_up: list[str] = []
        self.lost = False
        self.line = 0.0
        patch.setattr(lines, "_towards", lambda host: "eth0")
        patch.setattr(lines, "_asked", lambda name: (1_000_000.0, 500.0, 0))
        patch.setattr(meeting.interfaces, "received", lambda: {"eth0": self.bytes})
        patch.setattr(meeting, "core_ticks", lambda text: self.ticks)
        clock = ClockStatus(source="measured", fastest_ns=40_000)
        found = Lines(self._host_of, now_s=lambda: self.now_s)
        self.meeting = Meeting(lambda tag: 3, lambda: {"b": clock}, found, lambda tag: self.line, lambda: self.now_s)

    async def _host_of(self, node: str) -> str:
        self.looked_up.append(node)
        if self.lost:
            raise BrokenError("it is not where it says")
        return "10.0.0.2"

    def second(self, *rows: ChannelStatus, came: int = 0, idle: int = 50) -> list[ChannelStatus]:
        self.now_s += 1
        self.bytes += came
        self.ticks = self.ticks[0] + idle, self.ticks[1] + 100
        asyncio.run(self.meeting.begin())
        return list(self.meeting.look(rows))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_of_one_look_nothing_is_known_and_of_two_what_came_between(world: World) -> None:
    (first,) = world.second(channel(100))
    assert first.environment is None
    (row,) = world.second(channel(200, skipped=5, gaps=5), came=250_000, idle=25)
    found = row.environment
    assert found is not None
    assert (found.seconds, found.receivers, found.rate_hz, found.payload_bytes) == (1.0, 3, 100.0, 200.0)
    assert (found.loss_percent, found.burst) == (5.0, 1.0)
    assert (found.round_trip_us, found.bandwidth_left_mbit, found.cpu_left_percent) == (40.0, 6.0, 25.0)
    assert world.meeting.known(channel(1_000)).environment == found, "between two looks, as of the last one"
    assert world.meeting.others("b", [channel(1_000)]) == pytest.approx(250_000 - 100 * 260)


def test_where_a_senders_line_has_less_left_that_is_what_is_left(world: World) -> None:
    world.second(channel(0))
    world.line = 250_000.0
    (row,) = world.second(channel(100), came=250_000)
    assert row.environment is not None
    assert row.environment.bandwidth_left_mbit == pytest.approx(8e-6 * (250_000 - 100 * 260)), "less its own messages"
    world.line = 2_000_000.0
    (row,) = world.second(channel(200), came=250_000)
    assert row.environment is not None
    assert row.environment.bandwidth_left_mbit == pytest.approx(6.0), "the interface here has less"


def test_what_is_long_ago_is_forgotten_and_what_was_opened_again_counts_from_nothing(world: World) -> None:
    for second in range(LOOKS + 2):
        rows = world.second(channel(10 * second, skipped=9))
    assert rows[0].environment is not None
    assert rows[0].environment.seconds == LOOKS
    (row,) = world.second(channel(5))
    assert row.environment is None
    world.second()
    world.second()
    assert world.meeting.known(channel(5)).environment is None, "it is gone"


def test_what_hides_its_losses_has_none_to_tell_and_what_goes_out_is_not_looked_at(world: World) -> None:
    world.second(channel(0, transport="tcp"), channel(0, "out"))
    tcp, out = world.second(channel(10, transport="tcp"), channel(10, "out"))
    assert tcp.environment is not None
    assert (tcp.environment.loss_percent, tcp.environment.burst) == (None, None)
    assert out.environment is None


@pytest.mark.parametrize("lost", [False, True])
def test_where_a_node_is_is_looked_up_once_and_only_when_something_comes_from_it(world: World, lost: bool) -> None:
    world.lost = lost
    world.second()
    world.second(channel(0, "out"))
    assert world.looked_up == []
    for second in range(int(WAY_S) + 5):
        rows = world.second(channel(10 * second), came=1000)
    assert world.looked_up == ["b"]
    assert rows[0].environment is not None
    assert (rows[0].environment.bandwidth_left_mbit is None) == lost


def test_idle_cores_are_read_from_the_line_of_all() -> None:
    assert core_ticks("cpu  10 0 20 60 10 0 0 0 0 0\ncpu0 1 1 1 1") == (70, 100)
    with pytest.raises(ValueError, match="all cores"):
        core_ticks("intr 1 2 3")

"""One other node's clock: measured, the same as ours, or common by decree, and what is told when that is not so."""

from __future__ import annotations

import pytest

from ringcast.daemon.clocks.peer import PeerClock
from tests.unit.clock.simulated import START_NS, Pair, idle

SECOND = 1e9


def fed(clock: PeerClock, pair: Pair, count: int = 50) -> list[str]:
    """Kinds of what was told."""
    told = []
    for _ in range(count):
        exchange = pair.exchange()
        told += [event.kind for event in clock.add(exchange, exchange.received_ns)]
    return told


def opened(pair: Pair, *, same: bool = False, common: bool = False) -> PeerClock:
    clock = PeerClock("b", common=common)
    clock.opened(same=same)
    fed(clock, pair)
    return clock


def now(pair: Pair) -> int:
    return START_NS + int(pair.now_ns)


def test_a_clock_of_its_own_is_translated() -> None:
    pair = Pair(5 * SECOND, 7e-6)
    clock = opened(pair)
    status = clock.status(now(pair))
    assert (status.source, status.probes) == ("measured", 50)
    assert abs(status.offset_ns - pair.offset_ns(pair.now_ns)) <= status.bound_ns
    local, remote = pair._here(pair.now_ns), pair._there(pair.now_ns)
    assert abs(clock.base.to_local(remote) - local) <= status.bound_ns
    assert not clock.base.same


def test_the_very_clock_of_this_node_is_not_translated() -> None:
    pair = Pair(0, 0)
    clock = opened(pair, same=True)
    assert clock.base.same
    status = clock.status(now(pair))
    assert (status.source, status.offset_ns, status.bound_ns) == ("same", 0, 0)
    assert status.half_round_trip_ns > 0, "probes go on"


def test_one_boot_identity_and_two_clocks() -> None:
    """Machines woken from one snapshot."""
    clock, pair = PeerClock("b", common=False), Pair(5 * SECOND, 0)
    clock.opened(same=True)
    assert fed(clock, pair) == ["apart"]
    assert clock.status(now(pair)).source == "measured"
    assert not clock.base.same


def test_a_common_source_that_holds() -> None:
    pair = Pair(10_000, 0)
    clock = opened(pair, common=True)
    status = clock.status(now(pair))
    assert (status.source, status.offset_ns, status.violation) == ("common", 0, "")
    assert 10_000 <= status.bound_ns < 200_000
    assert clock.base.same


def test_a_common_source_that_is_violated_is_told_once_and_again_when_it_is_over() -> None:
    pair = Pair(0, 0)
    clock = opened(pair, common=True)
    pair.ahead_ns = 2e6
    assert fed(clock, pair) == ["step", "violation"]
    assert "clock.source" in clock.status(now(pair)).violation
    assert clock.base.same, "and nothing is translated: that is what the setting says"
    pair.ahead_ns = 0
    assert fed(clock, pair) == ["step", "agreed"]
    assert not clock.status(now(pair)).violation


@pytest.mark.parametrize("by_ns", [1e6, -1e6])
def test_a_step_is_told_and_counted(by_ns: float) -> None:
    pair = Pair(5 * SECOND, 7e-6)
    clock = opened(pair)
    pair.ahead_ns += by_ns
    assert fed(clock, pair, 10) == ["step"]
    assert clock.status(now(pair)).steps == 1


def test_nothing_is_known_of_a_clock_that_does_not_answer() -> None:
    status = PeerClock("b", common=False).status(START_NS)
    assert (status.source, status.probes) == ("unknown", 0)


def test_a_bound_that_is_wider_than_the_path_allows_is_noticed() -> None:
    pair = Pair(5 * SECOND, 0)
    clock = opened(pair)
    assert not clock.is_wide
    pair.delays = lambda rng: (1e6, 1e6)
    fed(clock, pair, 150)  # for fifteen seconds no probe is fast
    assert clock.is_wide
    pair.delays = idle
    fed(clock, pair, 5)
    assert not clock.is_wide

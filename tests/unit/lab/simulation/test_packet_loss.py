"""The simulator against what is known without it, and the paper's grid in small."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.packet_loss import Scenario


def run(transport: str, **changes: object) -> packet_loss.Outcome:
    return packet_loss.run(Scenario(transport=transport, **{"updates": 2_000, **changes}))  # type: ignore[arg-type]


def test_the_seed_decides_everything() -> None:
    one, same, other = (run("lateral+nak:r=4,c=3", loss=0.05, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one._ticks, same._ticks)
    assert not np.array_equal(one._ticks, other._ticks)


@pytest.mark.parametrize("burst", [1.0, 3.0])
def test_without_recovery_what_is_lost_is_lost(burst: float) -> None:
    outcome = run("multicast", loss=0.05, burst=burst, updates=20_000, receivers=10)
    assert outcome.delivered_share == pytest.approx(0.95, abs=0.005)
    lost = ~outcome.received
    runs = (lost[:, 1:] & ~lost[:, :-1]).sum()
    expected = burst if burst > 1 else 1 / 0.95
    assert lost.sum() / runs == pytest.approx(expected, rel=0.1)


def test_latency_is_the_models() -> None:
    outcome = run("multicast", delay_us=100, jitter_us=50, send_us=10)
    assert outcome.latencies_s.min() >= 110e-6 - 1e-7
    assert outcome.latencies_s.max() <= 160e-6
    udp = run("udp", delay_us=100, jitter_us=0, send_us=10, receivers=4)
    assert udp.latency_of(3)[0] - udp.latency_of(0)[0] == pytest.approx(30e-6)


@pytest.mark.parametrize("transport", ["nak", "ack", "lateral+nak:r=4,c=3", "tcp"])
@pytest.mark.parametrize("burst", [1.0, 3.0])
def test_what_promises_all_delivers_all_in_order(transport: str, burst: float) -> None:
    outcome = run(transport, loss=0.05, burst=burst, receivers=5, rate_hz=50, feedback_loss=0.05)
    assert outcome.delivered_share == 1.0
    assert (outcome.out_of_order, outcome.duplicates, outcome.stalled) == (0, 0, 0)


@pytest.mark.parametrize(
    ("transport", "receivers", "loss", "least"),
    [("lateral:r=4,c=3", 3, 0.01, 99.93), ("lateral:r=4,c=3", 25, 0.01, 99.92), ("lateral:r=8,c=3", 3, 0.03, 99.4)],
)
def test_lateral_recovers_what_the_analysis_says(transport: str, receivers: int, loss: float, least: float) -> None:
    outcome = run(transport, receivers=receivers, loss=loss, updates=10_000)
    assert 100 * outcome.delivered_share >= least
    assert outcome.duplicates == 0


def test_lateral_costs_c_by_r() -> None:
    outcome = run("lateral:r=4,c=3", receivers=25)
    assert outcome.receivers["repair"][0] / (25 * 2_000) == pytest.approx(3 / 4, rel=0.01)


def test_parity_leaves_what_the_formula_says() -> None:
    """q * P[Bin(r + c - 1, q) >= c], with r = 4, c = 1: one more loss among the other four."""
    q = 0.05
    outcome = run("parity:r=4,c=1,flush=10s", loss=q, updates=20_000, receivers=10)
    expected = q * (1 - (1 - q) ** 4)
    assert 1 - outcome.delivered_share == pytest.approx(expected, rel=0.1)


def test_few_ask_when_a_thousand_miss_the_same() -> None:
    outcome = run("nak", receivers=1_000, updates=20, rate_hz=50, lost_by_all=10, rest_s=1)
    assert outcome.delivered_share == 1.0
    assert 1 <= outcome.receivers["nak"][0] < 10


def test_multicast_is_one_packet_and_udp_one_each() -> None:
    assert run("multicast", receivers=8).publisher["data"][0] == 2_000
    assert run("udp", receivers=8).publisher["data"][0] == 16_000


def test_tcp_sends_nothing_new_while_it_repairs_so_a_repair_lost_again_waits_for_the_timeout() -> None:
    outcome = run("tcp", receivers=1, loss=0.05, rate_hz=100, updates=4_000)
    latencies = outcome.latency_of(0)
    assert latencies.size == 4_000
    begun = np.flatnonzero((latencies[1:] > 0.2) & (latencies[:-1] < 0.2))
    # One loss in twenty is lost again: about ten of 4,000, each with what was due meanwhile behind it.
    assert 3 <= begun.size <= 25
    behind = latencies[begun[0] + 2]
    assert behind == pytest.approx(latencies[begun[0] + 1] - 0.01, abs=0.001)


def test_a_burst_ends_while_tcp_waits_for_its_timeout() -> None:
    outcome = run("tcp", loss=0.05, burst=3, rate_hz=100, updates=4_000)
    assert outcome.delivered_share == 1.0
    # Twenty updates' time after the first of a burst the second attempt comes, and seldom is lost.
    assert outcome.latencies_s.max() < 2


def test_tcp_waits_for_the_next_packet_or_the_timeout() -> None:
    at_once = run("tcp", loss=0.02, rate_hz=100)
    slow = run("tcp", loss=0.02, rate_hz=2, updates=1_000)
    late = at_once.latencies_s[at_once.latencies_s > 0.005]
    # The next packet's acknowledgement reveals it, one gap and a round trip later.
    assert np.median(late) == pytest.approx(0.0107, abs=0.001)
    late = slow.latencies_s[slow.latencies_s > 0.005]
    assert np.median(late) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("delay_us", [40.0, 150.0, 5_000.0, 60_000.0])
def test_the_round_trip_is_measured_as_daemons_do_it(delay_us: float) -> None:
    """From the same starting value on networks from a switch to half the world."""
    outcome = run("nak", loss=0.02, delay_us=delay_us, jitter_us=10.0, rest_s=30.0, updates=4_000, receivers=30)
    actual_s = 2 * (delay_us + 5.0) * 1e-6
    assert actual_s <= outcome.grtt_s <= 1.3 * actual_s + 100e-6
    assert outcome.delivered_share == 1.0
    assert outcome.stalled == 0


def test_with_the_round_trip_measured_few_ask_on_a_slow_network_too() -> None:
    outcome = run("nak", delay_us=30_000.0, receivers=1_000, updates=400, lost_by_all=350)
    assert outcome.receivers["nak"][0] < 10
    assert outcome.delivered_share == 1.0


@pytest.mark.parametrize("transport", ["multicast", "udp", "tcp"])
def test_a_narrow_line_takes_its_time(transport: str) -> None:
    calm = {"delay_us": 100, "jitter_us": 0, "send_us": 0, "receivers": 2, "payload_bytes": 1000, "updates": 10}
    endless, narrow = run(transport, **calm), run(transport, bandwidth_mbit=8, **calm)
    longer = narrow.latencies_s.reshape(2, -1)[:, 0] - endless.latencies_s.reshape(2, -1)[:, 0]
    turns = [1, 1] if transport == "multicast" else [1, 2]
    # A microsecond for each byte, heads included, and once more for each receiver who is served before.
    heads = longer[0] * 1e6 - 1000
    assert 42 <= heads <= 120
    assert longer * 1e6 == pytest.approx([turn * (1000 + heads) for turn in turns], abs=1)

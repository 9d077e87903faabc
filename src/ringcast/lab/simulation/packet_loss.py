"""Loss in virtual time: a publisher, its receivers and a transport, thousands of them if need be, from one seed.

The stacks are the native code that daemons run; only hosts and links are modelled (`native/lab`):

- a datagram takes a host `send_us`, and longer if its line has a `bandwidth_mbit`, one after the other, and travels
  `delay_us` to `delay_us + jitter_us`;
- packets are lost where they arrive, at the receivers: alone, or in bursts of `burst` packets on average;
- udp is a datagram to each receiver in turn, multicast one for all; tcp is a model (`native/lab/tcp_model.cpp`).

Receiving costs no time here, so what a stage costs a processor is not seen: the benchmark measures that.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ringcast import _lab
from ringcast.transport.stack import Loss, parse

TCP, UDP = "tcp", "udp"
_TICK_S = _lab.SIMULATED_UNIT_NS * 1e-9


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `transport` is tcp, udp, or a stack's text as `lateral:r=4,c=3`.

    Without `multicast` each receiver gets a datagram of its own; udp and tcp always do that.
    """

    transport: str
    multicast: bool = True
    receivers: int = 3
    loss: float = 0.0
    burst: float = 1.0
    rate_hz: float = 100.0
    updates: int = 20_000
    payload_bytes: int = 12
    delay_us: float = 150.0
    jitter_us: float = 100.0
    send_us: float = 5.0
    bandwidth_mbit: float = math.inf
    """Of each host's own line, on which it sends."""
    feedback_loss: float = 0.0
    rest_s: float = 5.0
    lost_by_all: int | None = None
    """No receiver gets this update at first, so that all of them request it at once."""
    seed: int = 1


class Outcome:
    """What a run gave. Latencies are in seconds, from the moment an update was due; NaN where it never came."""

    def __init__(self, scenario: Scenario, raw: dict[str, Any]) -> None:
        self.scenario = scenario
        self._ticks: npt.NDArray[np.uint32] = raw["latency"]
        self.unsettled: list[int] = raw["unsettled"]
        self.gone: list[int] = raw["gone"]
        self.skipped: list[int] = raw["skipped"]
        """By receiver, messages that the network lost, before any repair; empty for tcp, which hides them."""
        self.gaps: list[int] = raw["gaps"]
        self.heard: list[int] = raw["heard"]
        """By receiver, datagrams that came, of every kind."""
        self.grtt_s: float = raw["grtt_ns"] * 1e-9
        """The group's greatest round trip, as the publisher's node measured it; 0 without nak."""
        self.publisher: dict[str, tuple[int, int]] = raw["publisher"]
        """(datagrams, bytes) sent, by kind; a multicast counts once."""
        self.receivers: dict[str, tuple[int, int]] = raw["receivers"]
        self.out_of_order: int = raw["out_of_order"]
        self.duplicates: int = raw["duplicates"]
        self.events: int = raw["events"]

    @cached_property
    def received(self) -> npt.NDArray[np.bool_]:
        """Receivers by updates."""
        return np.not_equal(self._ticks, _lab.SIMULATED_NEVER)

    @cached_property
    def latencies_s(self) -> npt.NDArray[np.float64]:
        """Of everything that came, all receivers together."""
        return self._ticks[self.received].astype(np.float64) * _TICK_S

    def latency_of(self, receiver: int) -> npt.NDArray[np.float64]:
        """Of what that receiver got, in the order of sending."""
        ticks: npt.NDArray[np.uint32] = self._ticks[receiver][self.received[receiver]]
        return ticks.astype(np.float64) * _TICK_S

    @property
    def delivered_share(self) -> float:
        return float(self.received.mean())

    @property
    def stalled(self) -> int:
        """Receivers that at the end still wait for something that was neither delivered nor reported lost."""
        return sum(1 for left in self.unsettled if left > 0)

    @property
    def wire_bytes(self) -> int:
        return sum(size for traffic in (self.publisher, self.receivers) for _, size in traffic.values())

    @property
    def datagrams(self) -> int:
        return sum(number for traffic in (self.publisher, self.receivers) for number, _ in traffic.values())


def run(scenario: Scenario) -> Outcome:
    """Raises BadTransport, ValueError."""
    stages: tuple[str, ...] = ()
    tuning: dict[str, int] = {}
    if scenario.transport not in (TCP, UDP):
        stack = parse(scenario.transport)
        stages, tuning = stack.stages, stack.tuning
    rate, enter, leave = Loss(scenario.loss, scenario.burst).native()
    byte_us = 8 / scenario.bandwidth_mbit
    raw = _lab.simulate_loss(
        list(stages),
        tcp=scenario.transport == TCP,
        multicast=scenario.multicast and scenario.transport != UDP,
        receivers=scenario.receivers,
        updates=scenario.updates,
        gap_ns=round(1e9 / scenario.rate_hz),
        payload=scenario.payload_bytes,
        loss=rate,
        loss_enter=enter,
        loss_leave=leave,
        feedback_loss=scenario.feedback_loss,
        delay_ns=round(scenario.delay_us * 1e3),
        jitter_ns=round(scenario.jitter_us * 1e3),
        send_ns=round(scenario.send_us * 1e3),
        byte_ns=1e3 * byte_us,
        rest_ns=round(scenario.rest_s * 1e9),
        lost_by_all=scenario.lost_by_all,
        seed=scenario.seed,
        # Daemons know their group; the round trip is measured, here as there.
        tuning={"group": scenario.receivers, **tuning},
    )
    return Outcome(scenario, raw)

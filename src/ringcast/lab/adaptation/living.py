"""A stream in virtual time, second by second, carried by what is fixed or by what chooses itself.

A second (at low rates: ten messages) is simulated by the native stacks; then the receivers' counters are looked at, by
the very code by which daemons choose. What a change of transport costs in daemons (nothing lost, a moment in which both
are open) is not simulated: the real network shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ringcast.adapt.deciding import Deciding
from ringcast.adapt.environment import Environment, Surroundings
from ringcast.adapt.model import Chooser
from ringcast.adapt.names import carried
from ringcast.adapt.ranking import Ranking, ranked
from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import Counted, Heard
from ringcast.lab.adaptation.phases import SETTLING, Phase
from ringcast.lab.simulation.packet_loss import Outcome, run
from ringcast.measure import relate

LEAST_MESSAGES = 10
FIRST = "nak"


@dataclass
class Life:
    """What came of a phase after the choice had settled, and what was chosen."""

    latencies: list[np.ndarray] = field(default_factory=list)
    sent: int = 0
    chosen: list[tuple[int, str]] = field(default_factory=list)
    """(message, transport) of every change."""

    def relate2(self) -> float:
        came = np.concatenate(self.latencies) if self.latencies else np.zeros(0)
        if not came.size:
            return float("inf")
        return relate.relate2(1e3 * float(came.mean()), self.sent, int(came.size))


class Carrier:
    """Always the same."""

    def __init__(self, transport: str) -> None:
        self.transport = transport

    def look(self, now_s: float, heard: list[Heard]) -> None:
        pass


class Choosing(Carrier):
    """As a daemon that keeps the tag: the same environment, ranking and hysteresis."""

    def __init__(self, model: Chooser | None) -> None:
        super().__init__(FIRST)
        self._model = model
        self._surroundings = Surroundings()
        self._deciding = Deciding()
        self._chosen = ""
        self.whys: list[str] = []

    def look(self, now_s: float, heard: list[Heard]) -> None:
        self._surroundings.look(now_s, heard)
        environment = self._surroundings.environment()
        if environment is None:
            return
        decision = self._deciding.decide(now_s, self._chosen, environment, self._ranked(environment))
        if decision.change:
            self.transport = self._chosen = decision.transport
            self.whys.append(decision.why)

    def _ranked(self, environment: Environment) -> Ranking:
        current = carried(self._chosen) if self._chosen else ""
        found = ranked(environment, Wish("relate2", ordered=False), self._model, anything_serves, current)
        return found._replace(names=[simulated(name) for name in found.names])


def anything_serves(transport: str, wish: Wish) -> bool:
    """Nothing is promised here."""
    return True


def simulated(transport: str) -> str:
    """As the simulator writes what daemons call so: there everything but udp and tcp is multicast."""
    return transport.removeprefix("multicast+")


def live(phases: Sequence[Phase], carrier: Carrier, seed: int) -> list[Life]:
    """Raises BadTransport."""
    totals: dict[tuple[int, str], Counted] = {}
    lives, now_s = [], 0.0
    for number, phase in enumerate(phases):
        life, sent = Life(), 0
        life.chosen.append((0, carrier.transport))
        while sent < phase.messages:
            messages = min(max(round(phase.cell.rate_hz), LEAST_MESSAGES), phase.messages - sent)
            scenario = phase.cell.scenario(carrier.transport, messages, 1_000_003 * seed + 1_009 * number + sent)
            outcome = run(msgspec.structs.replace(scenario, rest_s=1.0))
            if sent >= SETTLING:
                life.latencies.append(outcome.latencies_s)
                life.sent += outcome.received.size
            sent += messages
            now_s += messages / phase.cell.rate_hz
            before = carrier.transport
            carrier.look(now_s, _heard(phase, carrier.transport, outcome, totals))
            if carrier.transport != before:
                totals.clear()  # a channel that is opened counts from 0
                life.chosen.append((sent, carrier.transport))
        lives.append(life)
    return lives


def _heard(phase: Phase, transport: str, outcome: Outcome, totals: dict[tuple[int, str], Counted]) -> list[Heard]:
    heard = []
    for receiver in range(phase.cell.receivers):
        came = int(outcome.received[receiver].sum())
        missing = outcome.received.shape[1] - came
        hidden = not outcome.skipped
        skipped, gaps = (0, 0) if hidden else (outcome.skipped[receiver], outcome.gaps[receiver])
        then = totals.get((receiver, transport), Counted(1, transport, 0, 0, 0, hidden=hidden))
        now = Counted(
            1, transport, then.messages + came, then.bytes + came * phase.cell.payload_bytes, then.lost + missing,
            then.skipped + skipped, then.gaps + gaps, hidden,
            packets=then.packets + (0 if hidden else outcome.heard[receiver]),
        )  # fmt: skip
        totals[receiver, transport] = now
        heard.append(
            Heard(f"r{receiver}", [now], 2e-6 * phase.cell.delay_us, phase.cell.bandwidth_mbit * 1e6 / 8)
        )  # fmt: skip
    return heard

"""The phases on a real network, at a reduced size: daemons in network namespaces, kernel loss, a queue as a thin link.

All carriers live through a phase side by side, each on a tag of its own: the kernel loses packets independently of each
other, so none changes what another meets, and what the machine does meanwhile meets all of them.
On a thin link one carrier would fill another's queue, and packets that are lost in a row would be of different
carriers: there they take turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ringcast.lab.adamant.field.network import HUB, FieldNetwork
from ringcast.lab.adamant.grid import BASELINES
from ringcast.lab.adaptation.phases import FIXED as SIMULATED
from ringcast.lab.adaptation.phases import SETTLING
from ringcast.lab.measuring.report import Steps
from ringcast.measure import relate
from ringcast.model.carrier import choice_key

ADAPTIVE = "auto:relate2"
FIXED = tuple(name if name in BASELINES else f"multicast+{name}" for name in SIMULATED)
"""All that the simulated stream is carried by, as daemons call it."""
QUICK_FIXED = ("multicast", "multicast+nak", "multicast+parity:r=4,c=3")
SIZE = 200
FEW = 3
THIN = "2mbit"
STEADY_S, STEADY_HZ, STEADY_LOSS = 600.0, 50.0, 0.01
LOOK_S = 0.2
DRAIN_S = 1.0
"""After so long without a message all that was sent has come, or is lost."""
DRAIN_PATIENCE_S = 60.0
JOIN_PATIENCE_S = 60.0
_PUBLISHER, _RECORDER = "side by side", "recorders"


class RealPhase(NamedTuple):
    name: str
    messages: int
    receivers: int = FEW
    loss: float = 0.0
    rate_hz: float = 100.0
    line: str | None = None
    """The publisher's; None: as fast as the machine."""
    burst: float = 1.0
    """Packets that are lost in a row, on average."""

    @property
    def seconds(self) -> float:
        return self.messages / self.rate_hz


def phases(quick: bool) -> tuple[RealPhase, ...]:
    if quick:
        return (
            RealPhase("nothing is lost", 700), RealPhase("5 % is lost", 900, loss=0.05),
            RealPhase("a thin link", 500, loss=0.02, line=THIN),
        )  # fmt: skip
    return (
        RealPhase("nothing is lost", 1_200), RealPhase("1 % is lost", 1_500, loss=0.01),
        RealPhase("5 % is lost", 1_500, loss=0.05), RealPhase("8 receivers", 1_500, 8, 0.05),
        RealPhase("bursts of 4", 1_000, loss=0.05, burst=4.0),
        RealPhase("25 Hz", 900, loss=0.03, rate_hz=25.0), RealPhase("a thin link", 1_000, loss=0.02, line=THIN),
    )  # fmt: skip


def steady() -> RealPhase:
    """Ten minutes in which nothing changes."""
    return RealPhase("nothing changes", round(STEADY_S * STEADY_HZ), loss=STEADY_LOSS, rate_hz=STEADY_HZ)


def turns(phase: RealPhase, tags: Sequence[str]) -> list[list[str]]:
    """Which tags live through the phase at once. Pure."""
    return [[tag] for tag in tags] if phase.line or phase.burst > 1 else [list(tags)]


@dataclass
class Came:
    """Of what a phase sent on one tag after the choice had settled, at all its receivers together."""

    sent: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    twice: int = 0

    def relate2(self) -> float:
        if not self.latencies_ms:
            return float("inf")
        return relate.relate2(float(np.mean(self.latencies_ms)), self.sent, len(self.latencies_ms))


@dataclass
class Lived:
    came: dict[str, list[Came]] = field(default_factory=dict)
    """By carrier, phase by phase."""
    chosen: list[tuple[float, str]] = field(default_factory=list)
    """(seconds since it began, transport), whenever that changed."""
    began: list[float] = field(default_factory=list)
    """Of each phase, in the same seconds."""
    whys: list[str] = field(default_factory=list)


class Living:
    """All carriers through all phases, on a network that has enough receivers."""

    def __init__(self, network: FieldNetwork, carriers: Sequence[str], steps: Steps) -> None:
        self._network = network
        self._steps = steps
        self._tags = {carrier: network.tag() for carrier in carriers}
        self._began = 0.0
        self.lived = Lived({carrier: [] for carrier in carriers})

    def live(self, plan: Sequence[RealPhase]) -> Lived:
        """Raises ActorFailed, LabError."""
        network = self._network
        most = network.there(max(phase.receivers for phase in plan))
        network.start([network.here, *most])
        publisher, tags = network.actor(network.here), list(self._tags.values())
        publisher.ask("open", end=_PUBLISHER, name=_PUBLISHER, tags=tags)
        network.mesh.wait_for_publisher(*tags)
        self._join(network.there(FEW))
        self._began = time.monotonic()
        firsts: list[dict[str, int]] = []
        late: dict[int, list[dict[str, Any]]] = {}
        for number, phase in enumerate(plan):
            self._steps.step(f"real network: {phase.name}")
            more = network.there(phase.receivers)[FEW:]
            self._join(more)
            self.lived.began.append(time.monotonic() - self._began)
            firsts.append(self._through(phase))
            late[number] = self._leave(more)
        heard = self._leave(network.there(FEW))
        publisher.ask("close", name=_PUBLISHER)
        for number, phase in enumerate(plan):
            for carrier, tag in self._tags.items():
                ends = [*heard, *late[number]]
                self.lived.came[carrier].append(came(phase, firsts[number][tag], [one[tag] for one in ends]))
        return self.lived

    def _join(self, nodes: Sequence[str]) -> None:
        asked = {tag: (carrier, False) for carrier, tag in self._tags.items()}
        for node in nodes:
            self._network.actor(node).post("open", end=_RECORDER, name=_RECORDER, asked=asked)
        for node in nodes:
            self._network.actor(node).reply(JOIN_PATIENCE_S)
        for node in nodes:
            for tag in asked:
                self._network.mesh.wait_for_way(tag, self._network.here, node)

    def _leave(self, nodes: Sequence[str]) -> list[dict[str, Any]]:
        for node in nodes:
            self._network.actor(node).post("taken", name=_RECORDER, quiet_s=DRAIN_S)
        found = [self._network.actor(node).reply(DRAIN_PATIENCE_S) for node in nodes]
        for node in nodes:
            self._network.actor(node).ask("close", name=_RECORDER)
        return found

    def _through(self, phase: RealPhase) -> dict[str, int]:
        network, nodes = self._network, self._network.there(phase.receivers)
        wire = network.mesh.bed.link(network.here, HUB)
        network.lose(phase.loss, nodes, phase.burst)
        if phase.line is not None:
            wire.set_rate(phase.line, to=HUB)
        try:
            firsts: dict[str, int] = {}
            for tags in turns(phase, list(self._tags.values())):
                firsts |= self._publish(phase, tags)
            return firsts
        finally:
            network.lose(0.0, nodes)
            if phase.line is not None:
                wire.set_rate(None, to=HUB)

    def _publish(self, phase: RealPhase, tags: list[str]) -> dict[str, int]:
        """And look meanwhile at what was chosen."""
        publisher = self._network.actor(self._network.here)
        how = {"tags": tags, "count": phase.messages, "rate_hz": phase.rate_hz, "size": SIZE}
        publisher.post("publish", name=_PUBLISHER, **how)
        until = time.monotonic() + phase.seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            time.sleep(min(LOOK_S, left))
        self._look()
        firsts: dict[str, int] = publisher.reply(phase.seconds + 10)
        return firsts

    def _look(self) -> None:
        tag = self._tags.get(ADAPTIVE)
        rows = self._network.mesh.sessions[self._network.here].tags(tag) if tag else []
        for row in rows:
            found = row.chosen.get(choice_key(ADAPTIVE, False, False))
            if found is not None and [found.transport] != [name for _, name in self.lived.chosen[-1:]]:
                self.lived.chosen.append((time.monotonic() - self._began, found.transport))
                self.lived.whys.append(found.why)


def came(phase: RealPhase, first: int, ends: Sequence[Sequence[Sequence[int]]]) -> Came:
    """`ends` are numbers and latencies in nanoseconds, by receiver; `first` is the number of the phase's first message.
    Of messages that came twice the first one counts. Pure."""
    settling = min(SETTLING, phase.messages // 2)
    found = Came((phase.messages - settling) * len(ends))
    for seqs, latencies in ends:
        seen: set[int] = set()
        for seq, latency in zip(seqs, latencies, strict=True):
            if first <= seq < first + phase.messages:
                found.twice += seq in seen
                if seq >= first + settling and seq not in seen:
                    found.latencies_ms.append(1e-6 * latency)
                seen.add(seq)
    return found

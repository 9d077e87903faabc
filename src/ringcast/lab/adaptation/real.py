"""The phases on a real network, at a reduced size: daemons in network namespaces, kernel loss, a queue as a thin link.

Carriers live through a phase side by side, each on a tag of its own from a node of its own: none shares a line with
another, and of what each one sends a receiver's kernel loses the same packets, the twentieth, say, and the
thirty-second. So none changes what another meets, and what chance and the machine do meanwhile meets all of them. What
one has left in a queue is gone before the next phase begins.

The least of many measurements is the luckiest one. So what the best fixed carrier costs is told by other measurements
than those that say which is the best: at each receiver it is the one that is best at all the others. Costs are means
over receivers. How much of a ratio is chance is told by its stretches (`chance`).

The thin link carries the messages four times over, so a publisher who sends three repairs with each one fills it: a
link that has room for all that any transport sends is as good as a wide one, and shows nothing.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
QUICK_FIXED = (
    "multicast", "multicast+nak", "multicast+parity:r=4,c=3", "multicast+parity:r=4,c=2,flush=1s",
    "multicast+lateral:r=4,c=5",
)  # fmt: skip
SIZE = 200
FEW, MORE = 3, 8
THIN = "1mbit"
STRETCHES = 10
"""Of a phase, which say how much chance there is in it."""
STEADY_S, STEADY_HZ, STEADY_LOSS = 600.0, 50.0, 0.01
LOOK_S = 0.2
DRAIN_S = 1.0
"""After so long without a message all that was sent has come, or is lost, and queues are empty."""
DRAINED_S = 0.1
"""For those that sent no later than one that was waited for."""
DRAIN_PATIENCE_S = 60.0
JOIN_PATIENCE_S = 60.0
_PUBLISHER, _RECORDERS = "side by side", "recorders"


class RealPhase(NamedTuple):
    name: str
    messages: int
    receivers: int = FEW
    loss: float = 0.0
    rate_hz: float = 100.0
    line: str | None = None
    """Each publisher's; None: as fast as the machine."""
    burst: float = 1.0
    """Packets that are lost in a row, on average."""

    @property
    def seconds(self) -> float:
        return self.messages / self.rate_hz


def phases(quick: bool) -> tuple[RealPhase, ...]:
    if quick:
        # Many receivers see many losses in a short time.
        return (
            RealPhase("nothing is lost", 1_300, MORE), RealPhase("5 % is lost", 1_900, MORE, 0.05),
            RealPhase("a thin link", 1_900, MORE, 0.05, line=THIN),
        )  # fmt: skip
    return (
        RealPhase("nothing is lost", 6_000), RealPhase("1 % is lost", 9_000, loss=0.01),
        RealPhase("5 % is lost", 9_000, loss=0.05), RealPhase("8 receivers", 9_000, MORE, 0.05),
        RealPhase("bursts of 4", 9_000, loss=0.05, burst=4.0),
        RealPhase("25 Hz", 2_500, loss=0.03, rate_hz=25.0), RealPhase("a thin link", 9_000, MORE, 0.05, line=THIN),
    )  # fmt: skip


def steady() -> RealPhase:
    """Ten minutes in which nothing changes."""
    return RealPhase("nothing changes", round(STEADY_S * STEADY_HZ), loss=STEADY_LOSS, rate_hz=STEADY_HZ)


@dataclass
class Came:
    """Of what a phase sent on one tag after the choice had settled, at one receiver."""

    sent: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    twice: int = 0
    stretches: list[list[float]] = field(default_factory=list)
    """The same latencies by when their messages were sent, in parts of the phase that are equally long."""

    def relate2(self) -> float:
        return _relate2(self.sent, self.latencies_ms)

    def by_stretch(self) -> list[float]:
        return [_relate2(round(self.sent / len(self.stretches)), part) for part in self.stretches]


def cost(receivers: Sequence[Came]) -> float:
    """Their ReLate2 in the mean."""
    return statistics.fmean(one.relate2() for one in receivers)


def _relate2(sent: int, latencies_ms: Sequence[float]) -> float:
    if not latencies_ms:
        return float("inf")
    return relate.relate2(float(np.mean(latencies_ms)), sent, len(latencies_ms))


def _by_stretch(receivers: Sequence[Came]) -> list[float]:
    return [statistics.fmean(at) for at in zip(*map(Came.by_stretch, receivers), strict=True)]


def chance(some: Sequence[Came], others: Sequence[Came]) -> float | None:
    """The standard error of what some cost in times what the others did, as far as stretches of the phase tell; None
    where they do not. Pure."""
    mine, theirs = _by_stretch(some), _by_stretch(others)
    ratios = [one / other for one, other in zip(mine, theirs, strict=True) if other]
    if len(ratios) < 2 or not all(map(math.isfinite, ratios)):
        return None
    return statistics.stdev(ratios) / math.sqrt(len(ratios))


@dataclass
class Lived:
    came: dict[str, list[list[Came]]] = field(default_factory=dict)
    """By carrier, phase by phase, at each receiver."""
    chosen: list[tuple[float, str]] = field(default_factory=list)
    """(seconds since it began, transport), whenever that changed."""
    began: list[float] = field(default_factory=list)
    """Of each phase, in the same seconds."""
    whys: list[str] = field(default_factory=list)

    def best(self, phase: int) -> list[str]:
        """At each receiver of that phase, the fixed carrier that is the best at all the others."""
        return best_elsewhere(
            {
                carrier: [one.relate2() for one in found[phase]]
                for carrier, found in self.came.items() if carrier != ADAPTIVE
            }
        )  # fmt: skip

    def of_best(self, phase: int) -> list[Came]:
        """What came by those, at each receiver."""
        return [self.came[carrier][phase][at] for at, carrier in enumerate(self.best(phase))]


class _Recorder(NamedTuple):
    """On that node, of that tag; a node that comes again has another one."""

    number: int
    node: str
    tag: str

    @property
    def name(self) -> str:
        return f"recorder {self.number}"


class _Run(NamedTuple):
    """Of one carrier through a phase: the number of its first message, and who recorded it."""

    first: int
    recorders: list[_Recorder]


class Living:
    """All carriers through all phases, on a network with enough receivers and a publishing node for each carrier."""

    def __init__(self, network: FieldNetwork, carriers: Sequence[str], steps: Steps) -> None:
        self._network = network
        self._steps = steps
        self._tags = {carrier: network.tag() for carrier in carriers}
        self._homes = dict(zip(self._tags.values(), network.homes[: len(carriers)], strict=True))
        """From which node each tag is published."""
        self._began = 0.0
        self._numbers = itertools.count()
        self._recorders: list[_Recorder] = []
        """That are there now."""
        self._taken: dict[_Recorder, Sequence[Sequence[int]]] = {}
        """What those saw that left."""
        self.lived = Lived({carrier: [] for carrier in carriers})

    def live(self, plan: Sequence[RealPhase]) -> Lived:
        """Raises ActorFailed, LabError."""
        network = self._network
        network.start([network.here, *network.there(max(phase.receivers for phase in plan))])
        publisher, tags = network.actor(network.here), list(self._tags.values())
        sockets = {tag: network.socket(home) for tag, home in self._homes.items()}
        publisher.ask("open", end=_PUBLISHER, name=_PUBLISHER, tags=tags, homes=sockets)
        network.mesh.wait_for_publisher(*tags)
        self._join(network.there(plan[0].receivers))
        self._began = time.monotonic()
        runs = []
        for phase in plan:
            self._steps.step(f"real network: {phase.name}")
            runs.append(self._through(phase))
        self._leave(self._recorders)
        publisher.ask("close", name=_PUBLISHER)
        for phase, found in zip(plan, runs, strict=True):
            for carrier, run in found.items():
                self.lived.came[carrier].append([came(phase, run.first, *self._taken[one]) for one in run.recorders])
        return self.lived

    def _join(self, nodes: Sequence[str]) -> None:
        """Those that are not there yet."""
        here = {(one.node, one.tag) for one in self._recorders}
        for carrier, tag in self._tags.items():
            new = [_Recorder(next(self._numbers), node, tag) for node in nodes if (node, tag) not in here]
            for one in new:
                how = {"name": one.name, "asked": {tag: (carrier, False)}}
                self._network.actor(one.node).post("open", end=_RECORDERS, **how)
            for one in new:
                self._network.actor(one.node).reply(JOIN_PATIENCE_S)
            for one in new:
                self._network.mesh.wait_for_way(tag, self._homes[tag], one.node)
            self._recorders += new

    def _leave(self, leaving: Sequence[_Recorder]) -> None:
        quiet_s = DRAIN_S
        for tag in dict.fromkeys(one.tag for one in leaving):
            of = [one for one in leaving if one.tag == tag]
            for one in of:
                self._network.actor(one.node).post("taken", name=one.name, quiet_s=quiet_s)
            for one in of:
                self._taken[one] = self._network.actor(one.node).reply(DRAIN_PATIENCE_S)[tag]
            for one in of:
                self._network.actor(one.node).post("close", name=one.name)
            for one in of:
                self._network.actor(one.node).reply()
            quiet_s = DRAINED_S
        self._recorders = [one for one in self._recorders if one not in self._taken]

    def _through(self, phase: RealPhase) -> dict[str, _Run]:
        """Each carrier's run."""
        network, nodes = self._network, self._network.there(phase.receivers)
        self._leave([one for one in self._recorders if one.node not in nodes])
        self._join(nodes)
        self.lived.began.append(time.monotonic() - self._began)
        network.lose(phase.loss, nodes, phase.burst)
        if phase.line is not None:
            self._narrow(phase.line)
        try:
            return self._publish(phase)
        finally:
            network.lose(0.0, nodes)
            if phase.line is not None:
                time.sleep(DRAIN_S)
                self._narrow(None)

    def _narrow(self, line: str | None) -> None:
        """Of each node that publishes, the line by which it sends."""
        for home in self._homes.values():
            self._network.mesh.bed.link(home, HUB).set_rate(line, to=HUB)

    def _publish(self, phase: RealPhase) -> dict[str, _Run]:
        """And look meanwhile at what was chosen."""
        publisher = self._network.actor(self._network.here)
        how = {"tags": list(self._tags.values()), "count": phase.messages, "rate_hz": phase.rate_hz, "size": SIZE}
        publisher.post("publish", name=_PUBLISHER, **how)
        until = time.monotonic() + phase.seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            time.sleep(min(LOOK_S, left))
        firsts: dict[str, int] = publisher.reply(phase.seconds + 10)
        self._look()
        return {
            carrier: _Run(firsts[tag], [one for one in self._recorders if one.tag == tag])
            for carrier, tag in self._tags.items()
        }

    def _look(self) -> None:
        tag = self._tags.get(ADAPTIVE)
        rows = self._network.mesh.sessions[self._homes[tag]].tags(tag) if tag else []
        for row in rows:
            found = row.chosen.get(choice_key(ADAPTIVE, False, False))
            if found is not None and [found.transport] != [name for _, name in self.lived.chosen[-1:]]:
                self.lived.chosen.append((time.monotonic() - self._began, found.transport))
                self.lived.whys.append(found.why)


def best_elsewhere(costs: Mapping[str, Sequence[float]]) -> list[str]:
    """For each receiver the carrier that costs the others least; `costs` are by receiver. Pure."""
    return [
        min(costs, key=lambda carrier: math.fsum(costs[carrier][:at]) + math.fsum(costs[carrier][at + 1 :]))
        for at in range(len(next(iter(costs.values()), ())))
    ]


def came(phase: RealPhase, first: int, seqs: Sequence[int], latencies: Sequence[int]) -> Came:
    """At a receiver of these messages, so many nanoseconds after they were sent; `first` is the number of the phase's
    first one. Of messages that came twice the first one counts. Pure."""
    settling = min(SETTLING, phase.messages // 2)
    counted = phase.messages - settling
    found = Came(counted, stretches=[[] for _ in range(STRETCHES)])
    seen: set[int] = set()
    for seq, latency in zip(seqs, latencies, strict=True):
        if first <= seq < first + phase.messages:
            found.twice += seq in seen
            if (at := seq - first - settling) >= 0 and seq not in seen:
                found.latencies_ms.append(1e-6 * latency)
                found.stretches[at * STRETCHES // counted].append(1e-6 * latency)
            seen.add(seq)
    return found

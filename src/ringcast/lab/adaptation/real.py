"""The phases on a real network, at a reduced size: daemons in network namespaces, kernel loss, a queue as a thin link.

Carriers live through a phase side by side, each on a tag of its own from a node of its own: the kernel loses packets
independently of each other, and none shares a line with another, so none changes what another meets, and what the
machine does meanwhile meets all of them. Only packets that are lost in a row would be of different carriers: there they
take turns, and only who has its turn has subscribers. Who chooses itself is first: its stream goes on from the phase
before. What one has left in a queue is gone before the next phase begins.

What is lost is chance, and the least of many measurements is the luckiest one. So what the best fixed carrier costs is
told by another measurement than the one that says which is the best: of carriers that take turns it has another turn;
of those side by side, one half of the receivers says which is the best and the other half what it costs, and the other
way round. Both together say how well a phase repeats itself.

The thin link carries the messages four times over, so a publisher who sends three repairs with each one fills it: a
link that has room for all that any transport sends is as good as a wide one, and shows nothing.
"""

from __future__ import annotations

import itertools
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
            RealPhase("nothing is lost", 1_300, MORE), RealPhase("5 % is lost", 2_800, MORE, 0.05),
            RealPhase("a thin link", 2_800, MORE, 0.05, line=THIN),
        )  # fmt: skip
    return (
        RealPhase("nothing is lost", 1_200), RealPhase("1 % is lost", 1_500, loss=0.01),
        RealPhase("5 % is lost", 1_500, loss=0.05), RealPhase("8 receivers", 1_500, MORE, 0.05),
        RealPhase("bursts of 4", 1_000, loss=0.05, burst=4.0),
        RealPhase("25 Hz", 900, loss=0.03, rate_hz=25.0), RealPhase("a thin link", 1_000, MORE, 0.05, line=THIN),
    )  # fmt: skip


def steady() -> RealPhase:
    """Ten minutes in which nothing changes."""
    return RealPhase("nothing changes", round(STEADY_S * STEADY_HZ), loss=STEADY_LOSS, rate_hz=STEADY_HZ)


def turns(phase: RealPhase, carriers: Sequence[str]) -> list[list[str]]:
    """Which carriers live through the phase at once. Pure."""
    return [[carrier] for carrier in carriers] if phase.burst > 1 else [list(carriers)]


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


class Best(NamedTuple):
    """The best fixed carrier of a phase, what it costs by measurements that did not say so, and how many times one
    measurement of it is another."""

    carrier: str
    relate2: float
    again: float


@dataclass
class Lived:
    came: dict[str, list[Came]] = field(default_factory=dict)
    """By carrier, phase by phase."""
    chosen: list[tuple[float, str]] = field(default_factory=list)
    """(seconds since it began, transport), whenever that changed."""
    began: list[float] = field(default_factory=list)
    """Of each phase, in the same seconds."""
    whys: list[str] = field(default_factory=list)
    best: list[Best] = field(default_factory=list)
    """Of each phase."""


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
        self._join(turns(plan[0], list(self._tags))[0], network.there(plan[0].receivers))
        self._began = time.monotonic()
        runs = []
        for phase in plan:
            self._steps.step(f"real network: {phase.name}")
            runs.append(self._through(phase))
        self._leave(self._recorders)
        publisher.ask("close", name=_PUBLISHER)
        for phase, (found, second) in zip(plan, runs, strict=True):
            for carrier, run in found.items():
                self.lived.came[carrier].append(self._came(phase, run))
            if fixed := {carrier: run for carrier, run in found.items() if carrier != ADAPTIVE}:
                self.lived.best.append(self._best(phase, fixed, second))
        return self.lived

    def _join(self, carriers: Sequence[str], nodes: Sequence[str]) -> None:
        """Those that are not there yet."""
        here = {(one.node, one.tag) for one in self._recorders}
        for carrier in carriers:
            tag = self._tags[carrier]
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

    def _only(self, carriers: Sequence[str], nodes: Sequence[str]) -> None:
        """Have these carriers recorded on these nodes, and nothing else."""
        tags = {self._tags[carrier] for carrier in carriers}
        self._leave([one for one in self._recorders if one.tag not in tags or one.node not in nodes])
        self._join(carriers, nodes)

    def _through(self, phase: RealPhase) -> tuple[dict[str, _Run], dict[str, _Run]]:
        """Each carrier's run, and the second one of those that had one."""
        network, nodes = self._network, self._network.there(phase.receivers)
        found: dict[str, _Run] = {}
        every = turns(phase, list(self._tags))
        self._only(every[0], nodes)
        self.lived.began.append(time.monotonic() - self._began)
        network.lose(phase.loss, nodes, phase.burst)
        if phase.line is not None:
            self._narrow(phase.line)
        try:
            for carriers in every:
                self._only(carriers, nodes)
                found |= self._publish(phase, carriers)
            second: dict[str, _Run] = {}
            fixed = [carrier for carrier in found if carrier != ADAPTIVE]
            if len(every) > 1 and fixed:
                self._leave(self._recorders)
                best = min(fixed, key=lambda name: self._came(phase, found[name]).relate2())
                self._join([best], nodes)
                second = self._publish(phase, [best])
            return found, second
        finally:
            network.lose(0.0, nodes)
            if phase.line is not None:
                time.sleep(DRAIN_S)
                self._narrow(None)

    def _narrow(self, line: str | None) -> None:
        """Of each node that publishes, the line by which it sends."""
        for home in self._homes.values():
            self._network.mesh.bed.link(home, HUB).set_rate(line, to=HUB)

    def _came(self, phase: RealPhase, run: _Run, part: slice = slice(None)) -> Came:
        return came(phase, run.first, [self._taken[one] for one in run.recorders[part]])

    def _best(self, phase: RealPhase, fixed: dict[str, _Run], second: dict[str, _Run]) -> Best:
        """`second` has another run of the best, where carriers took turns."""

        def costs(part: slice = slice(None)) -> dict[str, float]:
            return {carrier: self._came(phase, run, part).relate2() for carrier, run in fixed.items()}

        for carrier, run in second.items():
            again = self._came(phase, run).relate2()
            return Best(carrier, again, _times(costs()[carrier], again))
        return best_of_halves(costs(slice(0, None, 2)), costs(slice(1, None, 2)))

    def _publish(self, phase: RealPhase, carriers: Sequence[str]) -> dict[str, _Run]:
        """And look meanwhile at what was chosen, whoever has its turn: looking takes processor time."""
        publisher = self._network.actor(self._network.here)
        tags = [self._tags[carrier] for carrier in carriers]
        how = {"tags": tags, "count": phase.messages, "rate_hz": phase.rate_hz, "size": SIZE}
        publisher.post("publish", name=_PUBLISHER, **how)
        until = time.monotonic() + phase.seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            time.sleep(min(LOOK_S, left))
        firsts: dict[str, int] = publisher.reply(phase.seconds + 10)
        self._look()
        there = {tag: [one for one in self._recorders if one.tag == tag] for tag in tags}
        return {carrier: _Run(firsts[tag], there[tag]) for carrier, tag in zip(carriers, tags, strict=True)}

    def _look(self) -> None:
        tag = self._tags.get(ADAPTIVE)
        rows = self._network.mesh.sessions[self._homes[tag]].tags(tag) if tag else []
        for row in rows:
            found = row.chosen.get(choice_key(ADAPTIVE, False, False))
            if found is not None and [found.transport] != [name for _, name in self.lived.chosen[-1:]]:
                self.lived.chosen.append((time.monotonic() - self._began, found.transport))
                self.lived.whys.append(found.why)


def best_of_halves(one: Mapping[str, float], other: Mapping[str, float]) -> Best:
    """What each half of the receivers saw of each fixed carrier. Pure."""
    first, second = (min(half, key=lambda name: half[name]) for half in (one, other))
    best = min(one, key=lambda name: one[name] + other[name])
    return Best(best, (other[first] + one[second]) / 2, _times(one[best], other[best]))


def _times(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


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

"""Complete streams across the wire, ours by tcp beside the peers': 64 bytes at a time, one call
per message, and a mebibyte at a time with both ends touching every byte. Each node has a core if there are two.

How many messages are sent is fixed before the clock runs, by a short trial, so that all are measured for about as long.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import Row, at_least, figure, scaled
from ringcast.lab.measuring.samples import median
from ringcast.lab.push_pull.peer_round_trips import HERE, OURS, THERE, TWO, WireNetwork
from ringcast.lab.testbed.actor import Actor, ActorFailed
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.peers import MISSING, Peer

LARGE = 1 << 20
WITH, WITHOUT = "segmentation offload", "packet by packet"
"""The kinds of wire. The verdicts differ, so both are shown."""
_ASK_S = 30.0
_SETTLE_S = 0.02


class Kind(NamedTuple):
    """One way of streaming: its commands, how many messages make a trial and the most worth sending, and how many
    times the fastest peer's rate is asked for."""

    title: str
    pump: str
    drain: str
    options: dict[str, int]
    trial: int
    most: int
    unit: str
    factor: float


SMALL = Kind("64 B, one call per message", "pump", "drain", {}, 2048, 1 << 20, "msg/s", 2.0)
BIG = Kind("1 MiB, every byte touched", "pump_large", "drain_large", {"size": LARGE}, 16, 2048, "B/s", 1.0)
KINDS = (SMALL, BIG)
MANY = Kind("64 B, 128 messages per call", "pump_many", "drain_many", {"batch": 128}, 2048, 1 << 21, "msg/s", 0.0)
ALL = (SMALL, MANY, BIG)
Rates = dict[tuple[str, str], list[float]]
"""Messages per second by title of the kind and contender, round by round."""


class _Ends:
    def __init__(self, source: Actor, sink: Actor, **arguments: Any) -> None:
        self.source, self.sink, self._arguments = source, sink, arguments
        self.counts: dict[str, int] = {}

    def stream(self, kind: Kind, count: int) -> float:
        """Messages per second. Raises ActorFailed; LabError when messages are missing."""
        if not self._arguments:  # a peer's sink may count in a callback, and must know what for
            self.sink.ask("expect", count=count, large=kind is BIG)
        self.sink.post(kind.drain, count=count, **kind.options, **self._arguments)
        # A sink that starts late would empty a queue, faster than anything is sent.
        time.sleep(_SETTLE_S)
        self.source.ask(kind.pump, _ASK_S, count=count, **kind.options, **self._arguments)
        seen = self.sink.reply(_ASK_S)
        if seen["received"] != count:
            raise LabError(f"{count - seen['received']} of {count} messages were lost")
        if kind is BIG and seen["total"] != count * (count - 1) // 2 * (LARGE // 8):
            raise LabError("the content that arrived is not what was sent")
        return float((count - 1) * 1e9 / max(seen["last_ns"] - seen["first_ns"], 1))

    def settle(self, kind: Kind, seconds: float) -> int:
        """How many messages make a stream of about that length. The first ones are slow: they touch new memory."""
        count = kind.trial
        while (taken := count / self.stream(kind, count)) < seconds / 2 and count < kind.most:
            count = min(kind.most, max(2 * count, int(count * seconds / taken)) // kind.trial * kind.trial)
        return count


def throughput(network: WireNetwork, quick: bool, steps: Steps) -> Findings:
    """Raises ActorFailed, LabError when Ringcast fails. A peer that fails is noted."""
    rounds, seconds = (2 if network.offload else 1, 0.15) if quick else (9, 0.6)
    rates = measure(network, rounds, seconds, steps)
    seen = {key: median(values) for key, values in rates.items()}
    return conclude(seen, network.peers.absent, WITH if network.offload else WITHOUT)


def measure(network: WireNetwork, rounds: int, seconds: float, steps: Steps) -> Rates:
    """Everybody's rates of each kind, round by round; neighbours in time are of one kind.

    Raises ActorFailed, LabError when Ringcast fails. A peer that fails is noted, and has the rounds before.
    """
    contenders: list[Peer | None] = [None, *network.peers.found]
    steps.expect(rounds * len(ALL))
    rates: Rates = defaultdict(list)
    with ExitStack() as stack:
        opened: dict[str, _Ends] = {}
        for number in range(rounds):
            for kind in ALL:
                steps.step(f"streams between two nodes: {kind.title}")
                for peer in contenders if number % 2 == 0 else contenders[::-1]:
                    name = peer.name if peer else OURS
                    if peer is not None and (peer not in network.peers.found or kind is MANY):
                        continue
                    try:
                        if name not in opened:
                            opened[name] = stack.enter_context(_theirs(network, peer) if peer else _ours(network))
                        rates[kind.title, name].append(_rate(network, opened[name], kind, seconds))
                    except LabError as exc:
                        if peer is None:
                            raise
                        network.peers.failed(peer, exc.reason if isinstance(exc, ActorFailed) else str(exc))
    return rates


def _rate(network: WireNetwork, ends: _Ends, kind: Kind, seconds: float) -> float:
    network.place(TWO, [ends.source], [ends.sink])
    if kind.title not in ends.counts:
        ends.counts[kind.title] = ends.settle(kind, seconds)
    return ends.stream(kind, ends.counts[kind.title])


@contextmanager
def _ours(network: WireNetwork) -> Iterator[_Ends]:
    tag = network.tag()
    with Actor(network.mesh.bed.node(HERE)) as source, Actor(network.mesh.bed.node(THERE)) as sink:
        source.ask("open", end="source", name=tag, tag=tag)
        network.mesh.wait_for_publisher(tag, f"{tag}/large")
        sink.ask("open", end="sink", name=tag, tag=tag)
        for one in (tag, f"{tag}/large"):
            network.mesh.wait_for_way(one, HERE, THERE)
        source.ask("match", name=tag)
        yield _Ends(source, sink, name=tag)


@contextmanager
def _theirs(network: WireNetwork, peer: Peer) -> Iterator[_Ends]:
    ends = [{"end": end, "fan_out": False} for end in ("source", "sink")]
    with network.peers.pair(peer, *ends) as (source, sink):
        yield _Ends(source, sink)


def conclude(rates: dict[tuple[str, str], float], absent: dict[str, str], wire: str = WITH) -> Findings:
    """Pure."""
    findings = Findings()
    for kind in KINDS:
        findings.rows.append(_asked(kind, rates, wire))
    fastest = max(
        (rate for (title, name), rate in rates.items() if title == SMALL.title and name != OURS), default=None
    )
    findings.rows.append(_batched(rates.get((MANY.title, OURS)), fastest, wire))
    names = list(dict.fromkeys(name for _, name in rates))
    cells = [
        [name, *(f"{rates[k.title, name]:,.0f}" if (k.title, name) in rates else "-" for k in ALL)] for name in names
    ]
    heads = ["messages per second", *(kind.title for kind in ALL)]
    findings.tables.append(Table(f"Streams between two nodes, none lost, {wire}", heads, cells))
    findings.notes += [f"{name} is left out: {reason}" for name, reason in absent.items()]
    return findings


def _batched(value: float | None, fastest: float | None, wire: str) -> Row:
    what = f"messages per second between two nodes, reliable, {MANY.title}, {wire}"
    if wire == WITH:
        return figure(f"{what}, beside a peer's single calls", value, MANY.unit, fastest)
    name = f"{what}: 3 times the fastest peer's single calls"
    return at_least(name, value, MANY.unit, scaled(fastest, 3.0), fastest)


def _asked(kind: Kind, rates: dict[tuple[str, str], float], wire: str) -> Row:
    scale = LARGE if kind is BIG else 1
    value = rates[kind.title, OURS] * scale
    peers = {name: rate * scale for (title, name), rate in rates.items() if title == kind.title and name != OURS}
    what = (
        f"{'bytes' if kind is BIG else 'messages'} per second between two nodes, reliable (tcp), {kind.title}, {wire}"
    )
    wish = f"{kind.factor:g} times the fastest peer" if kind.factor > 1 else "not slower than the fastest peer"
    if not peers:
        return Row(f"{what}: {wish} ({MISSING})", value, kind.unit, kind="asked")
    fastest = max(peers, key=peers.__getitem__)
    reference = peers[fastest]
    return at_least(f"{what}: {wish} ({fastest})", value, kind.unit, scaled(reference, kind.factor), reference)

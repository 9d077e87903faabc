"""One veth between two nodes, and round trips of 64 bytes across it: ours, the peers', and bare UDP sockets in Python.

With `offload` the wire takes up to 64 KiB in one piece, as a plain veth and most network cards do; without, every
packet goes by itself. Round trips are the same on both, streams are not.

All contenders use the same wire in the same run, one after the other and again in the opposite order. In one situation
all processes and daemons share a core, in the other each node has its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from ringcast.lab.measuring.report import Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import Row, at_most, scaled
from ringcast.lab.measuring.samples import paired_ratio, pooled
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.actor import Actor, ActorFailed
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.peers import ADAPTERS, MISSING, Peer, Peers
from ringcast.lab.testbed.topology import pair

HERE, THERE = "a", "b"
ONE, TWO = "all on one core", "each node on its own core"
OURS, BARE = "ringcast", "Python UDP sockets"
SIZE = 64
US = 1e-3
_WARM_UP = 200
_ASK_S = 30.0
Batches = dict[tuple[str, str], list[list[int]]]
"""Nanoseconds by situation and contender: a batch per round."""


class WireNetwork(Opened):
    """Two nodes, a daemon on each, and the peers that are installed. Entering raises LabError."""

    def __init__(self, *, offload: bool = True, adapters: Sequence[str] = ADAPTERS) -> None:
        self.offload = offload
        self._adapters = adapters
        self._tags = 0
        self.mesh: MeshNodes
        self.peers: Peers

    def _open(self, stack: ExitStack) -> None:
        bed = stack.enter_context(Testbed(msgspec.structs.replace(pair(), offload=self.offload)))
        self.mesh = stack.enter_context(MeshNodes(bed, [HERE, THERE]))
        self.peers = Peers(bed, HERE, THERE, self._adapters)

    def actor(self, node: str) -> Actor:
        """A measuring process of Ringcast, which ends with the network or when it is closed."""
        return self._stack.enter_context(Actor(self.mesh.bed.node(node)))

    def tag(self) -> str:
        self._tags += 1
        return f"wire/{self._tags}"

    def place(self, situation: str, here: list[Actor], there: list[Actor]) -> None:
        """Bind both sides, daemons included."""
        cores = affinity.cores()
        near, far = cores[0], cores[0] if situation == ONE else cores[-1]
        self.mesh.pin({HERE: near, THERE: far})
        for actors, core in ((here, near), (there, far)):
            for actor in actors:
                actor.pin(core)


def situations() -> list[str]:
    return [ONE, TWO] if len(affinity.cores()) > 1 else [ONE]


class _Pair:
    """Two processes that exchange messages: Ringcast's or a peer's."""

    def __init__(self, ping: Actor, echo: Actor, **arguments: Any) -> None:
        self.ping, self.echo = ping, echo
        self._arguments = arguments

    def play(self, count: int) -> list[int]:
        """Raises ActorFailed."""
        self.ping.ask("ping", _ASK_S, **{**self._arguments, "count": _WARM_UP})
        taken: list[int] = self.ping.ask("ping", _ASK_S, **{**self._arguments, "count": count})
        return taken


def round_trips(network: WireNetwork, quick: bool, steps: Steps) -> Findings:
    """Raises ActorFailed, LabError when Ringcast fails. A peer that fails is noted."""
    rounds, count = (4, 500) if quick else (10, 2000)
    return conclude(measure(network, rounds, count, steps), network.peers.absent)


def measure(network: WireNetwork, rounds: int, count: int, steps: Steps) -> Batches:
    """Raises ActorFailed, LabError when Ringcast fails. A peer that fails is noted, and has no batch."""
    contenders = [OURS, BARE, *(peer.name for peer in network.peers.found)]
    steps.expect(rounds * len(contenders))
    batches: Batches = defaultdict(list)
    with ExitStack() as stack:
        pairs = {OURS: _ours(network), BARE: _bare(network)}
        for peer in list(network.peers.found):
            try:
                pairs[peer.name] = _theirs(network, peer, stack)
            except ActorFailed as exc:
                network.peers.failed(peer, exc.reason)
        for number in range(rounds):
            names = list(pairs)
            for name in names if number % 2 == 0 else reversed(names):
                steps.step(f"round trips between two nodes: {name}")
                for situation in situations():
                    try:
                        network.place(situation, [pairs[name].ping], [pairs[name].echo])
                        batches[situation, name].append(pairs[name].play(count))
                    except ActorFailed as exc:
                        if name in (OURS, BARE):
                            raise
                        network.peers.failed(_named(network, name), exc.reason)
                        del pairs[name]
                        batches = defaultdict(list, {key: b for key, b in batches.items() if key[1] != name})
                        break
        for name, pair_ in pairs.items():
            if name not in (OURS, BARE):
                pair_.ping.ask("stop")
                pair_.echo.reply()
    return batches


def _named(network: WireNetwork, name: str) -> Peer:
    return next(peer for peer in network.peers.found if peer.name == name)


def _ours(network: WireNetwork) -> _Pair:
    tag, ping, echo = network.tag(), network.actor(HERE), network.actor(THERE)
    there, back = f"{tag}/there", f"{tag}/back"
    ping.ask("open", end="ping", name=tag, there=there, back=back)
    network.mesh.wait_for_publisher(there)
    echo.ask("open", end="echo", name=tag, there=there, back=back)
    network.mesh.wait_for_way(there, HERE, THERE)
    echo.ask("match", name=tag)
    ping.ask("match", name=tag, subscribers=1)
    return _Pair(ping, echo, name=tag, size=SIZE)


def _bare(network: WireNetwork) -> _Pair:
    ping, echo = network.actor(HERE), network.actor(THERE)
    host = network.mesh.bed.node(THERE).address()
    port = echo.ask("open", end="udp echo", name="udp", host=host)
    ping.ask("open", end="udp ping", name="udp", host=host, port=port)
    return _Pair(ping, echo, name="udp", size=SIZE)


def _theirs(network: WireNetwork, peer: Peer, stack: ExitStack) -> _Pair:
    ends = [{"end": "link", "side": side, "waits": "block"} for side in ("ping", "pong")]
    ping, echo = stack.enter_context(network.peers.pair(peer, *ends))
    echo.post("pong")
    return _Pair(ping, echo, limit_s=5.0)


def conclude(batches: Batches, absent: dict[str, str]) -> Findings:
    """Pure."""
    findings = Findings()
    seen = sorted({situation for situation, _ in batches}, key=(ONE, TWO).index)
    for situation in (ONE, TWO):
        factor = 2.3 if situation == ONE else 1.6
        findings.rows.append(_against_peers(batches, situation, factor))
        if situation == ONE:
            findings.rows.append(_against_bare(batches))
    names = list(dict.fromkeys(name for _, name in batches))
    cells = [
        [name, *(f"{x * US:.2f}" for s in seen for x in pooled(batches[s, name])[3:] if (s, name) in batches)]
        for name in names
    ]
    heads = ["64 B", *(f"{s}, {label} (us)" for s in seen for label in ("p50", "p99"))]
    findings.tables.append(Table("Round trips between two nodes, on one veth", heads, cells))
    series = [
        Series(s, [(float(at), pooled(batches[s, name]).p50 * US) for at, name in enumerate(names)]) for s in seen
    ]
    findings.pictures.append(
        Picture("wire-round-trips", "Round trip of 64 B between two nodes, p50", "", "round trip (us)", series, "bars",
                [name.replace(" ", "\n", 1) for name in names])
    )  # fmt: skip
    findings.notes += [f"{name} is left out: {reason}" for name, reason in absent.items()]
    return findings


def _against_peers(batches: Batches, situation: str, factor: float) -> Row:
    ours = batches.get((situation, OURS))
    peers = {name: b for (where, name), b in batches.items() if where == situation and name not in (OURS, BARE)}
    value = pooled(ours).p50 * US if ours else None
    what = f"round trip of 64 B between two nodes, p50, {situation}"
    if ours is None:
        return Row(f"{what}: not measured, there is only one core", None, "us", kind="asked")
    if not peers:
        return Row(f"{what}: {factor:g} times faster than the fastest peer ({MISSING})", value, "us", kind="asked")
    fastest = min(peers, key=lambda name: pooled(peers[name]).p50)
    # The ratio of neighbours in time, as a target for the figure that is shown.
    reference = pooled(ours).p50 * US * paired_ratio(peers[fastest], ours)
    name = f"{what}: {factor:g} times faster than the fastest peer ({fastest})"
    return at_most(name, value, "us", scaled(reference, 1 / factor), reference)


def _against_bare(batches: Batches) -> Row:
    ours, bare = batches[ONE, OURS], batches[ONE, BARE]
    value = pooled(ours).p50 * US
    reference = value * paired_ratio(bare, ours)
    name = f"round trip of 64 B between two nodes, p50, {ONE}: at most 1.6 times {BARE}"
    return at_most(name, value, "us", scaled(reference, 1.6), reference)

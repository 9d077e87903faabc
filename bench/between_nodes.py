"""How long do 64 bytes take to another node and back, and how much goes there when every packet goes by itself?

Two nodes in network namespaces with a daemon each, and one veth between them without segmentation offload, so that the
number of packets is the limit. Ringcast, the peers and bare UDP sockets in Python take turns on it. Round trips: all
processes on one core, and each node on its own. Streams: reliable (tcp), each node on its own core; beside them what
bare tcp sockets in C carry. What is judged is
the median, over the rounds, of the ratio of neighbours in time. Needs root; the measuring is the lab's.
"""

from __future__ import annotations

import subprocess

from harness.command import main
from harness.floors import tcp_stream
from harness.rows import Row, at_least, at_most, entry, scaled
from harness.run import Run
from harness.stats import median, paired_ratio
from ringcast.lab.measuring.samples import pooled
from ringcast.lab.push_pull import peer_round_trips, streams
from ringcast.lab.push_pull.peer_round_trips import HERE, OURS, THERE, US, Batches, WireNetwork
from ringcast.lab.push_pull.streams import BIG, LARGE, MANY, SMALL, Kind, Rates
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.network import unavailable
from ringcast.lab.testbed.peers import ADAPTERS

BARE = "bare tcp sockets in C, no messages"
TRIPS, STREAMS = "round-trips", "streams"
WIRE = "between two nodes, reliable (tcp), packet by packet"
ASKED = (
    (SMALL, SMALL, 1.0, "not slower than the fastest peer"),
    (MANY, SMALL, 3.0, "3 times the fastest peer's single calls"),
    (BIG, BIG, 1.0, "not slower than the fastest peer"),
)


class _Steps:
    """The run's progress, as the lab tells it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def expect(self, number: int) -> None:
        self._run.expect("between nodes", number)

    def step(self, what: str) -> None:
        self._run.advance(what)

    def rounds(self, wanted: int, least: int, most_s: float) -> range:
        return range(wanted)


def measure(run: Run) -> list[Row]:
    """The rows of this question: what is asked for, then everybody's figures."""
    if reason := unavailable():
        run.notes.append(f"nothing was measured between nodes: {reason}")
        return []
    taking_part = {contender.adapter for contender in run.contenders}
    adapters = [name for name in ADAPTERS if name in taking_part]
    steps = _Steps(run)
    rows: list[Row] = []
    try:
        with WireNetwork(offload=False, adapters=adapters) as network:
            if run.wants(TRIPS):
                rounds, count = (8, 500) if run.quick else (20, 2000)
                batches = peer_round_trips.measure(network, rounds, count, steps)
                rows += _trips(batches, network.peers.absent)
            if run.wants(STREAMS):
                rates = streams.measure(network, *((7, 0.15) if run.quick else (15, 0.5)), steps)
                rows += _streams(rates, _bare(network, run))
            run.notes += [f"{name} is left out: {reason}" for name, reason in network.peers.absent.items()]
    except LabError as exc:
        rows.append(at_most(f"between nodes: not measured to the end ({exc})", None, "parts", 0.0))
    return rows


def _trips(batches: Batches, absent: dict[str, str]) -> list[Row]:
    judged = peer_round_trips.conclude(batches, absent).rows
    rows = [Row(row.name, row.value, row.unit, row.reference, row.target, row.met) for row in judged]
    for (situation, name), found in batches.items():
        summary = pooled(found)
        for label, value in (("p50", summary.p50), ("p99", summary.p99)):
            rows.append(entry(f"round trip of 64 B between two nodes, {situation}", name, label, value * US, "us"))
    return rows


def _bare(network: WireNetwork, run: Run) -> list[float]:
    """Bytes a second that tcp itself carries on this wire; empty, with a note, where that cannot be measured."""
    cores = affinity.cores()
    here, there = (network.mesh.bed.node(name) for name in (HERE, THERE))
    try:
        return [
            tcp_stream(here, there, (cores[0], cores[-1]), (128 if run.quick else 512) * LARGE)
            for _ in range(3 if run.quick else 9)
        ]
    except (OSError, subprocess.SubprocessError, LabError) as exc:
        run.notes.append(f"bare tcp sockets were not measured: {exc}")
        return []


def _streams(rates: Rates, bare: list[float]) -> list[Row]:
    by_round = {key: dict(enumerate(values)) for key, values in rates.items() if values}
    rows = []
    for kind, against, factor, wish in ASKED:
        mine = by_round.get((kind.title, OURS), {})
        ratios = {
            name: paired_ratio(mine, theirs)
            for (title, name), theirs in by_round.items()
            if title == against.title and name != OURS and mine
        }
        rival = min(ratios, key=ratios.__getitem__, default="none measured")
        value = median([*mine.values()]) * _scale(kind) if mine else None
        reference = value / ratios[rival] if value is not None and ratios else None
        name = f"throughput {WIRE}, {kind.title}: {wish} ({rival})"
        rows.append(at_least(name, value, kind.unit, scaled(reference, factor), reference))
    for kind in (SMALL, MANY, BIG):
        for (title, name), values in rates.items():
            if title == kind.title and values:
                for column, value in (("median", median(values)), ("least", min(values)), ("most", max(values))):
                    rows.append(entry(f"throughput {WIRE}, {title}", name, column, value * _scale(kind), kind.unit))
    for column, pick in (("median", median), ("least", min), ("most", max)) if bare else ():
        rows.append(entry(f"throughput {WIRE}, {BIG.title}", BARE, column, pick(bare), BIG.unit))
    return rows


def _scale(kind: Kind) -> int:
    return LARGE if kind is BIG else 1


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure], parts=[TRIPS, STREAMS]))

"""What the framework costs: a stream by our `multicast` beside one of plain multicast sockets in Python, no loss.

Paper 004 compares its ANT Baseline, the framework without a protocol in it, with bare IP multicast. Blocks of both take
turns, so what slows the machine for a while meets both. Latency is from before `send` to after `recv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import Row, figure
from ringcast.lab.measuring.samples import paired_ratio, pooled

RECEIVERS = 3
RATE_HZ, SIZE, BLOCK = 200.0, 12, 200
OURS, BARE = "multicast", "bare multicast sockets"
US = 1e-3
WARM_UP = 20
"""Messages of a block before those that count: threads are awake, addresses resolved."""
NAME = (
    f"cost of the framework: median latency of our multicast against {BARE}, {RECEIVERS} receivers, {RATE_HZ:g} Hz "
    "(ANT Baseline by IP Mcast)"
)
Blocks = dict[str, list[list[float]]]
"""Nanoseconds of all receivers, a block per round."""


def measure(network: FieldNetwork, rounds: int, steps: Steps) -> Blocks:
    """Raises ActorFailed, LabError."""
    steps.expect(1)
    steps.step("our multicast beside bare multicast sockets")
    names, tag = network.there(RECEIVERS), network.tag()
    publisher, receivers = network.actor(network.here), [network.actor(name) for name in names]
    publisher.ask("open", end="steady publisher", name=OURS, tag=tag)
    publisher.ask("open", end="udp to many", name=BARE, address=network.mesh.bed.node(network.here).address())
    network.mesh.wait_for_publisher(tag)
    for node, receiver in zip(names, receivers, strict=True):
        receiver.ask("open", end="latency recorder", name=OURS, tag=tag, transport=OURS)
        receiver.ask("open", end="udp of many", name=BARE, address=network.mesh.bed.node(node).address())
        network.mesh.wait_for_way(tag, network.here, node)
    publisher.ask("match", name=OURS, subscribers=len(names))
    blocks: Blocks = {OURS: [], BARE: []}
    for number in range(rounds):
        last = (number + 1) * BLOCK - 1
        for which in (OURS, BARE) if number % 2 else (BARE, OURS):
            for receiver in receivers:
                receiver.post("record", name=which, last=last, limit_s=BLOCK / RATE_HZ + 5)
            publisher.ask("publish", name=which, count=BLOCK, rate_hz=RATE_HZ, size=SIZE)
            heard = [receiver.reply(BLOCK / RATE_HZ + 10) for receiver in receivers]
            blocks[which].append([float(ns) for one in heard for ns in one["latencies_ns"][WARM_UP:]])
    for actor in (*receivers, publisher):
        for which in (OURS, BARE):
            actor.ask("close", name=which)
    return blocks


def conclude(blocks: Mapping[str, list[list[float]]]) -> Findings:
    """Pure."""
    rows: list[Row] = [figure(NAME, paired_ratio(blocks[OURS], blocks[BARE]), "times")]
    cells: list[list[Any]] = []
    for name, found in blocks.items():
        all_of = pooled(found)
        cells.append([name, f"{all_of.p50 * US:.1f}", f"{all_of.p99 * US:.1f}"])
    title = f"What the framework costs: latency of {SIZE} B to {RECEIVERS} receivers at {RATE_HZ:g} Hz, measured"
    return Findings(rows, [Table(title, ("by", "p50 (us)", "p99 (us)"), cells)])


def unanswered(reason: str) -> list[Row]:
    return [Row(f"{NAME} ({reason})", None, "times")]

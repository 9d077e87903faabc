"""What one `send` costs the publisher with ten subscribers on one remote node, against one: each is a process, and
asleep when the message comes. One datagram goes to the node either way."""

from __future__ import annotations

from contextlib import ExitStack

from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import at_most
from ringcast.lab.measuring.samples import paired_ratio, pooled
from ringcast.lab.push_pull.peer_round_trips import HERE, THERE, TWO, WireNetwork
from ringcast.lab.testbed.actor import Actor

MANY = 10
SIZE = 64
GAP_NS = 400_000
"""Long enough for ten processes to receive on one core and to sleep again."""
US = 1e-3


def measure(network: WireNetwork, quick: bool, steps: Steps) -> Findings:
    """Raises ActorFailed, LabError."""
    rounds, count = (6, 100) if quick else (20, 250)
    steps.expect(2)
    steps.step(f"starting {MANY} subscribers")
    with ExitStack() as stack:
        publisher = stack.enter_context(Actor(network.mesh.bed.node(HERE)))
        listeners = [stack.enter_context(Actor(network.mesh.bed.node(THERE))) for _ in range(MANY)]
        tags = {1: network.tag(), MANY: network.tag()}
        for number, tag in tags.items():
            publisher.ask("open", end="pacer", name=tag, tag=tag)
            network.mesh.wait_for_publisher(tag)
            for listener in listeners[:number]:
                listener.ask("open", end="listener", name=tag, there=tag)
            network.mesh.wait_for_way(tag, HERE, THERE)
            publisher.ask("match", name=tag, subscribers=number)
        network.place(TWO, [publisher], listeners)
        steps.step("what a send costs with one subscriber and with ten")
        batches: dict[int, list[list[int]]] = {1: [], MANY: []}
        for turn in range(rounds):
            for number in (1, MANY) if turn % 2 == 0 else (MANY, 1):
                publisher.ask("send", name=tags[number], count=10, gap_ns=GAP_NS, size=SIZE)
                batches[number].append(publisher.ask("send", name=tags[number], count=count, gap_ns=GAP_NS, size=SIZE))
    return conclude(batches)


def conclude(batches: dict[int, list[list[int]]]) -> Findings:
    """Pure."""
    one, ten = pooled(batches[1]), pooled(batches[MANY])
    name = f"cost of a send with {MANY} subscribers on one remote node against 1, p50: at most 1.1 times"
    row = at_most(name, paired_ratio(batches[MANY], batches[1]), "times", 1.1)
    cells = [[f"{number}", f"{seen.p50 * US:.2f}", f"{seen.p99 * US:.2f}"] for number, seen in ((1, one), (MANY, ten))]
    return Findings([row], [Table("A send of 64 B (us)", ["subscribers on the remote node", "p50", "p99"], cells)])

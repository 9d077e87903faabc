"""What surviving loss costs when nothing is lost: round trips of 64 bytes between two nodes, by each transport in turn.

Blocks are short and alternate in changing order. Each is compared with the block of udp in the same round, so that what
slows the machine for a while cancels out. Each node, with its daemon and its process, has a core of its own where there
are two. With a bystander, a third node receives everything too: then there is a peer to send repairs to, and one more
daemon shares the cores.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import Row, at_most
from ringcast.lab.measuring.samples import paired_ratio, pooled
from ringcast.lab.testbed import affinity

REFERENCE = "udp"
ASKED = ("nak", "lateral", "parity")
ALL = (REFERENCE, *ASKED, "multicast", "multicast+nak", "ack", "tcp")
MOST = 1.15
SIZE = 64
US = 1e-3
_WARM_UP = 30
LEAST_ROUNDS, TOGETHER_S = 8, 8.0
"""Where all experiments run in their quick forms."""
_ASK_S = 30.0
Batches = dict[str, list[list[int]]]
"""Nanoseconds of round trips by transport: a block per round."""


def measure(
    network: FieldNetwork, transports: Sequence[str], rounds: int, count: int, steps: Steps, *, bystander: bool = False
) -> Batches:
    """Raises ActorFailed, LabError."""
    here, there, *beside = network.mesh.names
    tags = {name: network.tag() for name in transports}
    ping, echo = network.actor(here), network.actor(there)
    for name, tag in tags.items():
        forth, back = f"{tag}/there", f"{tag}/back"
        ping.ask("open", end="ping", name=tag, there=forth, back=back, transport=name)
        network.mesh.wait_for_publisher(forth)
        echo.ask("open", end="echo", name=tag, there=forth, back=back, transport=name)
        network.mesh.wait_for_way(forth, here, there)
        for way in (forth, back) if bystander else ():
            network.mesh.wait_for_publisher(way)
            network.actor(beside[0]).ask("open", end="listener", name=way, there=way, transport=name)
        echo.ask("match", name=tag)
        ping.ask("match", name=tag, subscribers=2 if bystander else 1)
    _place(network)
    batches: Batches = {name: [] for name in transports}
    order, shuffle = list(transports), random.Random(7).shuffle
    steps.expect(rounds)
    for number in steps.rounds(rounds, LEAST_ROUNDS, TOGETHER_S):
        steps.step(f"round trips without loss, round {number + 1} of {rounds}")
        shuffle(order)
        for name in order:
            ping.ask("ping", _ASK_S, name=tags[name], count=_WARM_UP, size=SIZE)
            batches[name].append(ping.ask("ping", _ASK_S, name=tags[name], count=count, size=SIZE))
    return batches


def _place(network: FieldNetwork) -> None:
    cores = affinity.cores()
    for number, name in enumerate(network.mesh.names):
        core = cores[number % min(2, len(cores))]
        network.mesh.pin({name: core})
        network.actor(name).pin(core)


def conclude(batches: Mapping[str, list[list[int]]]) -> Findings:
    """Pure."""
    ratios = {name: paired_ratio(found, batches[REFERENCE]) for name, found in batches.items()}
    rows = [at_most(row_name(name), ratios[name], "times", MOST) for name in ASKED]
    cells = [
        [name, f"{pooled(found).p50 * US:.2f}", f"{pooled(found).p99 * US:.2f}", f"{ratios[name]:.3f}"]
        for name, found in batches.items()
    ]
    heads = ["transport", "p50 (us)", "p99 (us)", "against udp"]
    return Findings(rows, [Table("Round trips of 64 B between two nodes without loss, measured", heads, cells)])


def row_name(transport: str) -> str:
    return f"no-loss round trip of {transport} against udp, two nodes"


def unanswered(reason: str) -> list[Row]:
    return [Row(f"{row_name(name)} ({reason})", None, "times", None, MOST, None, "asked") for name in ASKED]

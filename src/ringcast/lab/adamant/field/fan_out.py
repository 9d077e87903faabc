"""What more nodes cost a publisher that multicasts: its system calls and its packets per message, 8 nodes against 1.

The publisher runs under strace, which sees every system call of the sending thread. A command itself costs the same for
few messages and for many, and is subtracted. Packets are all that left by the node's wire, so a copy to each node would
show. All receivers received everything.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.measuring.rows import Row, figure
from ringcast.lab.testbed.actor import OURS, Actor

ONE, MANY = 1, 8
FEW, LOTS = 100, 1000
SIZE = 64
GAP_NS = 100_000
"""A burst that overruns a socket's buffer would be a loss."""
_CALL = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(?:\(| resumed)")
TRACER = "strace"


class Cost(NamedTuple):
    """Per message."""

    calls: float
    sends: float
    packets: float


def available() -> bool:
    return shutil.which(TRACER) is not None


def measure(network: FieldNetwork, steps: Steps) -> dict[int, Cost]:
    """By number of receiving nodes. Raises ActorFailed, LabError."""
    steps.expect(2)
    with tempfile.TemporaryDirectory(prefix="ringcast-lab-") as folder:
        trace = Path(folder) / "trace"
        command = [str(shutil.which(TRACER)), "-f", "-qq", "-o", str(trace), *OURS]
        with Actor(network.mesh.bed.node(network.here), command) as publisher:
            found = {}
            for nodes in (ONE, MANY):
                steps.step(f"system calls of a multicasting publisher, receiving nodes: {nodes}")
                found[nodes] = _cost(network, publisher, trace, nodes)
    return found


def _cost(network: FieldNetwork, publisher: Actor, trace: Path, nodes: int) -> Cost:
    tag, names = network.tag(), network.there(nodes)
    publisher.ask("open", end="pacer", name=tag, tag=tag)
    network.mesh.wait_for_publisher(tag)
    receivers = [network.actor(name) for name in names]
    for receiver in receivers:
        receiver.ask("open", end="latency recorder", name=tag, tag=tag, transport="multicast")
    for name in names:
        network.mesh.wait_for_way(tag, network.here, name)
    publisher.ask("match", name=tag, subscribers=nodes)
    sent = 0

    def send(count: int) -> tuple[Counter[str], int]:
        nonlocal sent
        sent += count
        for receiver in receivers:
            receiver.post("record", name=tag, last=sent - 1, limit_s=10.0)
        before, (packets, _) = calls_of(trace.read_text(), publisher_thread(trace)), network.packets(network.here)
        publisher.ask("send", name=tag, count=count, gap_ns=GAP_NS, size=SIZE)
        packets = network.packets(network.here)[0] - packets
        after = calls_of(trace.read_text(), publisher_thread(trace))
        for receiver in receivers:
            receiver.reply()
        return after - before, packets

    send(10)  # the publisher has its links now
    (few, _), (lots, packets) = send(FEW), send(LOTS)
    for actor in (*receivers, publisher):
        actor.ask("close", name=tag)
    more = LOTS - FEW
    sends = sum(lots[name] - few[name] for name in lots if name.startswith("send"))
    return Cost((lots.total() - few.total()) / more, sends / more, packets / LOTS)


def publisher_thread(trace: Path) -> str:
    """The first that strace saw: the main thread, on which commands are run."""
    with trace.open() as lines:
        return lines.readline().split(" ", 1)[0]


def calls_of(trace: str, thread: str) -> Counter[str]:
    """System calls of a thread by name. One that was interrupted by another thread's line is counted once. Pure."""
    found: Counter[str] = Counter()
    for line in trace.splitlines():
        call = _CALL.match(line)
        if call and call[1] == thread and "<unfinished" not in line:
            found[call[2]] += 1
    return found


CALLS = f"publisher's system calls per message, multicast, {MANY} nodes against {ONE}"
PACKETS = f"packets on the wire per message, multicast, {MANY} nodes against {ONE}"


def conclude(costs: dict[int, Cost]) -> Findings:
    """Pure. `reference` is what it takes with one node."""
    one, many = costs[ONE], costs[MANY]
    findings = Findings()
    for name, unit, here, reference in (
        (CALLS, "calls", many.calls, one.calls),
        (PACKETS, "packets", many.packets, one.packets),
    ):
        # Traffic between daemons, or a page fault, is no cost of a message.
        equal = abs(here - reference) < 0.05
        findings.rows.append(Row(name, round(here, 3), unit, round(reference, 3), round(reference, 3), equal, "asked"))
    findings.rows.append(figure(f"of these calls, sends with {MANY} nodes", many.sends, "calls", one.sends))
    return findings


def unanswered(reason: str) -> list[Row]:
    return [Row(f"{name} ({reason})", None, unit, None, None, None, "asked")
            for name, unit in ((CALLS, "calls"), (PACKETS, "packets"))]  # fmt: skip

"""How soon a late joiner knows everything: while packets are lost, and by how long a frame is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ringcast.lab.labmap.field import BENCH, LabMapNetwork
from ringcast.lab.measuring.report import Findings, Steps, Table
from ringcast.lab.measuring.rows import at_least

JOINER = "ringcast.lab.labmap.ends:Joiner"
FRAME_S = 0.25
JOIN_LIMIT = 8
FRAMES_S = (0.1, 0.2, 0.5, 1.0)
QUICK_FRAMES_S = (0.1, 0.3)


def late_joiners(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """How long until a joiner knows everything, while 3 % of packets are lost and nobody sends a packet for joiners."""
    steps.expect(2)
    findings = Findings()
    nodes = bed.there(5)
    limits = {"nak": (1.0, 1.0, "complete within one frame"), "udp": (3.0, 0.99, "complete within three frames")}
    for transport, (frames, share, said) in limits.items():
        steps.step(f"late joiners by {transport}")
        times = 20 if quick or transport == "nak" else 100
        found = joins(bed, nodes, 2000, transport, times if transport == "udp" else times // 2, loss=0.03)
        within = sum(one is not None and one <= frames * FRAME_S for one in found) / len(found)
        kind = "by nak" if transport == "nak" else "unreliable"
        name = f"late joiner, join-triggered packets off, 3 % loss, {kind}: {said}, of {len(found)} joins"
        findings.rows.append(at_least(name, 100 * within, "%", 100 * share))
    return findings


def joins(
    bed: LabMapNetwork, nodes: Sequence[str], n: int, transport: str, times: int, loss: float, frame_s: float = FRAME_S
) -> list[float | None]:
    """Seconds from joining to knowing everything, of so many joins on each node."""
    tag = bed.tag()
    publisher = bed.process(bed.here)
    publisher.ask("open", end=BENCH, name=tag, tag=tag, n=n, frame_s=frame_s, on_join=False)
    bed.mesh.wait_for_publisher(tag)
    found: list[float | None] = []
    try:
        for node in nodes:
            bed.process(node).ask("open", end=JOINER, name=tag, tag=tag, transport=transport)
        bed.lose(loss, nodes)
        for seed, node in enumerate(nodes):
            bed.process(node).post(
                "join", name=tag, times=times, limit_s=JOIN_LIMIT * frame_s, spread_s=frame_s, seed=seed
            )
        for node in nodes:
            found += bed.process(node).reply(30.0 + times * (JOIN_LIMIT * frame_s + 1))
    finally:
        bed.lose(0.0, nodes)
        for node in nodes:
            bed.process(node).ask("close", name=tag)
        publisher.ask("close", name=tag)
    return found


def by_frame(bed: LabMapNetwork, quick: bool, steps: Steps) -> Findings:
    """Join time against the length of a frame, without loss and without a packet for joiners."""
    lengths = QUICK_FRAMES_S if quick else FRAMES_S
    steps.expect(len(lengths))
    rows = []
    for frame_s in lengths:
        steps.step(f"joining, a frame of {1e3 * frame_s:g} ms")
        found = joins(bed, bed.there(3), 2000, "nak", 4 if quick else 20, loss=0.0, frame_s=frame_s)
        known = sorted(one for one in found if one is not None)
        mean, most = (statistics.fmean(known), known[-1]) if known else (None, None)
        cells = [f"{1e3 * one:.0f}" if one is not None else "-" for one in (mean, most)]
        rows.append([f"{1e3 * frame_s:g}", *cells, f"{len(known)} of {len(found)}"])
    return Findings(tables=[Table("Join time against frame length (ms)", ("frame", "mean", "longest", "joined"), rows)])

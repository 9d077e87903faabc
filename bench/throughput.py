"""How many messages a second go from one Python process to another, none lost?

64 bytes with one call per message, 64 bytes with calls that take many, and 1 MiB with both ends touching every byte.
The source is pinned to one core, the sink to another. Time runs from the first to the last message received. How many
are sent is fixed before the clock starts, by a short trial, so that slow and fast peers are measured for about as long.
"""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from harness import floors
from harness.command import main
from harness.floors import LINE
from harness.group import Group
from harness.process import PeerFailed, Worker
from harness.rows import Row, about, at_least, entry, plain, scaled
from harness.run import Run
from harness.stats import median

LIMIT_S = 20.0
SETTLE_S = 0.02
LARGE = 1 << 20
BATCH = 128
NATIVE = "a ring without Python"


@dataclass(frozen=True)
class Kind:
    """One way of streaming: its commands, its options, and how much makes a trial and the most worth sending."""

    key: str
    title: str
    pump: str
    drain: str
    options: dict[str, int]
    trial: int
    most: int
    unit: str


SINGLE = Kind("stream", "64 B, one call per message", "pump", "drain", {}, 2048, 1 << 20, "msg/s")
MANY = Kind(
    "batch", f"64 B, {BATCH} messages per call", "pump_many", "drain_many", {"batch": BATCH}, 2048, 1 << 22, "msg/s"
)
BIG = Kind("large", "1 MiB, every byte touched", "pump_large", "drain_large", {"size": LARGE}, 16, 4096, "MiB/s")
KINDS = (SINGLE, MANY, BIG)


def _stream(source: Worker, sink: Worker, kind: Kind, count: int) -> float:
    """Messages per second of one stream of `count`.

    Raises:
        PeerFailed: messages were lost, or came with other content than was sent.
    """
    sink.ask("expect", LIMIT_S, count=count, large=kind is BIG)
    sink.post(kind.drain, count=count, **kind.options)
    # A sink that began late would find a queue to empty, faster than anything is sent.
    time.sleep(SETTLE_S)
    source.ask(kind.pump, LIMIT_S, count=count, **kind.options)
    seen = sink.reply(LIMIT_S)
    if seen["received"] != count:
        raise PeerFailed(f"not reliable: {count - seen['received']} of {count} messages were lost")
    if kind is BIG and seen["total"] != count * (count - 1) // 2 * (LARGE // 8):
        raise PeerFailed("not reliable: the content that arrived is not what was sent")
    return (count - 1) * 1e9 / max(int(seen["last_ns"]) - int(seen["first_ns"]), 1)


def _settle(source: Worker, sink: Worker, kind: Kind, seconds: float) -> int:
    """How many messages make a stream of about `seconds`.

    The first streams are slow because they touch memory for the first time, so the count grows until one takes its
    time.
    """
    count = kind.trial
    while (taken := count / _stream(source, sink, kind, count)) < seconds / 2 and count < kind.most:
        count = min(kind.most, max(2 * count, int(count * seconds / taken)) // kind.trial * kind.trial)
    return count


def _measure(run: Run, group: Group, kind: Kind, seconds: float, repeats: int) -> list[float]:
    # The source comes first: peers that listen do so there.
    source, sink = group.start({"end": "source", "fan_out": False}, {"end": "sink", "fan_out": False})
    source.pin(run.cores[0])
    sink.pin(run.cores[-1])
    count = _settle(source, sink, kind, seconds)
    return [_stream(source, sink, kind, count) for _ in range(repeats)]


def _collect(run: Run) -> dict[tuple[str, str], float]:
    """The median rate by kind and contender."""
    rounds, repeats, seconds = (1, 3, 0.12) if run.quick else (3, 3, 0.5)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    ring = floors.prepare_ring(run)
    for _, contender in run.alternate("throughput", rounds, run.offering(SINGLE.key)):
        parts = [(f"throughput ({kind.title})", kind) for kind in KINDS if kind.key in contender.offers]
        taken = run.each(contender, parts, lambda group, kind: (kind.key, _measure(run, group, kind, seconds, repeats)))
        for key, values in taken.values():
            rates[key, contender.name] += values
        if contender.ours:
            _native(run, ring, rates)
    return {key: median(values) for key, values in rates.items()}


def _native(run: Run, ring: Path | None, rates: dict[tuple[str, str], list[float]]) -> None:
    """Beside ours: the ring without Python, and what a cache line takes between the cores at that time."""
    here, there = run.cores[0], run.cores[-1]
    if here != there and (taken := floors.line_ns(run, here, there)) is not None:
        rates[LINE, LINE].append(taken)
    for kind, size, batch, count in ((MANY, 64, 32, 2_000_000), (BIG, LARGE, 1, 2000)):
        if ring is None or here == there:
            continue
        try:
            rates[NATIVE + kind.key, NATIVE].append(floors.ring_stream(ring, here, there, size, batch, count))
        except (OSError, subprocess.SubprocessError) as exc:
            run.notes.append(f"the ring without Python failed: {exc}")


def _best(rates: dict[tuple[str, str], float], kinds: tuple[Kind, ...], ours: str) -> tuple[str, float | None]:
    """The fastest peer over these kinds, and its rate."""
    keys = {kind.key for kind in kinds}
    peers = {name: rate for (key, name), rate in rates.items() if key in keys and name != ours}
    if not peers:
        return "none measured", None
    best = max(peers, key=peers.__getitem__)
    return best, peers[best]


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's rates."""
    if len(run.cores) < 2:
        run.notes.append("throughput was measured with both ends on the only core")
    rates = _collect(run)
    rows = []
    for kind, factor in ((SINGLE, 3.0), (MANY, 10.0), (BIG, 2.0)):
        rival, reference = _best(rates, (kind,) if kind is not MANY else (SINGLE,), run.ours)
        name = f"throughput, {kind.title}: {factor:g} times the fastest peer ({rival}"
        name += ", one call per message)" if kind is MANY else ")"
        value = rates.get((kind.key, run.ours))
        rows.append(at_least(name, value, kind.unit, scaled(reference, factor), reference))
    rival, reference = _best(rates, (MANY,), run.ours)
    name = f"throughput, {MANY.title}: beside the fastest peer's own batches ({rival})"
    rows.append(plain(name, rates.get((MANY.key, run.ours)), MANY.unit, reference))
    for kind in KINDS:
        for (key, name), rate in rates.items():
            if key == kind.key:
                rows.append(entry(f"throughput, {kind.title}", name, "", rate, kind.unit))
        if (bound := rates.get((NATIVE + kind.key, NATIVE))) is not None:
            rows.append(entry(f"throughput, {kind.title}", NATIVE, "", bound, kind.unit))
    if (line := rates.get((LINE, LINE))) is not None:
        rows.append(about(f"during the run, {LINE}", line, "ns"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

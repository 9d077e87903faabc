"""How many messages a second go from one Python process to another, none lost?

64 bytes with one call per message, 64 bytes with calls that take many, and 1 MiB with both ends touching every byte.
The source is pinned to one core, the sink to another. Time runs from the first to the last message received. How many
are sent is fixed before the clock starts, by a short trial, so that slow and fast peers are measured for about as long.
All contenders are open at the same time and take turns of a fraction of a second; what is judged is the median, over
the rounds, of our rate by the rate that the peer had in the same round. On a virtual machine a core may be one half of
a real one, whose other half computes for somebody else, or not, changing within a second. So both ends time stores to
memory of their own before and after each stream, and the ratio over the rounds with whole cores stands beside what is
judged, which is all rounds.
"""

from __future__ import annotations

import math
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ends.room import choose
from harness import floors
from harness.command import main
from harness.floors import LINE
from harness.group import Group
from harness.process import PeerFailed, Worker
from harness.rows import Row, about, at_least, entry, plain, scaled
from harness.run import Run
from harness.stats import median, paired_ratio
from harness.turns import Turns

LIMIT_S = 20.0
SETTLE_S = 0.02
LARGE = 1 << 20
BATCH = 128
NATIVE = "a ring without Python"
STORES = "stores of a MiB to own memory, the slower core"


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
LEAST_ROUNDS = 3
SHARED = 1.2
"""A core on which stores take so many times the least of the run is not whole."""


class Taken(NamedTuple):
    """One stream: messages per second, and what stores took the slower of its cores around it (0: not asked)."""

    rate: float
    store_us: float = 0.0


Rates = dict[tuple[str, str], dict[int, Taken]]
"""By kind and contender, and then by round."""


class _Pair:
    """The two ends of one contender, and how many messages make a stream of each kind."""

    def __init__(self, run: Run, group: Group, seconds: float) -> None:
        # The source comes first: peers that listen do so there.
        self._source, self._sink = group.start({"end": "source", "fan_out": False}, {"end": "sink", "fan_out": False})
        self._source.pin(run.cores[0])
        self._sink.pin(run.cores[-1])
        self._seconds = seconds
        self._counts: dict[str, int] = {}

    def take(self, kind: Kind) -> Taken:
        """One stream. Raises PeerFailed, PeerLacks."""
        if kind.key not in self._counts:
            self._counts[kind.key] = _settle(self._source, self._sink, kind, self._seconds)
        before = self._store_us()
        rate = _stream(self._source, self._sink, kind, self._counts[kind.key])
        return Taken(rate, max(before, self._store_us()))

    def _store_us(self) -> float:
        return max(float(end.ask("store_us", LIMIT_S)) for end in (self._source, self._sink))


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


def _collect(run: Run) -> Rates:
    rounds, seconds = (15, 0.05) if run.quick else (31, 0.2)
    rates: Rates = defaultdict(dict)
    ring = floors.prepare_ring(run)
    here, there = run.cores[0], run.cores[-1]
    room = choose(floors.line_ns(run, here, there) if here != there else None)
    run.notes.append(f"contenders that can say so have room for {room} messages of 1 MiB (ends/room.py)")
    run.expect("throughput", rounds * len(KINDS))
    with Turns(run, "throughput", lambda group: _Pair(run, group, seconds)) as turns:
        for number in range(rounds):
            _native(run, ring, rates, number)
            for kind in KINDS:
                run.advance(f"throughput: {kind.title}")
                taken = turns.take(kind.title, number, run.offering(kind.key), partial(_Pair.take, kind=kind))
                for name, stream in taken.items():
                    rates[kind.key, name][number] = stream
    return rates


def _native(run: Run, ring: Path | None, rates: Rates, number: int) -> None:
    """Beside ours: the ring without Python, and what a cache line takes between the cores at that time."""
    here, there = run.cores[0], run.cores[-1]
    if here != there and (taken := floors.line_ns(run, here, there)) is not None:
        rates[LINE, LINE][number] = Taken(taken)
    for kind, size, batch, count in ((MANY, 64, 32, 1_000_000), (BIG, LARGE, 1, 1000)):
        if ring is None or here == there:
            continue
        try:
            rates[kind.key, NATIVE][number] = Taken(floors.ring_stream(ring, here, there, size, batch, count))
        except (OSError, subprocess.SubprocessError) as exc:
            run.notes.append(f"the ring without Python failed: {exc}")


@dataclass(frozen=True)
class Beside:
    """Ours by a peer's, over rounds that both have: the median, of how many, and of how many with whole cores."""

    ratio: float
    rounds: int
    whole: int


def _beside(ours: dict[int, Taken], theirs: dict[int, Taken], most_us: float) -> Beside | None:
    """Over the rounds in which stores took neither longer than `most_us`, or all if those are too few."""
    both = ours.keys() & theirs.keys()
    if not both:
        return None
    whole = {number for number in both if max(ours[number].store_us, theirs[number].store_us) <= most_us}
    judged = whole if len(whole) >= LEAST_ROUNDS else both
    ratio = paired_ratio(
        {number: ours[number].rate for number in judged}, {number: theirs[number].rate for number in judged}
    )
    return Beside(ratio, len(both), len(whole))


def _best(rates: Rates, kind: Kind, against: Kind, ours: str, most_us: float) -> tuple[str, Beside | None]:
    """The peer that comes closest to us in the same round, and how close."""
    mine = rates.get((kind.key, ours), {})
    found = {
        name: beside
        for (key, name), theirs in rates.items()
        if key == against.key and name not in (ours, NATIVE)
        if (beside := _beside(mine, theirs, most_us)) is not None
    }
    if not found:
        return "none measured", None
    best = min(found, key=lambda name: found[name].ratio)
    return best, found[best]


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's rates."""
    if len(run.cores) < 2:
        run.notes.append("throughput was measured with both ends on the only core")
    rates = _collect(run)
    medians = {key: _spread(values)["median"] for key, values in rates.items() if values}
    stores = [one.store_us for values in rates.values() for one in values.values() if one.store_us]
    whole_us = SHARED * min(stores, default=0.0)
    rows, others = [], []
    for kind, factor in ((SINGLE, 3.0), (MANY, 10.0), (BIG, 2.0)):
        against = SINGLE if kind is MANY else kind
        value = medians.get((kind.key, run.ours))
        rival, beside = _best(rates, kind, against, run.ours, math.inf)
        reference = _by(value, beside)
        name = f"throughput, {kind.title}: {factor:g} times the fastest peer ({rival}"
        name += ", one call per message)" if kind is MANY else ")"
        rows.append(at_least(name, value, kind.unit, scaled(reference, factor), reference))
        rival, whole = _best(rates, kind, against, run.ours, whole_us)
        if whole is not None and whole.whole >= LEAST_ROUNDS:
            name = f"throughput, {kind.title}: beside the fastest peer, rounds with whole cores only ({rival})"
            others.append(plain(name, value, kind.unit, _by(value, whole)))
        if whole is not None:
            name = f"during the run, rounds with whole cores, of {whole.rounds}, {kind.title}"
            others.append(about(name, whole.whole, "rounds"))
    rival, beside = _best(rates, MANY, MANY, run.ours, math.inf)
    value = medians.get((MANY.key, run.ours))
    name = f"throughput, {MANY.title}: beside the fastest peer's own batches ({rival})"
    rows += [plain(name, value, MANY.unit, _by(value, beside)), *others]
    rows += _ceiling(run, medians, stores, rates)
    for kind in KINDS:
        for (key, name), values in rates.items():
            if key == kind.key and values:
                for column, value in _spread(values).items():
                    rows.append(entry(f"throughput, {kind.title}", name, column, value, kind.unit))
    if lines := rates.get((LINE, LINE)):
        rows += [about(f"during the run, {LINE}, {column}", value, "ns") for column, value in _spread(lines).items()]
    if stores:
        rows += [about(f"during the run, {STORES}, {column}", value, "us") for column, value in _range(stores).items()]
    return rows


def _ceiling(run: Run, medians: dict[tuple[str, str], float], stores: list[float], rates: Rates) -> list[Row]:
    """What messages of 1 MiB could come to if messaging took no time at all, and only the sender's stores did."""
    value = medians.get((BIG.key, run.ours))
    if not stores or value is None:
        return []
    most = 1e6 / median(stores)
    rival, beside = _best(rates, BIG, BIG, run.ours, math.inf)
    reference = _by(value, beside)
    if reference is not None and 2 * reference > most:
        run.notes.append(
            f"filling a message of 1 MiB takes so long here that no library can be more than {most / reference:.2f} "
            f"times as fast as {rival}"
        )
    return [plain(f"throughput, {BIG.title}: beside filling the bytes and nothing else", value, BIG.unit, most)]


def _by(value: float | None, beside: Beside | None) -> float | None:
    return None if value is None or beside is None else value / beside.ratio


def _spread(values: dict[int, Taken]) -> dict[str, float]:
    return _range([one.rate for one in values.values()])


def _range(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "least": min(values), "most": max(values)}


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

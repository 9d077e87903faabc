"""What does a send cost its publisher when eight subscribers listen instead of one?

The publisher has one core, all subscribers share the other. Waiting subscribers sleep in their receive call when each
message is sent, which the sinks prove by counting how often they slept; busy ones hold a subscription and compute.
"""

from __future__ import annotations

from collections import defaultdict

from harness.command import main
from harness.group import Group
from harness.process import Worker
from harness.rows import Row, at_most, entry, scaled
from harness.run import Run
from harness.stats import quantiles

US = 1e-3
FEW, MANY = 1, 8
WARM_UP = 100
WAITING_GAP_NS = 500_000
BUSY_GAP_NS = 50_000
LIMIT_S = 20.0
ASLEEP = 0.9

WAITING, BUSY = "waiting", "busy"

Samples = dict[tuple[str, int], list[int]]
"""By what the subscribers do, and their number."""


def _waiting(source: Worker, sinks: list[Worker], count: int) -> tuple[list[int], float]:
    """What sends cost while the subscribers wait, and the smallest share of messages one of them slept before."""
    for sink in sinks:
        sink.ask("expect", LIMIT_S, count=WARM_UP + count)
        sink.post("listen", count=WARM_UP + count)
    pids = [sink.pids[0] for sink in sinks]
    source.ask("pace", LIMIT_S, count=WARM_UP, gap_ns=WAITING_GAP_NS, sleepers=pids)
    samples = source.ask("pace", LIMIT_S, count=count, gap_ns=WAITING_GAP_NS, sleepers=pids)
    return samples, min(sink.reply(LIMIT_S)["sleeps"] / (WARM_UP + count) for sink in sinks)


def _busy(source: Worker, sinks: list[Worker], count: int) -> list[int]:
    """What they cost while the subscribers compute."""
    for sink in sinks:
        sink.post("toil", seconds=(WARM_UP + count) * BUSY_GAP_NS / 1e9 + 0.1)
    source.ask("pace", LIMIT_S, count=WARM_UP, gap_ns=BUSY_GAP_NS, sleepers=[])
    samples = source.ask("pace", LIMIT_S, count=count, gap_ns=BUSY_GAP_NS, sleepers=[])
    for sink in sinks:
        sink.reply(LIMIT_S)
    return list(samples)


def _measure(run: Run, group: Group, count: int) -> Samples:
    """Samples with few and with many subscribers.

    Those that were busy have messages waiting, so each number gets fresh ends rather than every peer's queues emptied.
    """
    taken: Samples = {}
    for number in (FEW, MANY):
        source, *sinks = group.start({"end": "source", "fan_out": True}, *[{"end": "sink", "fan_out": True}] * number)
        source.pin(run.cores[0])
        for sink in sinks:
            sink.pin(run.cores[-1])
        taken[WAITING, number], asleep = _waiting(source, sinks, count)
        if asleep < ASLEEP:
            who = f"{group.contender.name}, fan-out to {number}"
            run.notes.append(f"{who}: a subscriber slept before only {asleep:.0%} of the messages")
        taken[BUSY, number] = _busy(source, sinks, count)
    return taken


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's cost per send."""
    if len(run.cores) < 2:
        run.notes.append("fan-out needs two cores; not measured")
        return []
    rounds, count = (1, 300) if run.quick else (3, 2000)
    pool: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for _, contender in run.alternate("fan-out", rounds, run.offering("fan-out")):
        for taken in run.each(
            contender, [("fan-out", count)], lambda group, count: _measure(run, group, count)
        ).values():
            for (state, number), samples in taken.items():
                pool[state, number, contender.name] += samples
    figures = {key: quantiles(samples)[0] * US for key, samples in pool.items()}
    rows = []
    for state, factor in ((WAITING, 2.0), (BUSY, 1.2)):
        value, reference = figures.get((state, MANY, run.ours)), figures.get((state, FEW, run.ours))
        name = f"cost per send p50, {MANY} {state} subscribers: at most {factor:g} times that with {FEW}"
        rows.append(at_most(name, value, "us", scaled(reference, factor), reference))
    for (state, number, who), figure in figures.items():
        rows.append(entry("cost per send p50", who, f"{number} {state}", figure, "us"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

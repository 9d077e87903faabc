"""What does a send cost its publisher when eight subscribers listen instead of one?

The publisher has one core, all subscribers share the other. Waiting subscribers sleep in their receive call when each
message is sent, which the sinks prove by counting how often they slept; busy ones hold a subscription and compute.
"""

from __future__ import annotations

from collections import defaultdict

from harness.cast import Contender
from harness.command import main
from harness.rows import Row, at_most, entry, scaled
from harness.run import Run
from harness.stage import stage
from harness.stats import quantiles

NS = 1e-3
FEW, MANY = 1, 8
WARM_UP = 100
WAITING_GAP_NS = 1_000_000
BUSY_GAP_NS = 50_000
LIMIT_S = 20.0
ASLEEP = 0.9

Samples = dict[tuple[str, int, str], list[int]]
"""By what the subscribers do, their number, and the contender."""


def _measure(run: Run, contender: Contender, sinks: int, count: int) -> tuple[dict[str, list[int]], float]:
    """Samples with waiting and with busy subscribers, and the smallest share of messages one of them slept before."""
    with stage(contender, run.folder) as scene:
        source, *subscribers = scene.cast(
            {"end": "source", "fan_out": True}, *[{"end": "sink", "fan_out": True}] * sinks
        )
        source.pin(run.cores[0])
        for subscriber in subscribers:
            subscriber.pin(run.cores[-1])
            subscriber.ask("expect", LIMIT_S, count=WARM_UP + count)
            subscriber.post("listen", count=WARM_UP + count)
        source.ask("pace", LIMIT_S, count=WARM_UP, gap_ns=WAITING_GAP_NS)
        waiting = source.ask("pace", LIMIT_S, count=count, gap_ns=WAITING_GAP_NS)
        asleep = min(subscriber.reply(LIMIT_S)["sleeps"] / (WARM_UP + count) for subscriber in subscribers)
        seconds = (WARM_UP + count) * BUSY_GAP_NS / 1e9 + 0.2
        for subscriber in subscribers:
            subscriber.post("toil", seconds=seconds)
        source.ask("pace", LIMIT_S, count=WARM_UP, gap_ns=BUSY_GAP_NS)
        busy = source.ask("pace", LIMIT_S, count=count, gap_ns=BUSY_GAP_NS)
        for subscriber in subscribers:
            subscriber.reply(LIMIT_S)
    return {"waiting": waiting, "busy": busy}, asleep


def _collect(run: Run) -> Samples:
    pool: Samples = defaultdict(list)
    rounds, count = (1, 500) if run.quick else (3, 2000)
    for sinks in (FEW, MANY):
        what = f"fan-out ({sinks})"
        for _, contender in run.alternate(what, rounds, run.offering("fan-out")):
            taken = run.attempt(what, contender, _measure, run, contender, sinks, count)
            if taken is None:
                continue
            for state, samples in taken[0].items():
                pool[state, sinks, contender.name] += samples
            if taken[1] < ASLEEP:
                run.notes.append(
                    f"{contender.name}, {what}: a subscriber slept before only {taken[1]:.0%} of the messages"
                )
    return pool


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's cost per send."""
    if len(run.cores) < 2:
        run.notes.append("fan-out needs two cores; not measured")
        return []
    figures = {key: quantiles(samples)[0] * NS for key, samples in _collect(run).items() if samples}
    ours = next((contender.name for contender in run.contenders if contender.ours), "ringcast")
    rows = []
    for state, factor in (("waiting", 2.0), ("busy", 1.2)):
        value, reference = figures.get((state, MANY, ours)), figures.get((state, FEW, ours))
        name = f"cost per send p50, {MANY} {state} subscribers: at most {factor:g} times that with {FEW}"
        rows.append(at_most(name, value, "us", scaled(reference, factor), reference))
    for (state, sinks, who), figure in figures.items():
        rows.append(entry("cost per send p50", who, f"{sinks} {state}", figure, "us"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

"""How long does it take to read the newest message, or one by its number, from a history that another process writes?

Each pull is timed by itself, so the two readings of the clock are part of it.
"""

from __future__ import annotations

from collections import defaultdict

from harness.command import main
from harness.group import Group
from harness.rows import Row, at_most, entry
from harness.run import Run
from harness.stats import quantiles

US = 1e-3
LIMIT_S = 20.0
KEPT = 1000
WARM_UP = 100
LATEST, ABSOLUTE = "the latest", "by number"


def _measure(run: Run, group: Group, count: int) -> dict[str, list[int]]:
    keeper, puller = group.start({"end": "keeper"}, {"end": "puller"})
    keeper.pin(run.cores[0])
    puller.pin(run.cores[-1])
    seq = keeper.ask("keep", LIMIT_S, count=KEPT)
    puller.ask("pull_latest", LIMIT_S, count=WARM_UP)
    taken = {LATEST: puller.ask("pull_latest", LIMIT_S, count=count)}
    if group.contender.offers >= {"pull-at"}:
        puller.ask("pull_at", LIMIT_S, count=WARM_UP, seq=seq)
        taken[ABSOLUTE] = puller.ask("pull_at", LIMIT_S, count=count, seq=seq)
    return taken


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's percentiles."""
    pool: dict[tuple[str, str], list[int]] = defaultdict(list)
    rounds, count = (1, 3000) if run.quick else (3, 20000)
    for _, contender in run.alternate("pull", rounds, run.offering("pull")):
        for taken in run.each(contender, [("pull", count)], lambda group, count: _measure(run, group, count)).values():
            for kind, samples in taken.items():
                pool[kind, contender.name] += samples
    figures = {key: [value * US for value in quantiles(samples)] for key, samples in pool.items()}
    rows = []
    for kind in (LATEST, ABSOLUTE):
        value = figures[kind, run.ours][0] if (kind, run.ours) in figures else None
        peers = [figure[0] for (what, who), figure in figures.items() if what == kind and who != run.ours]
        rows.append(at_most(f"pull of a message, {kind}, p50: under 1 us", value, "us", 1.0, min(peers, default=None)))
    for (kind, who), figure in figures.items():
        for label, value in zip(("p50", "p99", "p99.9"), figure, strict=True):
            rows.append(entry(f"pull, {kind}", who, label, value, "us"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

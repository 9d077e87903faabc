"""How long do 64 bytes take from one Python process to another and back?

Each pair of processes is measured on one core and on two, at rest and beside a CPU load; then busy polling, then
asyncio.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from harness.command import main
from harness.floors import FLOORS, ping_pong
from harness.group import Group
from harness.load import load
from harness.rows import Row, at_most, entry, plain, scaled
from harness.run import Run
from harness.stats import quantiles

US = 1e-3
WARM_UP = 300
LIMIT_S = 10.0
ONE, TWO = "one core", "two cores"
LOADED = "beside a CPU load"
LABELS = ("p50", "p99", "p99.9")
WAYS = {"block": "", "poll": ", busy polling", "asyncio": ", asyncio", "floor": ""}


@dataclass(frozen=True)
class Way:
    """A way of waiting, and the situations to measure it in."""

    waits: str
    situations: list[str]
    count: int
    limit_s: float


Figures = dict[tuple[str, str, str], tuple[float, float, float]]
"""p50, p99 and p99.9 by way of waiting, situation, and who."""

Samples = dict[tuple[str, str, str], list[int]]
"""By way of waiting, situation, contender."""


def _cores(run: Run, situation: str) -> tuple[int, int]:
    return (run.cores[0], run.cores[0]) if situation.startswith(ONE) else (run.cores[0], run.cores[1])


def _situations(run: Run) -> list[str]:
    return [ONE] if len(run.cores) == 1 else [ONE, TWO]


def _pair(run: Run, group: Group, way: Way) -> dict[str, list[int]]:
    """Open a pair and take it through the situations; the pong side echoes all the while."""
    ping, pong = group.start(*[{"end": "link", "side": side, "waits": way.waits} for side in ("ping", "pong")])
    pong.post("pong")
    taken = {}
    for situation in way.situations:
        here, there = _cores(run, situation)
        for worker in group.workers:
            worker.pin(here, there)
        ping.pin(here)
        pong.pin(there)
        with load({here, there} if LOADED in situation else set()):
            ping.ask("ping", LIMIT_S, count=WARM_UP, limit_s=way.limit_s)
            taken[situation] = ping.ask("ping", LIMIT_S, count=way.count, limit_s=way.limit_s)
    ping.ask("stop", LIMIT_S)
    pong.reply(LIMIT_S)
    return taken


def _collect(run: Run) -> Samples:
    """All samples of all contenders, pooled over rounds of alternating order."""
    pool: Samples = defaultdict(list)
    rounds, count, limit_s = (2, 1500, 0.3) if run.quick else (4, 10000, 2.0)
    calm = _situations(run)
    loaded = [f"{situation}, {LOADED}" for situation in calm]
    for number, contender in run.alternate("round trip", rounds, run.contenders):
        # Blocking at rest is what most is asked of; the others need not be taken in every round.
        ways = [Way("block", calm + (loaded if number % 2 else []), count, limit_s)]
        if number % 2 == 0:
            ways += [Way("asyncio", calm, count, limit_s), Way("poll", calm[1:], count, limit_s)]
        parts = [(f"round trip ({way.waits})", way) for way in ways if way.waits in contender.offers and way.situations]
        taken = run.each(contender, parts, lambda group, way: (way.waits, _pair(run, group, way)))
        for waits, figures in taken.values():
            for situation, samples in figures.items():
                pool[waits, situation, contender.name] += samples
        if contender.name == run.ours:  # the floors with us, in every round: what is compared is measured together
            for situation in calm:
                for floor in FLOORS:
                    pool["floor", situation, floor] += ping_pong(run, floor, *_cores(run, situation), count)
    return pool


def _best(figures: Figures, waits: str, situation: str, label: str, ours: str) -> tuple[str, float | None]:
    """The peer with the lowest figure, and the figure."""
    peers = {
        who: figure[LABELS.index(label)]
        for (way, where, who), figure in figures.items()
        if (way, where) == (waits, situation) and who != ours
    }
    if not peers:
        return "none measured", None
    best = min(peers, key=peers.__getitem__)
    return best, peers[best]


def _of(figures: Figures, waits: str, situation: str, label: str, who: str) -> float | None:
    figure = figures.get((waits, situation, who))
    return figure[LABELS.index(label)] if figure else None


def _asked(run: Run, figures: Figures) -> list[Row]:
    """The issue's lines that have a target."""
    rows = []
    for situation in _situations(run):
        value = _of(figures, "block", situation, "p50", run.ours)
        rival, reference = _best(figures, "block", situation, "p50", run.ours)
        factor = 5.0 if situation == ONE else 1.4
        name = f"round trip p50, {situation}: {factor:g} times faster than the fastest blocking peer ({rival})"
        rows.append(at_most(name, value, "us", scaled(reference, 1 / factor), reference))
    for situation, floor, factor in ((ONE, FLOORS[0], 1.0), (ONE, FLOORS[1], 1.25), (TWO, FLOORS[1], 1.1)):
        if situation in _situations(run):
            value = _of(figures, "block", situation, "p50", run.ours)
            reference = _of(figures, "floor", situation, "p50", floor)
            name = f"round trip p50, {situation}: at most {factor:g} times {floor}"
            rows.append(at_most(name, value, "us", scaled(reference, factor), reference))
    for situation in _situations(run):
        value = _of(figures, "asyncio", situation, "p50", run.ours)
        reference = _of(figures, "floor", situation, "p50", FLOORS[2])
        name = f"round trip p50, {situation}, asyncio: at most 2 times {FLOORS[2]}"
        rows.append(at_most(name, value, "us", scaled(reference, 2.0), reference))
        rival, reference = _best(figures, "asyncio", situation, "p50", run.ours)
        name = f"round trip p50, {situation}, asyncio: 4 times faster than the fastest peer ({rival})"
        rows.append(at_most(name, value, "us", scaled(reference, 0.25), reference))
    if len(run.cores) > 1:
        value = _of(figures, "poll", TWO, "p50", run.ours)
        _, reference = _best(figures, "poll", TWO, "p50", run.ours)
        rows.append(at_most("round trip p50, two cores, busy polling: under 4 us", value, "us", 4.0, reference))
    return rows


def _reported(run: Run, figures: Figures) -> list[Row]:
    """The issue's lines that are only to be reported beside the peers'."""
    rows = []
    for situation in _situations(run):
        for waits, where, label in (
            ("block", f"{situation}, {LOADED}", "p99"),
            ("block", f"{situation}, {LOADED}", "p99.9"),
        ):
            rival, reference = _best(figures, waits, where, label, run.ours)
            name = f"round trip {label}, {where}{WAYS[waits]}: beside the best peer ({rival})"
            rows.append(plain(name, _of(figures, waits, where, label, run.ours), "us", reference))
    return rows


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's percentiles."""
    figures: Figures = {}
    for key, samples in _collect(run).items():
        if samples:
            p50, p99, p999 = quantiles(samples)
            figures[key] = (p50 * US, p99 * US, p999 * US)
    rows = _asked(run, figures) + _reported(run, figures)
    for (waits, situation, who), figure in figures.items():
        for label, value in zip(LABELS, figure, strict=True):
            rows.append(entry(f"round trip, {situation}{WAYS[waits]}", who, label, value, "us"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

"""How long do 64 bytes take from one Python process to another and back?

Each pair of processes is measured on one core and on two, at rest and beside a CPU load; then busy polling, then
asyncio.
"""

from __future__ import annotations

from collections import defaultdict

from harness.cast import Contender
from harness.command import main
from harness.floors import FLOORS, ping_pong
from harness.load import load
from harness.rows import Row, at_most, entry, scaled
from harness.run import Run
from harness.stage import stage
from harness.stats import quantiles

US = 1e-3
WARM_UP = 300
LIMIT_S = 10.0
ONE, TWO = "one core", "two cores"
LOADED = "beside a CPU load"

Samples = dict[tuple[str, str, str], list[int]]
"""By way of waiting, situation, contender."""


def _cores(run: Run, situation: str) -> tuple[int, int]:
    return (run.cores[0], run.cores[0]) if situation.startswith(ONE) else (run.cores[0], run.cores[1])


def _situations(run: Run) -> list[str]:
    return [ONE] if len(run.cores) == 1 else [ONE, TWO]


def _measure(
    run: Run, contender: Contender, waits: str, situations: list[str], count: int, limit_s: float
) -> dict[str, list[int]]:
    """Open a pair once and take it through the situations; the pong side echoes all the while."""
    taken = {}
    with stage(contender, run.folder) as scene:
        sides = [{"end": "link", "side": side, "waits": waits} for side in ("ping", "pong")]
        ping, pong = scene.cast(*sides)
        pong.post("pong")
        for situation in situations:
            here, there = _cores(run, situation)
            for worker in scene.workers:
                worker.pin(here, there)
            ping.pin(here)
            pong.pin(there)
            with load({here, there} if LOADED in situation else set()):
                ping.ask("ping", LIMIT_S, count=WARM_UP, limit_s=limit_s)
                taken[situation] = ping.ask("ping", LIMIT_S, count=count, limit_s=limit_s)
        ping.ask("stop", LIMIT_S)
        pong.reply(LIMIT_S)
    return taken


def _collect(run: Run) -> Samples:
    """All samples of all contenders, pooled over rounds of alternating order."""
    pool: Samples = defaultdict(list)
    rounds, count, limit_s = (2, 2000, 0.4) if run.quick else (6, 10000, 3.0)
    calm = _situations(run)
    loaded = [f"{situation}, {LOADED}" for situation in calm]
    # The processes of a pair are worth more than one use: every other round adds the load.
    plans = [("block", calm, loaded, rounds), ("asyncio", calm, [], rounds // 2)]
    if len(run.cores) > 1:
        plans.append(("poll", [TWO], [], rounds // 2))
    for waits, always, sometimes, times in plans:
        what = f"round trip ({waits})"
        for number, contender in run.alternate(what, times, run.offering(waits)):
            situations = always + (sometimes if number % 2 else [])
            taken = run.attempt(what, contender, _measure, run, contender, waits, situations, count, limit_s)
            for situation, samples in (taken or {}).items():
                pool[waits, situation, contender.name] += samples
    for situation in calm:
        here, there = _cores(run, situation)
        for floor in FLOORS:
            pool["floor", situation, floor] = ping_pong(run, floor, here, there, count * rounds)
    return pool


def _lines(run: Run, p50: dict[tuple[str, str, str], float], ours: str) -> list[Row]:
    """The lines of the issue's table."""
    rows = []
    for situation in _situations(run):
        value = p50.get(("block", situation, ours))
        blocking = {
            name: v
            for (waits, where, name), v in p50.items()
            if (waits, where) == ("block", situation) and name != ours
        }
        best = min(blocking, key=blocking.__getitem__) if blocking else None
        reference = blocking[best] if best else None
        factor = 5.0 if situation == ONE else 1.4
        head = f"round trip p50, {situation}"
        name = f"{head}: {factor:g} times faster than the fastest blocking peer ({best or 'none measured'})"
        rows.append(at_most(name, value, "us", scaled(reference, 1 / factor), reference))
        if situation == ONE:
            for floor, limit, words in ((FLOORS[0], 1.0, "not slower than"), (FLOORS[1], 1.6, "at most 1.6 times")):
                reference = p50.get(("floor", situation, floor))
                rows.append(at_most(f"{head}: {words} {floor}", value, "us", scaled(reference, limit), reference))
    if len(run.cores) > 1:
        polling = [v for (waits, _, name), v in p50.items() if waits == "poll" and name != ours]
        value = p50.get(("poll", TWO, ours))
        rows.append(
            at_most("round trip p50, two cores, busy polling: under 4 us", value, "us", 4.0, min(polling, default=None))
        )
    return rows


def measure(run: Run) -> list[Row]:
    """The rows of this question: the issue's lines, then everybody's percentiles."""
    pool = {key: samples for key, samples in _collect(run).items() if samples}
    figures = {key: tuple(value * US for value in quantiles(samples)) for key, samples in pool.items()}
    ours = next((contender.name for contender in run.contenders if contender.ours), "ringcast")
    rows = _lines(run, {key: figure[0] for key, figure in figures.items()}, ours)
    ways = {"block": "", "poll": ", busy polling", "asyncio": ", asyncio", "floor": ""}
    for (waits, situation, name), figure in figures.items():
        for label, value in zip(("p50", "p99", "p99.9"), figure, strict=True):
            rows.append(entry(f"round trip, {situation}{ways[waits]}", name, label, value, "us"))
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

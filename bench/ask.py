"""How long does a question of 64 bytes take to be answered, from one Python process to another?

One node: `tag.ask` beside pyzmq's req/rep, zenoh's get and nats' request, each by its fastest way. Two nodes: two
daemons of one mesh, beside the same libraries over tcp. The server's function returns what it was asked.
"""

from __future__ import annotations

from collections import defaultdict

from harness.command import main
from harness.group import Group
from harness.rows import Row, at_most, entry, scaled
from harness.run import Run
from harness.stats import quantiles

US = 1e-3
WARM_UP = 300
LIMIT_S = 10.0
ONE, TWO = "one core", "two cores"
LABELS = ("p50", "p99", "p99.9")
WAYS = {"ask": "one node", "ask-network": "two nodes"}
TARGETS = {("ask", ONE): 3.0, ("ask-network", ONE): 1.5}
OURS = {"ask": "ringcast", "ask-network": "ringcast, two nodes"}


def _situations(run: Run) -> dict[str, tuple[int, int]]:
    found = {ONE: (run.cores[0], run.cores[0])}
    if len(run.cores) > 1:
        found[TWO] = (run.cores[0], run.cores[1])
    return found


def _pair(run: Run, group: Group, way: str, count: int, limit_s: float) -> dict[str, list[int]]:
    ping, pong = group.start(*[{"end": "link", "side": side, "waits": way} for side in ("ping", "pong")])
    pong.post("pong")
    taken = {}
    for situation, (here, there) in _situations(run).items():
        for worker in group.workers:
            worker.pin(here, there)
        ping.pin(here)
        pong.pin(there)
        ping.ask("ping", LIMIT_S, count=WARM_UP, limit_s=limit_s)
        taken[situation] = ping.ask("ping", LIMIT_S, count=count, limit_s=limit_s)
    ping.ask("stop", LIMIT_S)
    pong.reply(LIMIT_S)
    return taken


def measure(run: Run) -> list[Row]:
    """The issue's lines, then everybody's percentiles."""
    pool: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    rounds, count, limit_s = (2, 1500, 0.4) if run.quick else (4, 10000, 2.0)
    asking = [contender for contender in run.contenders if contender.offers & WAYS.keys()]
    for _, contender in run.alternate("ask", rounds, asking):
        parts = [(f"ask ({WAYS[way]})", way) for way in WAYS if way in contender.offers]
        taken = run.each(contender, parts, lambda group, way: (way, _pair(run, group, way, count, limit_s)))
        for way, figures in taken.values():
            for situation, samples in figures.items():
                pool[way, situation, contender.name] += samples
    figures = {key: tuple(value * US for value in quantiles(samples)) for key, samples in pool.items() if samples}
    rows = []
    for (way, situation), factor in TARGETS.items():
        peers = {
            who: found[0]
            for (how, where, who), found in figures.items()
            if (how, where) == (way, situation) and who != OURS[way]
        }
        best = min(peers, key=peers.__getitem__, default="none measured")
        reference, ours = peers.get(best), figures.get((way, situation, OURS[way]))
        name = f"ask and answer p50, {WAYS[way]}, {situation}: {factor:g} times faster than the fastest peer ({best})"
        rows.append(at_most(name, ours[0] if ours else None, "us", scaled(reference, 1 / factor), reference))
    for (way, situation, who), found in figures.items():
        rows += [
            entry(f"ask and answer, {WAYS[way]}, {situation}", who, label, value, "us")
            for label, value in zip(LABELS, found, strict=True)
        ]
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure]))

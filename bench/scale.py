"""How does cost grow: with tags, publishers behind a wildcard, subscribers, clients, nodes, ring depth, message size?

Each curve says the order that is expected of it, and its row is not met when its slope on log axes is steeper; a run
with such a row ends with 1. Pictures go to out/bench/scale. Peers that can hold many topics in a process stand beside.
A full run takes long: --part asks for some of it.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from growth import mesh, one_node, one_ring
from growth.curve import Curve, growth
from growth.probes import Found
from harness.command import main
from harness.group import Group
from harness.rows import Row, at_most, plain
from harness.run import Run
from ringcast.errors import RingcastError
from ringcast.lab.measuring.picture import draw

OUT = Path("out/bench/scale")
CROWD_S = 600.0
MESSAGES = 300

QUESTIONS: dict[str, Callable[[Path, bool], Found]] = {
    "tags": lambda place, quick: one_node.tags(place, 1000 if quick else 10_000),
    "publishers": lambda place, quick: one_node.publishers(place, 100 if quick else 1000),
    "subscribers": lambda place, quick: one_node.subscribers(place, 50 if quick else 200),
    "clients": lambda place, quick: one_node.clients(place, 100 if quick else 500),
    "stuck": lambda place, quick: one_node.stuck(place),
    "depths": lambda place, quick: one_ring.depths(place, 10_000 if quick else 1_000_000),
    "sizes": lambda place, quick: one_ring.sizes(place, 4 << 20 if quick else 256 << 20),
    "nodes": lambda place, quick: mesh.nodes(place, 5 if quick else 50, 1000),
    "join": lambda place, quick: mesh.join(place, 5 if quick else 20, 1000 if quick else 10_000),
    "simulated": lambda place, quick: mesh.simulated(
        (10, 30, 100) if quick else (10, 100, 1000), 1000 if quick else 10_000
    ),
}
PEERS = "peers"


def measure(run: Run) -> list[Row]:
    """The rows of this question, its parts one after the other."""
    asked = [name for name in QUESTIONS if run.wants(name)]
    run.expect("scale", len(asked))
    OUT.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in asked:
        run.advance(f"scale: {name}")
        with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as folder:
            try:
                _drawn(QUESTIONS[name](Path(folder), run.quick), rows)
            except (RingcastError, RuntimeError, OSError, AssertionError) as exc:
                rows.append(at_most(f"{name}: not measured to the end ({exc})", None, "parts", 0.0))
    return rows + (_beside(run) if run.wants(PEERS) else [])


def _drawn(found: Found, rows: list[Row]) -> None:
    for one in found:
        if isinstance(one, Curve):
            draw(one.picture(), OUT)
            rows += one.rows()
        else:
            rows.append(one)


def _beside(run: Run) -> list[Row]:
    """What the same costs with peers: topics in one process, each with a publisher and a subscriber."""
    sizes = (1, 10, 100) if run.quick else (1, 10, 100, 1000)
    curves: dict[str, list[tuple[int, float]]] = defaultdict(list)
    rows: list[Row] = []
    for _, contender in run.alternate("scale: peers", 1, run.offering("crowd")):

        def grow(group: Group, _: None, who: str = contender.name) -> dict[str, float]:
            (worker,) = group.start({"end": "crowd"})
            held = 0
            for n in sizes:
                worker.ask("grow", CROWD_S, first=held, count=n - held)
                held = n
                curves[who].append((n, 1e6 * worker.ask("cost", CROWD_S, count=MESSAGES)))
            taken: dict[str, float] = worker.ask("take_up", CROWD_S, tries=30)
            return taken

        for taken in run.each(contender, [("many topics", None)], grow).values():
            curve = Curve(f"{contender.name}: cost per message", "topics", "us", "constant", curves[contender.name])
            draw(curve.picture(), OUT)
            name = f"peers: {contender.name}"
            rows.append(plain(f"{name}, cost per message, {sizes[-1]} topics against 1", growth(curve.points), "times"))
            rows += [plain(f"{name}, {what}, p50, {sizes[-1]} topics", 1e3 * s, "ms") for what, s in taken.items()]
    return rows


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [measure], parts=[*QUESTIONS, PEERS], strict=True))

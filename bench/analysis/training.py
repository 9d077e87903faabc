"""How well the trained models choose a transport where they were not trained, and how fast."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import msgspec

from harness.rows import Row, at_least, plain
from harness.run import Run

METRICS = ("relate2", "relate", "relate2_net", "latency_mean", "delivered")


def trained(run: Run, spark: Any, folder: Path) -> list[Row]:
    """From the simulator of `ringcast lab run adamant` to a model, judged where it was not trained."""
    from ringcast.adapt import Chooser
    from ringcast.lab.adamant import experiment
    from ringcast.lab.adamant import results as adamant_results
    from ringcast.lab.adamant.environments import environment_grid
    from ringcast.lab.adamant.grid import paper_grid
    from ringcast.lab.simulation.workers import workers
    from ringcast.record import results as kept
    from ringcast.spark.experiments.grid import repeatable
    from ringcast.spark.experiments.train import mean, train
    from ringcast.spark.lake import Lake
    from ringcast.spark.tables.bronze import RESULTS

    class Steps:
        def expect(self, number: int) -> None:
            run.expect("train", number)

        def step(self, what: str) -> None:
            run.advance("train")

        def rounds(self, wanted: int, least: int, most_s: float) -> range:
            return range(wanted)

    paper = msgspec.structs.replace(paper_grid(False), updates=2_000, repetitions=2)
    drawn = environment_grid(run.quick)
    # Twice, so that it can be said how well the experiment repeats itself.
    drawn = msgspec.structs.replace(drawn, cells=drawn.cells[:2_000], repetitions=2)
    Steps().expect(len(paper.cells) + len(drawn.cells))
    rows = []
    for kind, grid in (("paper's", paper), ("drawn", drawn)):
        with workers() as pool:
            results = experiment.run_grid(kind, grid, Steps(), pool)
        lake = folder / f"lake of {grid.updates}"
        kept.keep(adamant_results.measured(results), lake, machine="simulated")
        table = Lake(spark, lake).read(RESULTS)
        for metric in METRICS[:1] if run.quick or grid is paper else METRICS:
            found = train(table, metric)
            name = f"train, {metric}, {kind} environments"
            asked = (
                f"{name}: within 5 % of the best, of {found.held_out} different ones of {found.environments} held out"
            )
            target = 0.95 if metric == "relate2" else None
            rows.append(at_least(asked, found.share, "share", target, found.constant))
            rows += [
                plain(f"{name}: {family}, where families are chosen", mean(of), "share")
                for family, of in found.shares.items()
            ]
            rows.append(plain(f"{name}: the worst split", min(found.scores), "share"))
            for key, shares in found.whole.items():
                rows += [plain(f"{name}: all of {key} {value} held out", one, "share") for value, one in shares.items()]
                rows.append(plain(f"{name}: whole {key} held out, mean", mean(list(shares.values())), "share"))
            rows.append(plain(f"{name}: always the same transport", found.constant, "share"))
            if metric != "delivered":
                again = repeatable(table, metric)
                rows.append(plain(f"{name}: the best of one repetition, within 5 % in the other", again, "share"))
            rows += [plain(f"{name}: best is {label}", number, "environments") for label, number in found.wins.items()]
            text = msgspec.json.encode(found.model)
            rows.append(plain(f"{name}: the model as JSON", len(text) / 1e3, "kB"))
            rows.append(plain(f"{name}: a choice in plain Python", _choice_us(Chooser.parse(text)), "us"))
    return rows


def _choice_us(chooser: Any) -> float:
    """The median over environments inside what the model knows, one after the other."""
    chance = random.Random(1)
    taken = []
    for _ in range(1_000):
        place = {name: chance.uniform(*ends) for name, ends in chooser.spans.items()}
        begin = time.perf_counter_ns()
        chooser.choose(place)
        taken.append(time.perf_counter_ns() - begin)
    return sorted(taken)[len(taken) // 2] / 1e3

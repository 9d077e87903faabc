"""The real part of `ringcast lab run adamant`, in order: round trips, fan-out, and streams under kernel loss.

Needs root; without it everything here is a row without a value that says why (`skipped`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial

import msgspec

from ringcast.lab.adamant.field import bare, comparison, fan_out, round_trips
from ringcast.lab.adamant.field.comparison import Comparison
from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.adamant.field.plan import (
    NOTHING_LOST,
    SEEDS,
    SLOW,
    Contender,
    FieldPlan,
    Links,
    field_plan,
    links_of,
    prediction,
)
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adamant.results import ON_THE_WIRE, Result, summarise
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.packet_loss import Outcome
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.lab.testbed.network import unavailable

EXPERIMENT = "adamant field"
Run = tuple[Cell, Contender, Outcome]


def run(quick: bool, steps: Steps, pool: Executor) -> tuple[Findings, list[Result]]:
    """With every run's figures, measured and predicted. Raises LabError."""
    if reason := unavailable():
        return skipped(reason), []
    findings, others = Findings(), Disturbance()
    # Many short blocks: what the machine does for a while falls into few of them.
    rounds, count = (25, 150) if quick else (120, 200)
    with FieldNetwork(1) as two:
        batches = round_trips.measure(two, (round_trips.REFERENCE, *round_trips.ASKED), rounds, count, steps)
        findings.add(round_trips.conclude(batches))
    plan = field_plan(quick)
    with FieldNetwork(max(*plan.receivers, fan_out.MANY)) as network:
        if fan_out.available():
            findings.add(fan_out.conclude(fan_out.measure(network, steps)))
        else:
            findings.rows += fan_out.unanswered(f"needs {fan_out.TRACER}, which is not installed")
        findings.add(bare.conclude(bare.measure(network, 4 if quick else 20, steps)))
        runs = streams(network, plan, steps)
    findings.rows += others.rows("during the part on a real network")
    compared = predict(runs, plan, pool)
    findings.add(comparison.conclude(compared))
    return findings, [result for one in compared for result in (one.measured, *one.predicted)]


def streams(network: FieldNetwork, plan: FieldPlan, steps: Steps) -> list[Run]:
    """Raises ActorFailed, LabError."""
    steps.expect(plan.runs)
    network.start([network.here, *network.there(max(plan.receivers))])
    runs = []
    for cell in plan.cells:
        for contender in plan.contenders_of(cell):
            steps.step(f"real network: {contender.name}, {cell.label}")
            runs.append((cell, contender, network.run(cell, contender, plan.losses[cell.loss])))
    for cell in plan.slow_cells:
        steps.step(f"real network: all transports, {cell.label}")
        outcomes = network.run_together(cell, plan.contenders, SLOW[cell.rate_hz])
        runs += [(cell, contender, outcome) for contender, outcome in zip(plan.contenders, outcomes, strict=True)]
    return runs


def predict(runs: Sequence[Run], plan: FieldPlan, pool: Executor) -> list[Comparison]:
    """What the simulator says of the same runs, on links as these were."""
    links = {
        (cell.receivers, cell.rate_hz): links_of([1e6 * s for s in outcome.latencies_s])
        for cell, contender, outcome in runs
        if cell.loss == NOTHING_LOST and contender.name == packet_loss.UDP
    }
    one = partial(_predict_one, links=links)
    predicted = pool.map(one, [(cell, contender, outcome.scenario.updates) for cell, contender, outcome in runs])
    return [
        Comparison(cell, contender.name, _measured(cell, outcome), results)
        for (cell, contender, outcome), results in zip(runs, predicted, strict=True)
    ]


def _measured(cell: Cell, outcome: Outcome) -> Result:
    """Of streams side by side, packets on the wire cannot be told apart."""
    found = summarise(EXPERIMENT, outcome, real=True)
    if cell.rate_hz not in SLOW:
        return found
    metrics = {name: value for name, value in found.metrics.items() if name not in ON_THE_WIRE}
    return msgspec.structs.replace(found, metrics=metrics)


def _predict_one(job: tuple[Cell, Contender, int], links: dict[tuple[int, float], Links]) -> tuple[Result, ...]:
    cell, contender, updates = job
    return tuple(
        summarise(
            EXPERIMENT,
            packet_loss.run(prediction(cell, contender, links[cell.receivers, cell.rate_hz], updates, seed)),
            name=contender.name,
        )
        for seed in SEEDS
    )


def skipped(reason: str) -> Findings:
    why = "needs real sockets on a network of its own: skipped"
    return Findings(
        [*round_trips.unanswered(why), *fan_out.unanswered(why), *bare.unanswered(why)],
        notes=[f"the part on a real network was skipped: {reason}"],
    )

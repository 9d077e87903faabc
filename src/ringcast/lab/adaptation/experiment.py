"""`lab run adaptation`: one stream lives through phases, adaptive against every fixed transport; and steadily.

Simulated: the native stacks and the very code by which daemons choose. Costs are ReLate2, mean over seeds, of what was
sent after the first 300 messages of a phase. Real: daemons in network namespaces, at a reduced size (`real`), and what
changes of transport cost there (`switching`). That needs root, and is left out without it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ringcast.adapt import Chooser
from ringcast.adapt.deciding import ENOUGH, Deciding
from ringcast.adapt.environment import Environment
from ringcast.adapt.judging import Examples, held_out_examples, judged, shipped_examples
from ringcast.adapt.ranking import ranked
from ringcast.adapt.shipped import ruled, shipped_model
from ringcast.adapt.wanting import Wish, plain
from ringcast.lab.adamant.environments import environments
from ringcast.lab.adamant.field.network import FieldNetwork
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adaptation import choices, real, switching
from ringcast.lab.adaptation.choices import REAL, SIMULATED, WITHIN
from ringcast.lab.adaptation.living import Carrier, Choosing, Life, anything_serves, live
from ringcast.lab.adaptation.phases import FIXED, SETTLING, Phase, phases
from ringcast.lab.adaptation.real import ADAPTIVE
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.lab.testbed.network import unavailable

NEEDS_ROOT = False
PARTS = (SIMULATED, REAL)
"""What `--part` may name."""
CHOOSES_BY_LAKE = True
"""`run` is told which lake may have a model."""
__all__ = ["CHOOSES_BY_LAKE", "NEEDS_ROOT", "PARTS", "PIPELINES", "conclude", "pipelines", "run"]
STEADY_S = 600.0
STEADY_SEEDS = {True: 3, False: 20}
"""By whether it is quick."""
DECISIONS = 20_000
LEAST_SEEDS = 2
TOGETHER_S = 15.0
"""For the simulated phases, where all experiments run in their quick forms."""
_STEADY = (
    Cell(3, 0.0, 1.0, 100.0, 200, 500.0, 100.0), Cell(3, 0.0005, 1.0, 100.0, 200, 500.0, 100.0),
    Cell(10, 0.01, 1.0, 50.0, 200, 500.0, 100.0), Cell(10, 0.05, 3.0, 50.0, 200, 2_000.0, 100.0),
    Cell(25, 0.03, 1.0, 20.0, 200, 150.0, 20.0),
)  # fmt: skip


def run(
    quick: bool, steps: Steps, part: str = "", folder: Path | None = None, lake: Path | None = None
) -> Findings:  # fmt: skip
    """`lake` may have a model that was trained there. Raises ModelError, LabError."""
    findings = Findings()
    if part in ("", REAL):
        findings.add(run_real(quick, steps))
    if part in ("", SIMULATED):
        findings.add(run_simulated(quick, steps, lake))
    return findings


def run_real(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    if reason := unavailable():
        return choices.unanswered(reason)
    plan, others = real.phases(quick), Disturbance()
    steps.expect(len(plan))
    findings = Findings()
    carriers = (real.ADAPTIVE, *(real.QUICK_FIXED if quick else real.FIXED))
    receivers = max(*(phase.receivers for phase in plan), switching.RECEIVERS)
    with FieldNetwork(receivers, publishers=len(carriers)) as network:
        findings.add(switching.conclude(switching.run(network, 1 if quick else 3, steps)))
        findings.add(choices.conclude(plan, real.Living(network, carriers, steps).live(plan)))
        if not quick:
            steps.expect(1)
            findings.add(choices.steady(real.Living(network, [real.ADAPTIVE], steps).live([real.steady()])))
    findings.rows += others.rows("during the part on a real network")
    return findings


def run_simulated(quick: bool, steps: Steps, lake: Path | None = None) -> Findings:
    """Raises ModelError."""
    model, by = model_of(lake)
    seeds = range(1, 6 if quick else 21)
    plan = phases(quick)
    steps.expect(len(seeds) + 2)
    names = [phase.name for phase in plan]
    findings = Findings()
    fixed: dict[str, list[list[float]]] = {name: [] for name in FIXED}
    adaptive: list[list[float]] = []
    first: list[Life] = []
    for number in steps.rounds(len(seeds), LEAST_SEEDS, TOGETHER_S):
        seed = seeds[number]
        steps.step(f"phases, seed {seed} of {len(seeds)}")
        for name in FIXED:
            fixed[name].append([life.relate2() for life in live(plan, Carrier(name), seed)])
        lives = live(plan, Choosing(model), seed)
        adaptive.append([life.relate2() for life in lives])
        first = first or lives
    findings.add(conclude_phases(names, {name: _means(runs) for name, runs in fixed.items()}, _means(adaptive)))
    findings.add(told(plan, first))
    findings.measured += choices.measured(SIMULATED, names, {**fixed, ADAPTIVE: adaptive})
    steps.step("ten minutes in which nothing changes")
    findings.add(_steady(model, STEADY_SEEDS[quick]))
    steps.step("how long a decision takes")
    if model is not None:
        findings.add(_decisions(model))
        findings.add(beyond_the_grid(model, of_package=by == OF_PACKAGE))
    findings.notes.append(by)
    findings.notes.append(
        f"costs are ReLate2 (ms), mean of {len(adaptive)} seeds, after the first {SETTLING} messages of a phase; "
        "simulated, as daemons deliver to whoever subscribes with ordered=False"
    )
    return findings


OF_PACKAGE = "chosen by the model of the package"


def model_of(lake: Path | None) -> tuple[Chooser | None, str]:
    """What was trained in that lake, or else the package's. Raises ModelError."""
    path = lake / "models" / "relate2.json" if lake is not None else None
    if path is not None and path.exists():
        return Chooser.load(path), f"chosen by {path}"
    found = shipped_model("relate2")
    return found, OF_PACKAGE if found is not None else "chosen by the rule alone"


def pipelines(part: str) -> tuple[str, ...]:
    return PIPELINES


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Costs of carriers and what is said of them, as Spark computes them from the lake."""
    names, costs = choices.from_lake(
        analysed, SIMULATED, [phase.name for phase in phases(quick=False)], [*FIXED, ADAPTIVE]
    )
    if names:
        ours = costs.pop(ADAPTIVE)
        sampled.by_spark(findings, conclude_phases(names, costs, ours))
    order = dict.fromkeys(phase.name for quick in (False, True) for phase in real.phases(quick))
    names, costs = choices.from_lake(analysed, REAL, list(order), [real.ADAPTIVE, choices.APART, *real.FIXED])
    if names:
        sampled.by_spark(findings, choices.judged(names, costs))


def _means(runs: Sequence[Sequence[float]]) -> list[float]:
    """By phase, of all seeds."""
    return [statistics.fmean(costs) for costs in zip(*runs, strict=True)]


def conclude_phases(names: Sequence[str], means: Mapping[str, Sequence[float]], ours: Sequence[float]) -> Findings:
    """`means` are the costs of fixed transports, by phase; `ours` those of what chose itself. Pure."""
    best = [min(means, key=lambda name, at=at: means[name][at]) for at in range(len(names))]  # type: ignore[misc]
    ratios = [ours[at] / means[best[at]][at] for at in range(len(names))]
    lowest = [means[name][at] for at, name in enumerate(best)]
    overall = {
        name: statistics.fmean(cost / least for cost, least in zip(costs, lowest, strict=True))
        for name, costs in means.items()
    }
    single = min(overall, key=lambda name: overall[name])
    rows = [
        at_most(f"{name}: adaptive against the best fixed transport ({best[at]})", ratios[at], "times", WITHIN)
        for at, name in enumerate(names)
    ]
    rows += [
        at_least("phases: different winners", float(len(set(best))), "transports", 2.0),
        at_most(f"all phases: adaptive against the best single fixed transport ({single}), mean of phases",
                statistics.fmean(ratios) / overall[single], "times", 1.0),
    ]  # fmt: skip
    table = Table(
        "Phases", ("phase", "best fixed", "its cost", "adaptive"),
        [[name, best[at], f"{lowest[at]:.3f}", f"{ours[at]:.3f}"] for at, name in enumerate(names)],
    )  # fmt: skip
    costs = Table(
        "Cost against the best fixed transport of each phase", ("transport", *names, "mean"),
        [
            [name, *(f"{c / lowest[at]:.2f}" for at, c in enumerate(of)), f"{overall[name]:.2f}"]
            for name, of in sorted(means.items(), key=lambda pair: overall[pair[0]])
        ] + [["adaptive", *(f"{ratio:.2f}" for ratio in ratios), f"{statistics.fmean(ratios):.2f}"]],
    )  # fmt: skip
    return Findings(rows=rows, tables=[table, costs], pictures=[_choices(names, single, means, ours)])


def told(plan: Sequence[Phase], first: Sequence[Life]) -> Findings:
    """What the first seed's stream was carried by. Pure."""
    table = Table(
        "What was chosen, first seed", ("phase", "chosen (from which message on)"),
        [
            [phase.name, ", ".join(f"{name} ({since})" for since, name in life.chosen)]
            for phase, life in zip(plan, first, strict=True)
        ],
    )  # fmt: skip
    return Findings(tables=[table], pictures=_over_time(plan, first))


def _over_time(plan: Sequence[Phase], first: Sequence[Life]) -> list[Picture]:
    """Of the first seed, phase by phase and message by message."""
    begun, chosen, began = 0, list[tuple[float, str]](), []
    for phase, life in zip(plan, first, strict=True):
        began.append((float(begun), phase.name))
        chosen += [(float(begun + since), name) for since, name in life.chosen]
        begun += phase.messages
    # A phase begins with what the one before it ended with.
    changes = [one for at, one in enumerate(chosen) if not at or one[1] != chosen[at - 1][1]]
    if not changes:
        return []
    title = "What carried the stream, simulated"
    return [choices.over_time("choice-over-time", title, "messages", changes, began, float(begun))]


def _choices(names: Sequence[str], single: str, means: Mapping[str, Sequence[float]], ours: Sequence[float]) -> Picture:
    series = [
        Series("adaptive", list(enumerate(ours))),
        Series(f"always {single}", list(enumerate(means[single]))),
        *(
            Series(f"always {name}", list(enumerate(means[name])))
            for name in ("nak", "multicast")
            if name in means.keys() - {single}
        ),
    ]
    return Picture("phases", "ReLate2 by phase: adaptive and fixed", "", "ms", series, "bars", list(names))


def _steady(model: Chooser | None, seeds: int) -> Findings:
    switches = [
        changes(cell, round(STEADY_S * cell.rate_hz), model, seed) for cell in _STEADY for seed in range(1, seeds + 1)
    ]
    name = f"changes in {STEADY_S / 60:.0f} minutes of a steady environment"
    most = f"{name}, most of {len(_STEADY)} environments and {seeds} seeds"
    return Findings(
        rows=[
            at_most(most, float(max(switches)), "changes", 1.0),
            figure(f"{name}, mean of {len(switches)} runs", statistics.fmean(switches), "changes"),
        ]
    )


def changes(cell: Cell, messages: int, model: Chooser | None, seed: int = 1) -> int:
    """How often a choice was replaced by another one. The first choice replaces none, whatever carried it before."""
    choosing = Choosing(model)
    live([Phase("steady", cell, messages)], choosing, seed)
    return max(len(choosing.whys) - 1, 0)


def beyond_the_grid(model: Chooser, of_package: bool) -> Findings:
    """The package's models, that for an order too, in what was held out for them alone; one that was trained here in
    those environments by which models are let in."""
    if not of_package:
        return _unseen(model, shipped_examples(model.metric))
    found = Findings()
    for metric in (model.metric, f"{model.metric} in order"):
        own = shipped_model(metric)
        if own is not None:
            found.add(_unseen(own, held_out_examples(metric)))
    return found


def _unseen(model: Chooser, examples: Examples | None) -> Findings:
    """In environments that nobody looked at before the model was finished."""
    if examples is None:
        return Findings()
    found = judged(model.choose, examples)
    order = ", in order" if plain(model.metric)[1] else ""
    name = f"{len(examples.environments)} environments beyond the grid{order}: within 5 % of the best"
    return Findings(
        rows=[
            at_least(
                f"{name}, against how well the experiment repeats itself", found.share / found.ceiling, "times", 0.98
            ),
            figure(name, 100 * found.share, "%"),
            figure(f"{name}, by the best of the other run (how well the experiment repeats itself)",
                   100 * found.ceiling, "%"),
            figure(f"{name}, by the rule", 100 * judged(ruled(model.metric, examples), examples).share, "%"),
        ]
    )  # fmt: skip


def _decisions(model: Chooser) -> Findings:
    """As a daemon decides after each look, from the environment to the decision, in environments that the model was not
    trained on, where what would lose more than 2 % is left out."""
    drawn = [
        Environment(
            receivers=cell.receivers, loss_percent=100 * cell.loss, burst=cell.burst, rate_hz=cell.rate_hz,
            payload_bytes=cell.payload_bytes, delay_us=cell.delay_us, bandwidth_mbit=cell.bandwidth_mbit,
            messages=ENOUGH,
        )
        for cell in environments(200, seed=77)
    ]  # fmt: skip
    wish, deciding = Wish("relate2", loss=0.02, ordered=False), Deciding()
    times, current = [], ""
    for environment in drawn:  # as in a daemon that has decided before
        ranked(environment, wish, model, anything_serves)
    for number in range(DECISIONS):
        environment = drawn[number % len(drawn)]
        began = time.perf_counter_ns()
        ranking = ranked(environment, wish, model, anything_serves, current)
        decision = deciding.decide(float(number), current, environment, ranking)
        times.append(time.perf_counter_ns() - began)
        current = decision.transport
    times.sort()
    return Findings(
        rows=[
            at_most("a decision, p99", times[round(0.99 * len(times))] / 1e3, "us", 10.0),
            figure("a decision, p50", times[len(times) // 2] / 1e3, "us"),
        ]
    )

"""What was chosen when, as a picture; real phases as rows and tables; costs to the lake and back. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ringcast.lab.adaptation.real import ADAPTIVE, STEADY_S, Lived, RealPhase, chance, cost
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import at_most, figure
from ringcast.record.figures import Measured

EXPERIMENT, METRIC = "adaptation", "phase_relate2"
SIMULATED, REAL = "simulated", "real"
"""Parts of the experiment."""
APART = "the best fixed of the phase, measured apart"
"""As if it were a carrier: what the best one costs, at each receiver the one that is best at all the others."""
WITHIN = 1.05
"""Of the best fixed transport of a phase."""


def over_time(
    name: str, title: str, x: str, chosen: Sequence[tuple[float, str]], began: Sequence[tuple[float, str]], end: float
) -> Picture:
    """A level for each transport, drawn while it carried the stream; phases are a line below them, a step each."""
    names = list(dict.fromkeys(transport for _, transport in chosen))
    series = []
    for level, transport in enumerate(names, 1):
        spans = zip(chosen, [*chosen[1:], (end, "")], strict=True)
        points = [
            (at, float(level))
            for (since, which), (until, _) in spans
            if which == transport
            for at in (since, until)
        ]  # fmt: skip
        series.append(Series(f"{level}: {transport}", points))
    marks = [(at, -float(number)) for number, (at, _) in enumerate(began)]
    steps = [
        point
        for (at, level), (until, _) in itertools.pairwise([*marks, (end, 0.0)])
        for point in ((at, level), (until, level))
    ]  # fmt: skip
    told = ", ".join(f"{-number} {phase}" for number, (_, phase) in enumerate(began))
    series.append(Series("phase", steps))
    return Picture(name, f"{title}; phases: {told}", x, "transport", series, bottom=-float(len(began)))


def judged(names: Sequence[str], costs: Mapping[str, Sequence[float]]) -> Findings:
    """`costs` are ReLate2 of each carrier, by phase: of what was sent after the first messages of a phase."""
    fixed = {carrier: found for carrier, found in costs.items() if carrier not in (ADAPTIVE, APART)}
    best = [min(fixed, key=lambda name, at=at: fixed[name][at]) for at in range(len(names))]  # type: ignore[misc]
    lowest = [fixed[name][at] for at, name in enumerate(best)]
    ratios = {name: [cost / least for cost, least in zip(of, lowest, strict=True)] for name, of in costs.items()}
    overall = {name: statistics.fmean(of) for name, of in ratios.items()}
    single, worst = (pick(fixed, key=lambda name: overall[name]) for pick in (min, max))
    rows = [
        at_most(f"real network, {name}: adaptive against the best fixed transport, measured apart",
                costs[ADAPTIVE][at] / costs[APART][at], "times", WITHIN)
        for at, name in enumerate(names)
    ]  # fmt: skip
    everywhere = "real network, all phases: adaptive against the"
    rows += [
        at_most(f"{everywhere} best single fixed transport ({single}), mean of phases",
                overall[ADAPTIVE] / overall[single], "times", 1.0),
        figure(f"{everywhere} worst single fixed transport, mean of phases",
               overall[ADAPTIVE] / overall[worst], "times"),
    ]  # fmt: skip
    table = Table(
        "Real network: ReLate2 (ms) by phase", ("carried by", *names, "mean against the best"),
        [
            [name, *(f"{cost:.3f}" for cost in costs[name]), f"{overall[name]:.2f}"]
            for name in sorted(costs, key=lambda name: overall[name])
        ],
    )  # fmt: skip
    bars = [Series(name, list(enumerate(found))) for name, found in costs.items()]
    title = "Real network: ReLate2 by phase, adaptive and fixed"
    return Findings(rows, [table], [Picture("real-phases", title, "", "ms", bars, "bars", list(names))])


def conclude(plan: Sequence[RealPhase], lived: Lived) -> Findings:
    """Rows, tables and pictures, and the costs for the lake."""
    names, phases = [phase.name for phase in plan], range(len(plan))
    costs = {carrier: list(map(cost, found)) for carrier, found in lived.came.items()}
    costs[APART] = [cost(lived.of_best(at)) for at in phases]
    found = judged(names, costs)
    found.measured += measured(REAL, names, {name: [of] for name, of in costs.items()})
    ours = lived.came[ADAPTIVE]
    found.rows += [
        at_most("real network, phases: messages that came twice to who chose itself",
                float(sum(one.twice for came in ours for one in came)), "messages", 0.0),
        figure("real network, phases: changes of transport", float(max(len(lived.chosen) - 1, 0)), "changes"),
    ]  # fmt: skip
    errors = [chance(ours[at], lived.of_best(at)) for at in phases]
    found.rows += [
        figure(f"real network, {name}: standard error of adaptive against the best", error, "times")
        for name, error in zip(names, errors, strict=True)
    ]
    found.notes.append(
        "real network, at each receiver the transport that was best at all the others: "
        + "; ".join(f"{name}: {', '.join(dict.fromkeys(lived.best(at)))}" for at, name in enumerate(names))
    )
    began = [(at, phase.name) for at, phase in zip(lived.began, plan, strict=True)]
    found.tables.append(
        Table(
            "Real network: what was chosen, when and why", ("second", "transport", "why"),
            [[f"{at:.1f}", name, why] for (at, name), why in zip(lived.chosen, lived.whys, strict=True)],
        )
    )  # fmt: skip
    end = lived.began[-1] + plan[-1].seconds
    title = "Real network: what carried the stream"
    if lived.chosen:
        found.pictures.insert(0, over_time("real-choice-over-time", title, "seconds", lived.chosen, began, end))
    return found


def steady(lived: Lived) -> Findings:
    """Of ten minutes in which nothing changed. The first choice is none: there was nothing to change. Where nothing
    was chosen at all, nothing can be said."""
    name = f"real network, {STEADY_S / 60:.0f} minutes in which nothing changes: changes of transport"
    changes = float(len(lived.chosen) - 1) if lived.chosen else None
    return Findings([at_most(name, changes, "changes", 1.0)])


class Cost(NamedTuple):
    """What is told of ReLate2 in the lake: a repetition is a seed."""

    part: str
    phase: str
    carrier: str


def measured(part: str, names: Sequence[str], costs: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[Measured]:
    """`costs` are by carrier, seed and phase."""
    for carrier, seeds in costs.items():
        batches = {Cost(part, name, carrier): [[seed[at]] for seed in seeds] for at, name in enumerate(names)}
        yield from sampled.values(EXPERIMENT, batches, METRIC, "ms")


def from_lake(
    analysed: Analysed, part: str, names: Sequence[str], carriers: Sequence[str]
) -> tuple[list[str], dict[str, list[float]]]:
    """Phases and carriers that the last run had, and the mean cost of each, by Spark."""
    wanted = [Cost(part, name, carrier) for name in names for carrier in carriers]
    found = sampled.summaries(analysed, EXPERIMENT, METRIC, Cost, wanted)
    lived = [name for name in names if any(cost.phase == name for cost in found)]
    had = [carrier for carrier in carriers if any(cost.carrier == carrier for cost in found)]
    return lived, {carrier: [found[Cost(part, name, carrier)].mean for name in lived] for carrier in had}


def unanswered(reason: str) -> Findings:
    return Findings(notes=[f"the part on a real network was skipped: {reason}"])

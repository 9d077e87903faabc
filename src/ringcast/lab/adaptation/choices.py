"""What was chosen when, as a picture; and real phases as rows and tables. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from ringcast.lab.adaptation.real import ADAPTIVE, Lived, RealPhase
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import at_most, figure


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


def conclude(plan: Sequence[RealPhase], lived: Lived) -> Findings:
    """Costs are ReLate2 of what was sent after the first messages of a phase."""
    costs = {carrier: [one.relate2() for one in found] for carrier, found in lived.came.items()}
    fixed = {carrier: found for carrier, found in costs.items() if carrier != ADAPTIVE}
    best = [min(fixed, key=lambda name, at=at: fixed[name][at]) for at in range(len(plan))]  # type: ignore[misc]
    lowest = [fixed[name][at] for at, name in enumerate(best)]
    ratios = {name: [cost / least for cost, least in zip(of, lowest, strict=True)] for name, of in costs.items()}
    single = min(fixed, key=lambda name: statistics.fmean(ratios[name]))
    ours = costs[ADAPTIVE]
    rows = [
        figure(
            f"real network, {phase.name}: adaptive, ReLate2 (reference: the best fixed transport there, {best[at]})",
            ours[at], "ms", lowest[at],
        )
        for at, phase in enumerate(plan)
    ]  # fmt: skip
    rows += [
        figure("real network, all phases: adaptive against the best single fixed transport "
               f"({single}), mean of phases", statistics.fmean(ratios[ADAPTIVE]) / statistics.fmean(ratios[single]),
               "times"),
        figure("real network, all phases: adaptive against the worst single fixed transport, mean of phases",
               statistics.fmean(ratios[ADAPTIVE]) / max(statistics.fmean(ratios[name]) for name in fixed), "times"),
        at_most("real network, phases: messages that came twice to who chose itself",
                float(sum(one.twice for one in lived.came[ADAPTIVE])), "messages", 0.0),
        figure("real network, phases: changes of transport", float(len(lived.chosen) - 1), "changes"),
    ]  # fmt: skip
    heads = ("carried by", *(phase.name for phase in plan), "mean against the best")
    table = Table(
        "Real network: ReLate2 (ms) by phase", heads,
        [
            [name, *(f"{cost:.3f}" for cost in costs[name]), f"{statistics.fmean(ratios[name]):.2f}"]
            for name in sorted(costs, key=lambda name: statistics.fmean(ratios[name]))
        ],
    )  # fmt: skip
    began = [(at, phase.name) for at, phase in zip(lived.began, plan, strict=True)]
    changes = Table(
        "Real network: what was chosen, when and why", ("second", "transport", "why"),
        [[f"{at:.1f}", name, why] for (at, name), why in zip(lived.chosen, lived.whys, strict=True)],
    )  # fmt: skip
    end = lived.began[-1] + plan[-1].seconds
    title = "Real network: what carried the stream"
    pictures = [over_time("real-choice-over-time", title, "seconds", lived.chosen, began, end)] if lived.chosen else []
    labels = [phase.name for phase in plan]
    bars = [Series(name, list(enumerate(found))) for name, found in costs.items()]
    pictures.append(
        Picture("real-phases", "Real network: ReLate2 by phase, adaptive and fixed", "", "ms", bars, "bars", labels)
    )
    return Findings(rows=rows, tables=[table, changes], pictures=pictures)


def unanswered(reason: str) -> Findings:
    return Findings(notes=[f"the part on a real network was skipped: {reason}"])

"""What the paper says in its sections VIII to X, as rows beside what the grid showed. Pure.

A statement about hardware of its time is a figure with the paper's beside it; one about the shape of things is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.report import Findings, Table
from ringcast.lab.measuring.rows import Row, at_most, figure

UNICAST, MULTICAST = "tcp", "multicast+nak"
NAMES = {UNICAST: "unicast (tcp)", MULTICAST: "multicast"}
PAPER_RATE = 1e4
BEFORE_LOSS_MS = {
    (UNICAST, "stress"): 6.0, (MULTICAST, "stress"): 50.0, (UNICAST, "idle"): 1.0, (MULTICAST, "idle"): 25.0,
}  # fmt: skip
JITTER_MS = {UNICAST: 1.0, MULTICAST: 6.0}
LONGEST_MS = 60.0

Chosen = Callable[[Result], bool]


def rows(found: Sequence[Result], far_ms: float | None = None) -> Findings:
    """`far_ms` is the error of absolute times that are seconds apart, where it was measured."""
    latency = [one for one in found if "latency_ms" in one.metrics]
    judged: list[Row] = []
    for load in ("idle", "stress"):
        some = [one for one in latency if one.configuration["load"] == load]
        if not some:
            continue
        judged += _before_loss(some, load) + _jitter(some, load) + _slopes(some, load)
        longest = max((one.metrics["latency_most_ms"] for one in _kept(some)), default=None)
        name = f"the greatest latency, {load} (the paper, under stress: up to 60 ms)"
        judged.append(_shape(at_most(name, longest, "ms", LONGEST_MS, LONGEST_MS)))
    judged += _abrupt(latency) + _pays(found) + _stress(latency)
    if far_ms is not None:
        name = "clocks seconds apart: times agree to far under a millisecond"
        judged.append(_shape(at_most(name, far_ms, "ms", 0.5)))
    return Findings(rows=judged, tables=[_pairs(latency)])


def line(some: Sequence[Result]) -> tuple[float, float, float] | None:
    """a, b and R squared of T = a + b n/dt over runs without loss, in ms; None for too few."""
    kept = _kept(some)
    rates = np.array([rate(one) for one in kept])
    if len(set(rates.tolist())) < 2:
        return None
    values = np.array([one.metrics["latency_ms"] for one in kept])
    b, a = np.polyfit(rates, values, 1)
    return float(a), float(b), _explained(values, a + b * rates)


def _explained(values: np.ndarray, model: np.ndarray) -> float:
    total = float(((values - values.mean()) ** 2).sum())
    return 1.0 if total == 0 else 1 - float(((values - model) ** 2).sum()) / total


def _kept(some: Sequence[Result]) -> list[Result]:
    return [one for one in some if one.metrics["lost"] == 0]


def rate(one: Result) -> float:
    """n/dt: changes per second."""
    return float(one.configuration["n"]) / float(one.configuration["dt_s"])


def selected(some: Sequence[Result], **wanted: object) -> list[Result]:
    """Those of that configuration."""
    return [one for one in some if all(one.configuration[name] == value for name, value in wanted.items())]


def _shape(row: Row) -> Row:
    return Row(row.name, row.value, row.unit, row.reference, row.target, row.met, "shape")


def _before_loss(some: Sequence[Result], load: str) -> list[Row]:
    """The latency at the paper's greatest rate, 10^4 changes a second: here loss has not begun by then."""
    found = []
    for transport, said in NAMES.items():
        if fit := line(selected(some, transport=transport, subscribers=1)):
            value, paper = fit[0] + fit[1] * PAPER_RATE, BEFORE_LOSS_MS[transport, load]
            name = f"latency at 10^4 changes/s, where the paper's loss begins, {said}, {load}"
            found.append(_shape(at_most(name, value, "ms", paper, paper)))
    return found


def _jitter(some: Sequence[Result], load: str) -> list[Row]:
    found = []
    for transport, said in NAMES.items():
        kept = _kept(selected(some, transport=transport))
        if not kept:
            continue
        value = float(np.median([one.metrics["jitter_ms"] for one in kept]))
        name = f"jitter, the median of all runs without loss, {said}, {load}"
        judged = load == "idle"
        found.append(_shape(at_most(name, value, "ms", JITTER_MS[transport] if judged else None, JITTER_MS[transport])))
    return found


def _slopes(some: Sequence[Result], load: str) -> list[Row]:
    """b against the number of subscribers: by unicast as 1/s in the paper, by multicast not at all."""
    found = []
    for transport, said in NAMES.items():
        fits = {s: fit for s in range(1, 6) if (fit := line(selected(some, transport=transport, subscribers=s)))}
        if len(fits) < 2:
            continue
        first, last = fits[min(fits)][1], fits[max(fits)][1]
        ratio = last / first if first > 0 else None
        name = f"b with {max(fits)} subscribers against {min(fits)}, {said}, {load}"
        paper = {UNICAST: 0.178 / 0.521, MULTICAST: 5.311 / 5.297}[transport]
        # Here all receivers share one core, so each further one costs the others time; the paper's had one each.
        found.append(figure(f"{name} (receivers share a core here)", ratio, "1", paper))
    return found


def _abrupt(some: Sequence[Result]) -> list[Row]:
    """The share lost in the first setting that loses, by n/dt, against those before it, which lose nothing."""
    found = []
    for transport, said in NAMES.items():
        ordered = sorted(selected(some, transport=transport), key=rate)
        losing = [one for one in ordered if one.metrics["lost"] > 0]
        name = f"share of changes late where loss begins, {said}"
        if not losing:
            most = f": nothing was lost up to {rate(ordered[-1]):.3g} changes/s" if ordered else ""
            found.append(figure(name + most, 0.0 if ordered else None, "1"))
            continue
        found.append(figure(f"{name}, at {rate(losing[0]):.3g} changes/s", losing[0].metrics["lost_share"], "1"))
    return found


def _pays(found: Sequence[Result]) -> list[Row]:
    """From how many subscribers on the publisher has less work by multicast: the paper says two."""
    costs: dict[tuple[str, int], list[float]] = {}
    for one in found:
        if "publisher_cpu" in one.metrics and one.configuration["load"] == "idle":
            key = (str(one.configuration["transport"]), int(one.configuration["subscribers"]))
            costs.setdefault(key, []).append(one.metrics["publisher_cpu"])
    both = sorted(s for t, s in costs if t == MULTICAST and (UNICAST, s) in costs)
    if not both:
        return []
    paying = [s for s in both if np.mean(costs[MULTICAST, s]) < np.mean(costs[UNICAST, s])]
    name = f"subscribers from which multicast costs the publisher less (of {', '.join(map(str, both))} measured)"
    value = float(min(paying)) if paying else None
    return [_shape(at_most(name, value, "1", float(next((s for s in both if s >= 2), both[-1])), 2.0))]


def _stress(some: Sequence[Result]) -> list[Row]:
    """Under stress against idle: the paper expected that two cores would do much better."""
    found = []
    for transport, said in NAMES.items():
        medians = {
            load: float(np.median([one.metrics["latency_ms"] for one in kept]))
            for load in ("idle", "stress")
            if (kept := _kept(selected(some, transport=transport, load=load)))
        }
        if len(medians) == 2:
            ratio = medians["stress"] / medians["idle"]
            found.append(figure(f"latency under stress against idle, {said}, medians", ratio, "1", 0.998 / 0.265))
    return found


def _pairs(some: Sequence[Result]) -> Table:
    """Where n/dt is equal and n is not: if n/dt were all that counts, their latencies would be equal."""
    groups: dict[tuple[str, int, str, float], list[Result]] = {}
    for one in _kept(some):
        c = one.configuration
        key = (str(c["transport"]), int(c["subscribers"]), str(c["load"]), round(rate(one), 6))
        groups.setdefault(key, []).append(one)
    made = []
    for (transport, subscribers, load, each), members in sorted(groups.items()):
        means = {n: _mean(selected(members, n=n)) for n in sorted({float(one.configuration["n"]) for one in members})}
        if len(means) > 1:
            said = ", ".join(f"{n:g}: {value:.3g}" for n, value in means.items())
            made.append([transport, str(subscribers), load, f"{each:g}", said])
    heads = ("transport", "nodes", "load", "n/dt", "n: latency")
    return Table("Equal n/dt, different n: mean latency (ms)", heads, made)


def _mean(some: Sequence[Result]) -> float:
    return float(np.mean([one.metrics["latency_ms"] for one in some]))

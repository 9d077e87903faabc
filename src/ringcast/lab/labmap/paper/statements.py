"""What the paper says in its sections VIII to X, as rows beside what the grid showed. Pure.

A statement about hardware of its time is a figure with the paper's beside it; one about the shape of things is judged.
Numbers are those of the pipeline `rates`.
"""

from __future__ import annotations

from ringcast.lab.labmap.paper.rates import Rates, Told, Where
from ringcast.lab.measuring.report import Findings, Table
from ringcast.lab.measuring.rows import Row, at_most, figure

UNICAST, MULTICAST = "tcp", "multicast+nak"
NAMES = {UNICAST: "unicast (tcp)", MULTICAST: "multicast"}
LOADS = ("idle", "stress")
PAPER_RATE = 1e4
BEFORE_LOSS_MS = {
    (UNICAST, "stress"): 6.0, (MULTICAST, "stress"): 50.0, (UNICAST, "idle"): 1.0, (MULTICAST, "idle"): 25.0,
}  # fmt: skip
JITTER_MS = {UNICAST: 1.0, MULTICAST: 6.0}
LONGEST_MS = 60.0
SETTING = Where._fields
TEST = "The paper's test (Figures 4 to 7)"


def rows(found: Rates, far_ms: float | None = None) -> Findings:
    """`far_ms` is the error of absolute times that are seconds apart, where it was measured."""
    judged: list[Row] = []
    for load in LOADS:
        if not any(found.one("lost", Where(transport, load)) for transport in NAMES):
            continue
        judged += _before_loss(found, load) + _jitter(found, load) + _slopes(found, load)
        kept = [one.kept_most for transport in NAMES if (one := found.one("latency_most_ms", Where(transport, load)))]
        longest = max((most for most in kept if most is not None), default=None)
        name = f"the greatest latency, {load} (the paper, under stress: up to 60 ms)"
        judged.append(_shape(at_most(name, longest, "ms", LONGEST_MS, LONGEST_MS)))
    judged += _abrupt(found) + _pays(found) + _stress(found)
    if far_ms is not None:
        name = "clocks seconds apart: times agree to far under a millisecond"
        judged.append(_shape(at_most(name, far_ms, "ms", 0.5)))
    return Findings(rows=judged, tables=[_test(found), _pairs(found)])


def line(found: Rates, transport: str, load: str, subscribers: int) -> tuple[float, float] | None:
    """a and b of T = a + b n/dt over repetitions without loss, in ms; None for too few."""
    told = found.one("latency_ms", Where(transport, load, subscribers))
    return None if told is None or told.a is None or told.b is None else (told.a, told.b)


def _shape(row: Row) -> Row:
    return Row(row.name, row.value, row.unit, row.reference, row.target, row.met, "shape")


def _before_loss(found: Rates, load: str) -> list[Row]:
    """The latency at the paper's greatest rate, 10^4 changes a second: here loss has not begun by then."""
    made = []
    for transport, said in NAMES.items():
        if fit := line(found, transport, load, 1):
            value, paper = fit[0] + fit[1] * PAPER_RATE, BEFORE_LOSS_MS[transport, load]
            name = f"latency at 10^4 changes/s, where the paper's loss begins, {said}, {load}"
            made.append(_shape(at_most(name, value, "ms", paper, paper)))
    return made


def _jitter(found: Rates, load: str) -> list[Row]:
    made = []
    for transport, said in NAMES.items():
        told = found.one("jitter_ms", Where(transport, load))
        if told is None or not told.kept:
            continue
        paper = JITTER_MS[transport]
        name = f"jitter, the median of all runs without loss, {said}, {load}"
        made.append(_shape(at_most(name, told.kept_median, "ms", paper if load == "idle" else None, paper)))
    return made


def _slopes(found: Rates, load: str) -> list[Row]:
    """b against the number of subscribers: by unicast as 1/s in the paper, by multicast not at all."""
    made = []
    for transport, said in NAMES.items():
        fits = {s: fit for s in range(1, 6) if (fit := line(found, transport, load, s))}
        if len(fits) < 2:
            continue
        first, last = fits[min(fits)][1], fits[max(fits)][1]
        ratio = last / first if first > 0 else None
        name = f"b with {max(fits)} subscribers against {min(fits)}, {said}, {load}"
        paper = {UNICAST: 0.178 / 0.521, MULTICAST: 5.311 / 5.297}[transport]
        # Here all receivers share one core, so each further one costs the others time; the paper's had one each.
        made.append(figure(f"{name} (receivers share a core here)", ratio, "1", paper))
    return made


def _abrupt(found: Rates) -> list[Row]:
    """The share lost at the least n/dt that loses, against those below it, which lose nothing."""
    made = []
    for transport, said in NAMES.items():
        shares = found.each("lost_share", ("transport", "rate"), transport=transport)
        losing = [(where.rate, told.losing_mean) for where, told in shares.items() if told.losing]
        name = f"share of changes late where loss begins, {said}"
        if not losing:
            most = max((told.fastest for told in shares.values()), default=None)
            up_to = f": nothing was lost up to {most:.3g} changes/s" if most is not None else ""
            made.append(figure(name + up_to, None if most is None else 0.0, "1"))
            continue
        made.append(figure(f"{name}, at {losing[0][0]:.3g} changes/s", losing[0][1], "1"))
    return made


def _pays(found: Rates) -> list[Row]:
    """From how many subscribers on the publisher has less work by multicast: the paper says two."""
    size = ("transport", "load", "subscribers")
    costs = {
        transport: {
            where.subscribers or 0: told.mean
            for where, told in found.each("publisher_cpu", size, transport=transport, load="idle").items()
        }
        for transport in NAMES
    }
    both = sorted(costs[MULTICAST].keys() & costs[UNICAST].keys())
    if not both:
        return []
    paying = [s for s in both if costs[MULTICAST][s] < costs[UNICAST][s]]
    name = f"subscribers from which multicast costs the publisher less (of {', '.join(map(str, both))} measured)"
    value = float(min(paying)) if paying else None
    return [_shape(at_most(name, value, "1", float(next((s for s in both if s >= 2), both[-1])), 2.0))]


def _stress(found: Rates) -> list[Row]:
    """Under stress against idle: the paper expected that two cores would do much better."""
    made = []
    for transport, said in NAMES.items():
        idle, stress = (_median(found.one("latency_ms", Where(transport, load))) for load in LOADS)
        if idle is not None and stress is not None:
            ratio = stress / idle
            made.append(figure(f"latency under stress against idle, {said}, medians", ratio, "1", 0.998 / 0.265))
    return made


def _median(told: Told | None) -> float | None:
    return None if told is None else told.kept_median


def _test(found: Rates) -> Table:
    """Means of each setting's repetitions."""
    heads = ("transport", "nodes", "load", "n", "period (ms)", "repetitions", "lost", "mean (us)", "greatest (us)",
             "jitter (us)")  # fmt: skip
    made = []
    for transport in NAMES:
        for where, lost in found.each("lost", SETTING, transport=transport).items():
            shown = (found.one(name, where) for name in ("latency_ms", "latency_most_ms", "jitter_ms"))
            mean, most, jitter = shown
            values = (mean and mean.mean, most and most.most, jitter and jitter.mean)
            made.append(
                [transport, str(where.subscribers), str(where.load), f"{where.n:g}", f"{1e3 * (where.dt_s or 0):g}",
                 str(lost.runs), f"{lost.mean:.3g}", *("-" if one is None else f"{1e3 * one:.0f}" for one in values)]
            )  # fmt: skip
    return Table(TEST, heads, made)


def _pairs(found: Rates) -> Table:
    """Where n/dt is equal and n is not: if n/dt were all that counts, their latencies would be equal."""
    groups: dict[tuple[str, int, str, float], dict[float, float]] = {}
    for transport in NAMES:
        for where, told in found.each("latency_ms", SETTING, transport=transport).items():
            if told.kept_mean is not None:
                key = (where.transport, where.subscribers or 0, where.load or "", where.rate or 0.0)
                groups.setdefault(key, {})[where.n or 0.0] = told.kept_mean
    made = [
        [transport, str(subscribers), load, f"{each:g}",
         ", ".join(f"{n:g}: {value:.3g}" for n, value in sorted(means.items()))]
        for (transport, subscribers, load, each), means in sorted(groups.items()) if len(means) > 1
    ]  # fmt: skip
    heads = ("transport", "nodes", "load", "n/dt", "n: latency")
    return Table("Equal n/dt, different n: mean latency (ms)", heads, made)

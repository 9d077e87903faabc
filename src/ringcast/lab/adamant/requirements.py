"""What the project is asked to show of its transports under loss, line by line, from simulated runs.

What only real sockets can answer is in `field`; what the recovery code costs, in `recovery_bench`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from statistics import fmean

from ringcast.lab.adamant.grid import AS_IT_COMES, BASELINES, IN_ORDER, Cell
from ringcast.lab.adamant.results import Result
from ringcast.lab.measuring.report import Steps
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.packet_loss import Scenario
from ringcast.measure import video

SEEDS = range(1, 6)
UPDATES = 20_000
NAK_RUNS = 1_000
RATES = (10.0, 25.0, 50.0, 100.0)
DELIVERED = (
    # transport, receivers, loss, at least (%)
    ("nak", 3, 0.03, 100.0),
    ("nak", 25, 0.03, 100.0),
    ("lateral+nak:r=4,c=3", 3, 0.03, 100.0),
    ("lateral+nak:r=4,c=3", 25, 0.03, 100.0),
    ("lateral:r=4,c=3", 3, 0.01, 99.96),
    ("lateral:r=4,c=3", 25, 0.01, 99.94),
    ("lateral:r=8,c=3", 3, 0.03, 99.5),
)
SAME = 0.005
"""Where nothing is lost the simulator sends the same packets for all that multicast; only the links' jitter differs."""
NEARLY = 0.9
"""Of what the pattern of frames says, where losses are independent."""
STEPS = 1 + len(DELIVERED) + 1 + 1


def stalls(quick: bool, steps: Steps, pool: Executor) -> Row:
    """1,000 runs: the paper's reliable multicast stalled in some."""
    steps.step("1,000 runs of nak")
    updates = 500 if quick else 5_000
    scenarios = [
        Scenario(transport="nak", loss=0.03, rate_hz=RATES[run % len(RATES)], updates=updates, seed=run + 1)
        for run in range(NAK_RUNS)
    ]
    stalled = sum(pool.map(_stalled, scenarios))
    name = f"stalled receivers in {NAK_RUNS} nak runs of {updates} updates, 3 receivers, 3 % loss, 10 to 100 Hz"
    return at_most(name, stalled, "receivers", 0)


def _stalled(scenario: Scenario) -> int:
    return packet_loss.run(scenario).stalled


def _delivered(scenario: Scenario) -> float:
    return packet_loss.run(scenario).delivered_share


def delivered(steps: Steps, pool: Executor) -> list[Row]:
    rows = []
    for transport, receivers, loss, target in DELIVERED:
        steps.step(f"{transport}, {receivers} receivers")
        scenarios = [
            Scenario(transport=transport, receivers=receivers, loss=loss, rate_hz=50, updates=UPDATES, seed=seed)
            for seed in SEEDS
        ]
        shares = list(pool.map(_delivered, scenarios))
        rows.append(delivered_row(transport, receivers, loss, target, 100 * fmean(shares)))
    return rows


def delivered_row(transport: str, receivers: int, loss: float, target: float, value: float) -> Row:
    name = f"delivered, {transport}, {100 * loss:g} % loss, {receivers} receivers, 50 Hz"
    # Six digits, or 99.9996 would look like 100.
    return Row(name, round(value, 6), "%", None, target, value >= target, "asked")


def implosion(steps: Steps) -> Row:
    """The maximum over five seeds: a mean could hide one storm."""
    steps.step("1,000 receivers lose the same packet")
    naks = [
        packet_loss.run(
            Scenario(transport="nak", receivers=1_000, updates=20, rate_hz=50, lost_by_all=10, rest_s=1, seed=seed)
        ).receivers["nak"][0]
        for seed in SEEDS
    ]
    name = "nak requests when 1,000 receivers lose the same packet, most of five seeds"
    return Row(name, max(naks), "requests", None, 10, max(naks) < 10, "asked")


def relate2(cells: Mapping[Cell, Mapping[str, float]]) -> list[Row]:
    """`cells`: mean ReLate2 by transport, of each environment. Stacks that order and those that do not are judged
    apart: a subscriber has one or the other."""
    lossy = {cell: values for cell, values in cells.items() if cell.loss > 0}
    if not lossy:
        return []
    rows = []
    for kind, names in (("in order", IN_ORDER), ("as it comes", AS_IT_COMES)):
        ratios = {cell: _least(values, names) / _least(values, BASELINES) for cell, values in lossy.items()}
        worst = max(ratios, key=lambda cell: ratios[cell])
        lower = sum(1 for ratio in ratios.values() if ratio < 1)
        stages = ", ".join(dict.fromkeys(name.partition(":")[0].removeprefix("ordering+") for name in names))
        asked = f"ReLate2, {kind}, the least of {stages} by the least of udp, multicast, tcp"
        rows += [
            at_least(f"{asked}: lossy cells where it is lower", lower, "cells", len(ratios)),
            Row(f"{asked}: worst cell ({worst.label})", round(ratios[worst], 4), "x", None, 1, ratios[worst] < 1,
                "asked"),
        ]  # fmt: skip
    alone = sum(1 for values in lossy.values() if values["nak"] < _least(values, BASELINES))
    name = "ReLate2, lossy cells where nak alone is lower than udp, multicast and tcp"
    return [*rows, figure(name, alone, "cells", len(lossy))]


def _least(values: Mapping[str, float], names: Iterable[str]) -> float:
    return min(values[name] for name in names)


def latencies(cells: Mapping[Cell, Mapping[str, float]]) -> list[Row]:
    """What paper 004 states of mean latencies in its text (4.2.1, 4.2.2), by the transports that it had. `cells`: mean
    latency by transport, of each environment."""
    alone = {cell: values for cell, values in cells.items() if cell.burst <= 1}
    ricochet = ("lateral:r=4,c=3", "lateral:r=8,c=3")
    statements: list[tuple[str, list[Cell], Callable[[Mapping[str, float]], bool]]] = [
        (f"without loss RMcast (nak) and Ricochet (lateral) are never the fastest by more than {SAME:.1%}",
         [cell for cell in alone if cell.loss == 0],
         lambda v: _least(v, BASELINES) <= (1 + SAME) * _least(v, ("nak", *ricochet))),
        ("tcp is the slowest at 3 % loss, 3 receivers, 25 and 50 Hz",
         [cell for cell in alone if (cell.receivers, cell.loss) == (3, 0.03) and cell.rate_hz in (25.0, 50.0)],
         lambda v: v["tcp"] >= max(v[name] for name in ("udp", "multicast", "nak", *ricochet))),
        ("Ricochet with r=8 is never faster than RMcast",
         [cell for cell in alone if cell.loss > 0],
         lambda v: v["lateral:r=8,c=3"] >= v["nak"]),
        ("Ricochet with r=4 is faster than RMcast at 25 receivers, 1 % loss",
         [cell for cell in alone if (cell.receivers, cell.loss) == (25, 0.01)],
         lambda v: v["lateral:r=4,c=3"] < v["nak"]),
    ]  # fmt: skip
    return [
        at_least(f"mean latency, {what}: cells where it is so", sum(1 for cell in where if holds(alone[cell])), "cells",
                 len(where), kind="shape")
        for what, where, holds in statements if where
    ]  # fmt: skip


def lowest(relate: Mapping[Cell, Mapping[str, float]], relate2_: Mapping[Cell, Mapping[str, float]]) -> list[Row]:
    """Figures 14 and 15 of the paper: by ReLate those are best that repair nothing, by ReLate2 those that do. Means by
    transport, of each environment."""
    cell = Cell(3, 0.03, 1.0, 50.0)
    plain, repairing = ("udp", "multicast"), ("nak", "lateral:r=4,c=3", "lateral:r=8,c=3")
    rows = []
    for metric, found, best, others, words in (
        ("ReLate", relate, plain, (*repairing, "tcp"), "udp, multicast by the least of RMcast, Ricochet, tcp"),
        ("ReLate2", relate2_, repairing, BASELINES, "RMcast, Ricochet by the least of udp, multicast, tcp"),
    ):
        if cell in found:
            ratio = _least(found[cell], best) / _least(found[cell], others)
            name = f"{metric}, 3 receivers, 3 % loss, 50 Hz: the least of {words}"
            rows.append(at_most(name, ratio, "x", 1.0, kind="shape"))
    return rows


def frames(delivered_: Mapping[Cell, Mapping[str, float]], usable: Mapping[Cell, Mapping[str, float]]) -> list[Row]:
    """Figure 8 of the paper: a lost frame takes those with it that depend on it, as many as the pattern says if losses
    are independent. Means by transport, of each environment."""
    cell = Cell(3, 0.03, 1.0, 50.0)
    if cell not in delivered_ or cell not in usable or delivered_[cell]["udp"] >= 100:
        return []
    lost = 100 - delivered_[cell]["udp"]
    ratio, expected = (100 - usable[cell]["udp"]) / lost, 100 * (1 - video.usable_share(1 - lost / 100)) / lost
    return [at_least(f"usable frames, udp, {cell.label}: frames that cannot be shown by frames lost", ratio, "x",
                     NEARLY * expected, expected, kind="shape")]  # fmt: skip


def wire(steps: Steps) -> Row:
    """As the simulator counts it; `field.fan_out` counts on a wire."""
    steps.step("packets on the wire")
    counts = {
        n: packet_loss.run(Scenario(transport="multicast", receivers=n, updates=1_000)).publisher["data"][0] / 1_000
        for n in (1, 8)
    }
    return figure(
        "packets on the wire per message, multicast, 8 nodes against 1, simulated", counts[8], "packets", counts[1]
    )


def cell_of(result: Result) -> Cell:
    c = result.configuration
    return Cell(int(c["receivers"]), float(c["loss_percent"]) / 100, float(c["burst"]), float(c["rate_hz"]))

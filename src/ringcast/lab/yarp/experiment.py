"""`ringcast lab run yarp`: paper 003's evaluation, Figures 4 and 5, with its statements as rows."""

from __future__ import annotations

from ringcast.errors import QosMismatch
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure, number, scaled
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.measuring.samples import Summary, pooled
from ringcast.lab.testbed.disturbance import Disturbance
from ringcast.lab.yarp.network import BURST_S, PACKET_S, PRIORITIES, Case, Cell, PriorityNetwork
from ringcast.transport.urgent.service_curves import has_hfsc

__all__ = ["PIPELINES", "conclude", "run"]
EXPERIMENT, METRIC = "yarp", "round_trip_under_load"
CASES: tuple[Case, ...] = ("card", "switch", "switch-ipv6")
SHARES = (0.0, 0.2, 0.7, 0.95)
SMALL, LARGER = 64, 4096
TIMES_LOWER = 20.0
ROUNDS = 5
"""Each cell is measured so often, in turn with the others: what disturbs the machine for a while does not make one cell
worse than its neighbour."""
JUDGED_COUNT = 200
"""Round trips, in one round, of a cell whose p99 is compared with another's: of a thousand it is the tenth worst, and
not the second worst of a hundred."""
QUICK_COUNT, COUNT = 50, 150
"""Of other cells."""
JUDGED_SHARES = (0.0, 0.7)
TOGETHER_S = 13.0
"""For the round trips of a case, where all experiments run in their quick forms."""
MOST_FLOODED = 3.0
"""What the p99 of a critical channel may be beside a flood of other work for its daemons, in times that without."""
BESIDE_S = 50e-6
"""What a prioritised message may take longer under load than idle, beside the packet that is on the link already."""

Measured = dict[Cell, Summary]


def cells(case: Case, quick: bool) -> list[Cell]:
    """Bars of Figure 5. The card is measured with small messages and the switch with larger ones too, as there. Over
    IPv6, only what its rows are made of: that the switch's classes are found by that header too."""
    if case == "switch-ipv6":
        return [
            Cell(case, measured, "udp", share, priority, SMALL)
            for measured in ("udp", "tcp") for share in JUDGED_SHARES for priority in ("none", "both")
        ]  # fmt: skip
    sizes = (SMALL,) if quick or case == "card" else (SMALL, LARGER)
    loads = ("udp",) if quick else ("udp", "tcp")
    shares = (0.0, 0.7) if quick else SHARES
    found = []
    for measured in ("udp", "tcp"):
        for load in loads:
            for size in sizes:
                for share in shares:
                    for priority in PRIORITIES:
                        if share or load == loads[0]:  # without load it does not matter whose
                            found.append(Cell(case, measured, load, share, priority, size))
    return found


def count(cell: Cell, quick: bool) -> int:
    """Round trips in one round."""
    judged = cell.priority == "both" and cell.share in JUDGED_SHARES
    return JUDGED_COUNT if judged else QUICK_COUNT if quick else COUNT


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    others = Disturbance()
    for case in CASES:
        wanted = cells(case, quick)
        steps.expect(ROUNDS * len(wanted) + 1 + (case == "card"))
        batches: dict[Cell, list[list[float]]] = {cell: [] for cell in wanted}
        lost = 0
        with PriorityNetwork(case) as network:
            try:
                for turn in steps.rounds(ROUNDS, 1, TOGETHER_S):
                    for cell in wanted if turn % 2 == 0 else reversed(wanted):
                        steps.step(f"{case}: {cell.measured}, load {cell.share:.0%} by {cell.load}, {cell.priority}")
                        trips = network.round_trips(cell, count(cell, quick))
                        lost += trips.lost
                        batches[cell].append([ns * 1e-9 for ns in trips.taken_ns])
                steps.step(f"{case}: setting priorities while messages flow")
                set_rows = _set_rows(network, case, quick)
                if case == "card":
                    steps.step("card: beside a flood of tag operations and repairs")
                    set_rows += _flood_rows(network, ROUNDS, JUDGED_COUNT)
            except QosMismatch as exc:
                findings.notes.append(f"threads were not given a schedule: {exc}")
                continue
        measured = {cell: pooled(found) for cell, found in batches.items() if any(found)}
        findings.measured += sampled.values(EXPERIMENT, batches, METRIC, "s")
        findings.add(_concluded(case, measured))
        findings.rows += set_rows
        findings.rows.append(figure(f"{case}: round trips that did not come back", lost, "messages"))
    findings.rows += others.rows()
    findings.notes.append(
        f"classes of the links are kept by {'HFSC' if has_hfsc() else 'HTB: this kernel has no HFSC'}"
    )
    findings.notes.append(f"load comes in bursts, one every {BURST_S * 1e3:g} ms, of the stated share of 100 Mbit/s")
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Figure 5 and what is said of it, as Spark computes them from the lake."""
    for case in CASES:
        wanted = [*cells(case, quick=False), *cells(case, quick=True)]
        sampled.by_spark(findings, _concluded(case, sampled.summaries(analysed, EXPERIMENT, METRIC, Cell, wanted)))


def _concluded(case: Case, measured: Measured) -> Findings:
    rows = [*_asked(case, measured), *_statements(case, measured)]
    return Findings(rows, [_table(case, measured)], _bars(case, measured))


def _asked(case: Case, measured: Measured) -> list[Row]:
    rows = []
    for cell in [cell for cell in measured if cell.share == 0.7 and cell.priority == "both"]:
        name = f"{case}, {_name(cell)}"
        without = measured.get(cell._replace(priority="none"))
        idle = measured.get(_idle(cell))
        ratio = without.p99 / measured[cell].p99 if without is not None else None
        rows.append(at_least(f"{name}: p99 at 70 % load without priority by with", ratio, "times", TIMES_LOWER))
        bound = idle.p99 + PACKET_S + BESIDE_S if idle is not None else None
        rows.append(
            at_most(
                f"{name}: p99 at 70 % load with priority, beside idle", measured[cell].p99 * 1e6, "us",
                scaled(bound, 1e6), scaled(idle.p99 if idle is not None else None, 1e6),
            )
        )  # fmt: skip
    return rows


def _statements(case: Case, measured: Measured) -> list[Row]:
    """What the paper says of its Figure 5: lower mean, smaller deviation, less difference between protocols."""
    rows = []
    loaded = [cell for cell in measured if cell.share == 0.7 and cell.priority == "both"]
    for cell in loaded:
        plain = measured.get(cell._replace(priority="none"))
        if plain is not None:
            name = f"{case}, {_name(cell)}, 70 % load"
            ours = measured[cell]
            rows.append(at_most(f"{name}: mean", ours.mean * 1e6, "us", plain.mean * 1e6, kind="shape"))
            rows.append(at_most(f"{name}: deviation", ours.std * 1e6, "us", plain.std * 1e6, kind="shape"))
    for size in sorted({cell.size for cell in loaded}):  # a larger message takes longer by any protocol
        spread = {
            priority: [
                s.mean for cell, s in measured.items()
                if (cell.share, cell.priority, cell.size) == (0.7, priority, size)
            ]
            for priority in ("none", "both")
        }  # fmt: skip
        if all(len(means) > 1 for means in spread.values()):
            with_, without = (max(spread[name]) - min(spread[name]) for name in ("both", "none"))
            name = f"{case}, 70 % load, {size} bytes: difference between protocols"
            rows.append(at_most(name, with_ * 1e6, "us", without * 1e6, kind="shape"))
    return rows


def _set_rows(network: PriorityNetwork, case: Case, quick: bool) -> list[Row]:
    rows = []
    for transport in ("nak", "tcp"):
        sent, lost = network.set_while_flowing(transport, 8 if quick else 40)
        what = f"{case}, {transport}: messages lost of {sent} while priorities were set"
        rows.append(at_most(what, lost, "messages", 0))
    return rows


def _flood_rows(network: PriorityNetwork, rounds: int, count: int) -> list[Row]:
    """A critical channel beside tag operations, what daemons tell each other of them, and repairs of class low."""
    quiet, flooded = list[list[float]](), list[list[float]]()
    for turn in range(rounds):
        for flood in (False, True) if turn % 2 == 0 else (True, False):
            trips = network.beside_flood(count, flood=flood)
            (flooded if flood else quiet).append([ns * 1e-9 for ns in trips.taken_ns])
    return flood_judged(quiet, flooded, network.operations, network.repairs())


def flood_judged(quiet: list[list[float]], flooded: list[list[float]], operations: int, repairs: int) -> list[Row]:
    """Without a flood, or without repairs, nothing was shown: those rows are not met."""
    times = pooled(flooded).p99 / pooled(quiet).p99 if any(quiet) and any(flooded) else None
    what = "card, critical: p99 beside a flood of tag operations, their exchange and repairs of class low, by without"
    return [
        at_most(what, times, "times", MOST_FLOODED),
        at_least("card, critical: tags opened and destroyed meanwhile", operations, "tags", 1),
        at_least("card, critical: repairs that class low asked for meanwhile", repairs, "requests", 1),
    ]


def _table(case: Case, measured: Measured) -> Table:
    heads = ("measured", "load", "share", "bytes", "priority", "mean us", "deviation us", "p99 us")
    rows = [
        [
            cell.measured, cell.load if cell.share else "-", f"{cell.share:.0%}", str(cell.size), cell.priority,
            *(number(value * 1e6) for value in (found.mean, found.std, found.p99)),
        ]
        for cell, found in measured.items()
    ]  # fmt: skip
    return Table(f"Figure 5, congestion at the {case}: round trips", heads, rows)


def _bars(case: Case, measured: Measured) -> list[Picture]:
    made = []
    for share in sorted({cell.share for cell in measured}):
        labels = sorted({_name(cell) for cell in measured if cell.share == share})
        series, tails = [], []
        for priority in PRIORITIES:
            found = {_name(cell): s for cell, s in measured.items() if (cell.share, cell.priority) == (share, priority)}
            points = [(float(at), found[label].mean * 1e3) for at, label in enumerate(labels) if label in found]
            errors = [found[label].std * 1e3 for label in labels if label in found]
            series.append(Series(priority, points, errors=errors))
            tails.append(Series(priority, [(at, found[labels[int(at)]].p99 * 1e3) for at, _ in points]))
        title = f"Congestion at the {case}, {share:.0%} load: round trip"
        name = f"figure-5-{case}-{share:.0%}".rstrip("%")
        made.append(Picture(name, f"{title}, mean and deviation", "", "ms", series, "bars", labels))
        made.append(Picture(f"{name}-p99", f"{title}, p99", "", "ms", tails, "bars", labels))
    return made


def _name(cell: Cell) -> str:
    return (
        f"{cell.measured} by {cell.load} load, {cell.size} bytes"
        if cell.share
        else f"{cell.measured}, {cell.size} bytes"
    )


def _idle(cell: Cell) -> Cell:
    return cell._replace(share=0.0, load="udp")

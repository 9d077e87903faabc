"""Tables and pictures of the simulated grid, beside what paper 004 states. Pure: means and runs in, findings out."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from importlib import resources

from ringcast.lab.adamant import rivals
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adamant.means import Means
from ringcast.lab.adamant.rivals import Runs
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import number

PAPERS, CROWDS = "adamant", "adamant crowd"
"""Experiments: the paper's grid, and many receivers."""
TRANSPORT_OF = {
    "tcp": ["tcp"],
    "rmcast": ["nak"],
    "ricochet r=8 c=3": ["lateral:r=8,c=3"],
    "ricochet r=4 c=3": ["lateral:r=4,c=3"],
    "ricochet r=4": ["lateral:r=4,c=3"],
}
"""The paper's name: the transports that are run here."""
PAPERS_OWN = ("tcp", "udp", "multicast", "nak", "lateral:r=4,c=3", "lateral:r=8,c=3")
FIGURES_14_15 = (
    ("relate", "lowest ReLate (Figure 14)", "UDP, IP Mcast, ANT Baseline"),
    ("relate2", "lowest ReLate2 (Figure 15)", "RMcast, ANT Ricochet"),
)
QUANTITY_OF = {"delivered_percent": "delivered", "delivered_percent worst runs": "delivered"}
SHOWN = (
    ("latency_mean", "Mean latency (ms)"),
    ("latency_p99", "p99 latency (ms)"),
    ("delivered", "Updates received (%)"),
    ("usable_frames", "Usable video frames (%)"),
    ("relate", "ReLate (ms)"),
    ("relate2", "ReLate2 (ms)"),
    ("wire_datagrams_per_update", "Datagrams on the wire per update"),
)
COMPARED = ("relate2", "relate", "relate2_net", "latency_mean", "delivered")
DRAWN = ("latency_mean", "delivered", "usable_frames", "relate", "relate2")
SHARES = ("delivered", "usable_frames")
CROWD = ("latency_mean", "delivered", "usable_frames", "relate", "relate2", "wire_datagrams_per_update")
PAPERS_MOST = 25
"""Receivers."""
MAIN_PANELS = ((3, 0.03), (25, 0.01))
"""Receivers and loss of the environments that are drawn over the rate, as the paper's Figures 11 to 22 are."""


def statements() -> list[dict[str, str]]:
    """The paper's own, as this package carries them."""
    text = (resources.files("ringcast.lab.measuring") / "tables" / "adamant_statements.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


def conclude(means: Means, runs: Runs) -> Findings:
    """`means` are Spark's, of the paper's grid and of the crowd; `runs` single ones of the paper's grid, Spark's
    too."""
    findings = Findings(rows=rivals.rows(runs))
    findings.tables.append(_beside_the_paper(means, runs))
    for metric, title in SHOWN:
        found = means.by_cell(PAPERS, metric)
        findings.tables.append(_table(f"{title}, simulated", found))
        if metric in DRAWN:
            findings.pictures += _pictures(metric, title, found)
    findings.pictures += [*_without_loss(means), *rivals.pictures(runs)]
    for metric, title in SHOWN:
        if metric in CROWD:
            many = means.by_cell(CROWDS, metric)
            findings.tables.append(_table(f"{title}, 100 and 1,000 receivers, simulated", many))
            findings.pictures += _by_receivers(metric, title, {**means.by_cell(PAPERS, metric), **many})
    return findings


def _without_loss(found: Means) -> list[Picture]:
    """Figures 9 and 10: mean latency of the paper's transports where nothing is lost."""
    means = found.by_cell(PAPERS, "latency_mean")
    made = []
    for number_, rate_hz in ((9, 25.0), (10, 50.0)):
        values = means.get(Cell(3, 0.0, 1.0, rate_hz))
        if values is None:
            continue
        names = [name for name in PAPERS_OWN if name in values]
        series = [Series("here", [(float(at), values[name]) for at, name in enumerate(names)])]
        title = f"Figure {number_}: mean latency, 3 receivers, no loss, {rate_hz:g} Hz (simulated)"
        labels = [name.replace(":", "\n") for name in names]
        made.append(Picture(f"figure-{number_}-no-loss-{rate_hz:g}-hz", title, "", "ms", series, "bars", labels))
    return made


def _by_receivers(metric: str, title: str, means: Mapping[Cell, Mapping[str, float]]) -> list[Picture]:
    """From the paper's numbers of receivers to ours, in environments that both grids have."""
    made = []
    for loss, rate_hz in sorted({(cell.loss, cell.rate_hz) for cell in means if cell.receivers > PAPERS_MOST}):
        cells = sorted(c for c in means if (c.loss, c.burst, c.rate_hz) == (loss, 1.0, rate_hz))
        # The grid of many has fewer transports.
        transports = [name for name in means[cells[-1]] if all(name in means[cell] for cell in cells)]
        series = [
            Series(name, [(float(at), means[cell][name]) for at, cell in enumerate(cells)]) for name in transports
        ]
        where = f"{100 * loss:g} % loss, {rate_hz:g} Hz"
        made.append(
            Picture(
                f"{metric}-by-receivers-{100 * loss:g}-percent-{rate_hz:g}-hz", f"{title}: {where} (simulated)",
                "receivers", title, series, labels=[f"{cell.receivers:,}" for cell in cells],
                bottom=_bottom(metric, series),
            )
        )  # fmt: skip
    return made


def _bottom(metric: str, series: Sequence[Series]) -> float:
    """Shares near 100 % differ by little."""
    return math.floor(min(y for one in series for _, y in one.points)) if metric in SHARES else 0.0


def winners(means: Means, experiment: str, transports: Sequence[str]) -> Table:
    """In how many environments each transport was best, by metric. Lower is better, except for `delivered`."""
    best = {metric: means.wins(experiment, metric) for metric in COMPARED}
    rows = [[name, *(str(best[metric].get(name, 0)) for metric in COMPARED)] for name in transports]
    number = sum(best[COMPARED[0]].values())
    return Table(
        f"Best of {len(transports)} in how many of {number} drawn environments", ["transport", *COMPARED], rows
    )


def _table(title: str, means: Mapping[Cell, Mapping[str, float]]) -> Table:
    transports = list(dict.fromkeys(name for values in means.values() for name in values))
    rows = [
        [cell.label, *(_cell_text(values.get(name)) for name in transports)] for cell, values in sorted(means.items())
    ]
    return Table(title, ["environment", *transports], rows)


def _cell_text(value: float | None) -> str:
    # Shares close to 100 differ in the third digit after the point.
    return f"{value:.3f}" if value is not None and 90 <= value < 100 else number(value)


def _pictures(metric: str, title: str, means: Mapping[Cell, Mapping[str, float]]) -> list[Picture]:
    made = []
    for receivers, loss in MAIN_PANELS:
        cells = sorted(c for c in means if (c.receivers, c.loss, c.burst) == (receivers, loss, 1.0))
        if not cells:
            continue
        transports = list(means[cells[0]])
        series = [Series(name, [(cell.rate_hz, means[cell][name]) for cell in cells]) for name in transports]
        made.append(
            Picture(
                f"{metric}-{receivers}-receivers-{100 * loss:g}-percent",
                f"{title}: {receivers} receivers, {100 * loss:g} % loss (simulated)",
                "updates per second", title, series, bottom=_bottom(metric, series),
            )
        )  # fmt: skip
    return made


def _beside_the_paper(means: Means, runs: Runs) -> Table:
    rows = []
    for line in statements():
        transports = TRANSPORT_OF.get(line["transport"])
        metric = QUANTITY_OF.get(line["quantity"])
        here = "-"
        if transports and metric and "worst" in line["quantity"]:
            here = _worst(runs, metric, line, transports)
        elif transports and metric:
            found = _matching(means.by_cell(PAPERS, metric), line, transports)
            here = f"{min(found):.3f} to {max(found):.3f}" if found else "not in this grid"
        elif line["quantity"].startswith("lowest"):
            here = _wins(runs, line)
        elif line["quantity"].startswith("acceptable loss"):
            here = _acceptable(means, float(line["value"]))
        where = f"{line['receivers']} receivers, {line['loss_percent']} % loss, {line['rate_hz']} Hz"
        rows.append([line["transport"], line["quantity"].replace("_", " "), where, line["value"], here])
    rows += [
        ["all", what, "3 receivers, 3 % loss, 50 Hz", paper, _ascending(means, metric)]
        for metric, what, paper in FIGURES_14_15
    ]
    return Table("Beside the paper's statements", ["paper's transport", "quantity", "where", "paper", "here"], rows)


def _matching(
    means: Mapping[Cell, Mapping[str, float]], line: Mapping[str, str], transports: Sequence[str]
) -> list[float]:
    return [
        values[name] for cell, values in means.items() if _within(cell, line) for name in transports if name in values
    ]


def _ascending(found: Means, metric: str) -> str:
    """The paper's transports in the environment of its Figures 14 and 15, the best first."""
    means = found.by_cell(PAPERS, metric).get(Cell(3, 0.03, 1.0, 50.0), {})
    ordered = sorted((means[name], name) for name in PAPERS_OWN if name in means)
    return ", ".join(f"{name} {number(value)}" for value, name in ordered) or "not in this grid"


def _worst(runs: Runs, metric: str, line: Mapping[str, str], transports: Sequence[str]) -> str:
    """Of single runs, not of means."""
    found = rivals.worst(runs.where(metric, lambda cell: _within(cell, line)), transports)
    return " and ".join(f"{value:.3f}" for value in found) if found else "not in this grid"


def _acceptable(means: Means, most_lost: float) -> str:
    """Transports that lost no more than that in any environment of the grid."""
    worst: dict[str, float] = {}
    for values in means.by_cell(PAPERS, "delivered").values():
        for name, share in values.items():
            worst[name] = min(worst.get(name, 100.0), share)
    return "kept everywhere by " + ", ".join(name for name, share in worst.items() if 100 - share <= most_lost)


def _within(cell: Cell, line: Mapping[str, str]) -> bool:
    least, _, most = line["rate_hz"].partition("-")
    rate_fits = float(least) <= cell.rate_hz <= float(most or least)
    return (
        cell.burst <= 1
        and rate_fits
        and cell.receivers == int(line["receivers"])
        and abs(100 * cell.loss - float(line["loss_percent"])) < 1e-9
    )


def _wins(runs: Runs, line: Mapping[str, str]) -> str:
    """In how many runs the paper's two rivals, Ricochet and its reliable multicast, ended in that order."""
    metric = "relate2" if "ReLate2" in line["quantity"] else "latency_mean"
    won, number_ = rivals.wins(runs.where(metric, lambda cell: _within(cell, line)), 4)
    return f"{won} in {number_}"

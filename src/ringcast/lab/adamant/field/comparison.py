"""What was measured on a real network beside what the simulator predicted of it: tables, pictures, rows. Pure.

A prediction is the mean over several seeds. Its span over the seeds is shown too, because the measured run is one
sample, with as many updates as each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from ringcast.lab.adamant.field.plan import AS_IT_COMES
from ringcast.lab.adamant.grid import BASELINES, RECOVERING, Cell
from ringcast.lab.adamant.results import METRICS, Result
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import Row, figure, number

COMPARED = (
    ("delivered", "Updates received (%)"),
    ("latency_mean", "Mean latency (ms)"),
    ("latency_std", "Jitter: standard deviation of latency (ms)"),
    ("relate2", "ReLate2 (ms)"),
    ("wire_datagrams_per_update", "Packets on the wire per update"),
    ("relate", "ReLate (ms)"),
)
DRAWN = ("latency_mean", "latency_std", "relate2", "relate")
WITHOUT_LOSS = "latency_mean"
"""What is drawn where nothing is lost, as in the paper's Figures 9 and 10."""
COMPLETE = ("nak", "lateral+nak:r=4,c=3")


class Comparison(msgspec.Struct, frozen=True):
    """One transport in one environment."""

    cell: Cell
    transport: str
    measured: Result
    predicted: tuple[Result, ...]

    def real(self, metric: str) -> float:
        return self.measured.metrics[metric]

    def has(self, metric: str) -> bool:
        return metric in self.measured.metrics

    def simulated(self, metric: str) -> float:
        return fmean(result.metrics[metric] for result in self.predicted)

    def simulated_span(self, metric: str) -> tuple[float, float]:
        values = [result.metrics[metric] for result in self.predicted]
        return min(values), max(values)

    @property
    def label(self) -> str:
        return f"{self.cell.receivers} receivers, {100 * self.cell.loss:g} % kernel loss, {self.cell.rate_hz:g} Hz"


def conclude(found: Sequence[Comparison]) -> Findings:
    findings = Findings()
    for metric, title in COMPARED:
        findings.tables.append(_table(found, metric, title))
    findings.rows += [*_complete(found), *_best(found)]
    for one in found:
        name = f"real network, {one.label}, {one.transport}"
        findings.rows += [
            figure(f"{name}: {metric.replace('_', ' ')} (reference: simulated)", one.real(metric), METRICS[metric][0],
                   one.simulated(metric))
            for metric, _ in COMPARED[:4]
        ]  # fmt: skip
    findings.pictures += _pictures(found)
    return findings


def _table(found: Sequence[Comparison], metric: str, title: str) -> Table:
    rows = []
    for one in found:
        if not one.has(metric):
            continue
        here, predicted, (least, most) = (
            one.real(metric),
            one.simulated(metric),
            one.simulated_span(metric),
        )
        rows.append(
            [one.label, one.transport, _text(here), _text(predicted), f"{_text(least)} to {_text(most)}",
             f"{here - predicted:+.3g}"]
        )  # fmt: skip
    heads = ["environment", "transport", "measured", "predicted", "of five seeds", "difference"]
    return Table(f"{title}: real network beside the simulator", heads, rows)


def _text(value: float) -> str:
    return f"{value:.3f}" if 90 <= value < 100 else number(value)


def _complete(found: Iterable[Comparison]) -> list[Row]:
    """What is asked of simulated runs holds on real ones too."""
    return [
        Row(f"delivered, {one.transport}, real network, {one.label}", round(one.real("delivered"), 6), "%",
            round(one.simulated("delivered"), 6), 100, one.real("delivered") >= 100, "asked")
        for one in found if one.transport in COMPLETE and one.cell.loss > 0
    ]  # fmt: skip


def _best(found: Sequence[Comparison]) -> list[Row]:
    rows = []
    for cell in sorted({one.cell for one in found if one.cell.loss > 0}):
        values = {one.transport: (one.real("relate2"), one.simulated("relate2")) for one in found if one.cell == cell}
        baselines = [value for name, value in values.items() if name in BASELINES]
        loose = [value for name, value in values.items() if name.endswith(AS_IT_COMES)]
        # Here the plain names are of stacks that order.
        strict = [value for name, value in values.items() if name in RECOVERING]
        for recovering, which in (
            (strict, "in order, least of nak, lateral, parity, lateral+nak"),
            (loose, "as it comes, least of lateral, parity"),
        ):
            if not recovering or not baselines:
                continue
            here, predicted = (min(v[i] for v in recovering) / min(v[i] for v in baselines) for i in (0, 1))
            name = f"ReLate2, {which} by the least of udp, multicast, tcp, real network"
            where = (
                f"{cell.receivers} receivers, {100 * cell.loss:g} % kernel loss, {cell.rate_hz:g} Hz "
                "(reference: simulated)"
            )
            rows.append(Row(f"{name}, {where}", round(here, 4), "x", round(predicted, 4), 1, here < 1, "shape"))
    return rows


def _pictures(found: Sequence[Comparison]) -> list[Picture]:
    made = []
    for cell in sorted({one.cell for one in found}):
        ones = [one for one in found if one.cell == cell]
        if not cell.loss and len(ones) < 2:
            continue  # only what measured the links
        where = f"{cell.receivers} receivers, {100 * cell.loss:g} % kernel loss, {cell.rate_hz:g} Hz"
        file = f"{cell.receivers}-receivers-{100 * cell.loss:g}-percent-{cell.rate_hz:g}-hz"
        titles = {metric: title for metric, title in COMPARED if metric in DRAWN}
        drawings = [
            (
                "lost",
                "Updates lost (%)",
                [(100 - o.real("delivered"), 100 - o.simulated("delivered")) for o in ones],
            ),
            *(
                (metric, title, [(o.real(metric), o.simulated(metric)) for o in ones])
                for metric, title in titles.items()
            ),
        ]
        for metric, title, pairs in drawings:
            if not cell.loss and metric != WITHOUT_LOSS:
                continue
            series = [
                Series(label, [(float(at), pair[which]) for at, pair in enumerate(pairs)])
                for which, label in enumerate(("measured on a real network", "predicted by the simulator"))
            ]
            labels = [one.transport.replace(":", "\n") for one in ones]
            made.append(
                Picture(
                    f"field-{metric.replace('_', '-')}-{file}", f"{title}: {where}", "", title, series, "bars", labels
                )
            )
    return made

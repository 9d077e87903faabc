"""Sections 3.3.3 to 3.3.7 of paper 001 predicted by the model, beside what `lab run push-pull` measured. Pure.

The model of measured costs (`placement.delay.measured`) is given three lines, fitted to three of the measured series,
all with the proxy at the publisher: on one node (what both ends take without a network), one hop (what a transfer
adds), two hops (what a router adds). Everything else is predicted: the proxy at the subscriber, the remote proxy, three
hops, and two routers. A round trip is the way there, with the proxy, and the way back, without.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import figure
from ringcast.lab.push_pull.network import HOPS, INTERMEDIATE, PUBLISHER, SIZES, SUBSCRIBER
from ringcast.placement.case import Case
from ringcast.placement.delay import measured
from ringcast.placement.model import Costs, Demand, Link, Node, Problem, Subscriber

US = 1e6
_PACKET = 1400
"""A message of more bytes than this takes two packets (docs/experiments.md)."""
_ROW = re.compile(r"experiment (\d), [a-z ]+, (proxy at [a-z ]+), (\d+) B: mean of 100 round trips")
_FITTED = {(1, PUBLISHER), (2, PUBLISHER), (3, PUBLISHER)}


class Point(NamedTuple):
    """A measured series' place: experiment 1 to 4 (hops + 1), where the proxy was, the size of messages."""

    experiment: int
    place: str
    size: int


class Hop(NamedTuple):
    """Seconds, seconds more for each packet after the first, and seconds per byte. None is negative."""

    fixed_s: float
    per_packet_s: float
    per_byte_s: float

    def each(self, size: int) -> float:
        """What does not depend on the bytes."""
        return self.fixed_s + self.per_packet_s * _more_packets(size)

    def of(self, size: int) -> float:
        return self.each(size) + self.per_byte_s * size


class Calibration(NamedTuple):
    """One way each: both ends on one node, a transfer to another node, and a router on it."""

    ends: Hop
    transfer: Hop
    router: Hop


def points(rows: Iterable[Mapping[str, object]]) -> dict[Point, float]:
    """Seconds, of the rows that `lab run push-pull` left."""
    found = {}
    for row in rows:
        match, value = _ROW.fullmatch(str(row.get("name"))), row.get("value")
        if match and isinstance(value, int | float):
            found[Point(int(match[1]), match[2], int(match[3]))] = value / US
    return found


def calibrate(seen: Mapping[Point, float]) -> Calibration:
    """Raises KeyError when a series is missing."""
    series = [[seen[Point(experiment, PUBLISHER, size)] for size in SIZES] for experiment in (1, 2, 3)]
    ends = _half(series[0])
    transfer = _half([b - a for a, b in zip(series[0], series[1], strict=True)])
    return Calibration(ends, transfer, _half([b - a for a, b in zip(series[1], series[2], strict=True)]))


def predict(calibration: Calibration, point: Point) -> float:
    """A round trip in seconds."""
    to = HOPS[point.experiment - 1]
    place = {PUBLISHER: "a", SUBSCRIBER: to, INTERMEDIATE: "c"}[point.place]
    case = Case(network(calibration, to, point.size))
    there, back = case.streams
    number = case.routes.number
    return (
        measured(case, there, number[place]).total_s
        + measured(case, back, number[to]).total_s
        + 2 * calibration.ends.of(point.size)
    )


def network(calibration: Calibration, to: str, size: int) -> Problem:
    """The paper's network; nodes on the switch are one hop apart. Half of a transfer is sending."""
    transfer, router = calibration.transfer, calibration.router
    plain = {"bandwidth": _bandwidth(transfer)}
    routed = {"bandwidth": _bandwidth(router), "latency_s": router.each(size)}
    links = [Link(x, y, **plain) for x, y in (("a", "b"), ("a", "c"), ("b", "c"), ("a", "r1"), ("c", "r1"))]
    links += [Link(x, y, **routed) for x, y in (("r1", "d"), ("r1", "r2"), ("r2", "e"))]
    half = transfer.each(size) / 2
    ways = (("there", "a", to), ("back", to, "a"))
    return Problem(
        tuple(map(Node, ("a", "b", "c", "r1", "r2", "d", "e"))), tuple(links),
        tuple(Demand(tag, source, 1.0, size, (Subscriber(tag, end),)) for tag, source, end in ways),
        Costs(in_s=half, out_s=half),
    )  # fmt: skip


def conclude(seen: Mapping[Point, float], where: str) -> Findings:
    """Beside each other. `where` says what was measured when."""
    try:
        calibration = calibrate(seen)
    except KeyError:
        return Findings(notes=[f"no prediction: {where} has no complete Experiments 1 to 3"])
    findings, errors, cells = Findings(), [], []
    for experiment, place in sorted({(point.experiment, point.place) for point in seen}):
        line = {
            size: (predict(calibration, point), seen[point])
            for size in SIZES
            if (point := Point(experiment, place, size)) in seen
        }
        fitted = (experiment, place) in _FITTED
        off = statistics.median(abs(ours / theirs - 1) for ours, theirs in line.values())
        cells.append(
            [f"experiment {experiment}, {place}" + (" (fitted)" if fitted else ""),
             *(f"{ours * US:.1f} / {theirs * US:.1f}" for ours, theirs in line.values()), f"{off:.1%}"]
        )  # fmt: skip
        if not fitted:
            # The remote proxy of Experiment 1 is a program of its own, which the model does not know.
            errors += [off] if (experiment, place) != (1, INTERMEDIATE) else []
            findings.rows += [
                figure(
                    f"predicted: experiment {experiment}, {place}, {size} B: round trip", ours * US, "us", theirs * US
                )
                for size, (ours, theirs) in line.items()
            ]
    findings.add(_routers(calibration, seen))
    findings.tables.append(
        Table(
            "Sections 3.3.3 to 3.3.6: round trips predicted / measured (us)",
            ["", *(f"{s} B" for s in SIZES), "off by"],
            cells,
        )
    )
    if errors:
        findings.rows.append(
            figure("predicted round trips: median of what series are off by", 100 * statistics.median(errors), "%")
        )
    findings.pictures += _pictures(calibration, seen)
    findings.notes.append(
        f"measured: {where}; predictions are from three fitted lines, the rest follows from the model"
    )
    return findings


def _routers(calibration: Calibration, seen: Mapping[Point, float]) -> Findings:
    """Figure 10: two routers are twice one."""
    far = {size: seen.get(Point(4, PUBLISHER, size)) for size in SIZES}
    rows, cells = [], []
    for size, trip in far.items():
        if trip is not None:
            near = seen[Point(2, PUBLISHER, size)]
            ours = predict(calibration, Point(4, PUBLISHER, size)) - predict(calibration, Point(2, PUBLISHER, size))
            rows.append(
                figure(
                    f"predicted: figure 10, two routers, {size} B: added to a round trip",
                    ours * US,
                    "us",
                    (trip - near) * US,
                )
            )
            cells.append([f"{size} B", f"{ours * US:.2f}", f"{(trip - near) * US:.2f}"])
    title = "Section 3.3.7: what two routers add to a round trip (us)"
    return Findings(rows, [Table(title, ["", "predicted", "measured"], cells)] if cells else [])


def _pictures(calibration: Calibration, seen: Mapping[Point, float]) -> list[Picture]:
    found = []
    for experiment in (2, 3, 4):
        series = []
        for place in sorted({point.place for point in seen if point.experiment == experiment}):
            sizes = [size for size in SIZES if Point(experiment, place, size) in seen]
            series.append(Series(place, [(float(s), seen[Point(experiment, place, s)] * US) for s in sizes]))
            series.append(
                Series(
                    f"{place}, predicted",
                    [(float(s), predict(calibration, Point(experiment, place, s)) * US) for s in sizes],
                )
            )
        found.append(
            Picture(f"experiment-{experiment}", f"Experiment {experiment}: measured and predicted",
                    "message size (bytes)", "round trip (us)", series)
        )  # fmt: skip
    return found


def _half(values: list[float]) -> Hop:
    """The least squares of half of these, by size. Negative terms are noise and are left out of the fit."""
    columns = [np.ones(len(SIZES)), np.array([_more_packets(size) for size in SIZES]), np.array(SIZES, dtype=float)]
    wanted = np.array(values) / 2
    used = [0, 1, 2]
    while True:
        found, *_ = np.linalg.lstsq(np.stack([columns[i] for i in used], axis=1), wanted, rcond=None)
        below = [i for i, value in zip(used, found, strict=True) if value < 0]
        if not below:
            break
        used = [i for i in used if i not in below]
        if not used:
            return Hop(0.0, 0.0, 0.0)
    fitted = dict(zip(used, map(float, found), strict=True))
    return Hop(*(fitted.get(i, 0.0) for i in range(3)))


def _more_packets(size: int) -> int:
    return (size - 1) // _PACKET


def _bandwidth(hop: Hop) -> float:
    return 1 / hop.per_byte_s if hop.per_byte_s > 0 else math.inf

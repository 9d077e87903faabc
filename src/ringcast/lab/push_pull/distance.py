"""Paper 001, section 3.3: message lengths with the subscriber on the same node and one, two and three hops away
(Experiments 1 to 4), and what a router adds (Figure 10). Pure.

The paper gives these as drawings without numbers. Its text says what they show, and that is compared: straight lines, a
remote proxy that costs more, about 2.5 ms of the round trips of 6 ms in Experiment 2.
"""

from __future__ import annotations

from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import Row, at_least, figure
from ringcast.lab.push_pull.network import INTERMEDIATE, PUBLISHER, SIZES, SUBSCRIBER, Arrangement
from ringcast.lab.push_pull.round_trips import BY_HOPS, ROUTERS, RoundTrips

_NAMES = {0: "same node", 1: "one hop", 2: "two hops", 3: "three hops"}
_PLACES = {
    0: (PUBLISHER, SUBSCRIBER, INTERMEDIATE),
    1: (PUBLISHER, SUBSCRIBER, INTERMEDIATE),
    2: (PUBLISHER, SUBSCRIBER),
    3: (PUBLISHER, SUBSCRIBER),
}
_ROUGHLY = 0.8
"""The paper: "(roughly) linearly"."""
_STRAIGHT = 0.9
"""From this correlation of delay and hops on, one is called linear in the other."""


def wanted(sizes: tuple[int, ...] = SIZES) -> list[tuple[Arrangement, int]]:
    return [(Arrangement(hops, place), size) for hops, places in _PLACES.items() for place in places for size in sizes]


def conclude(trips: RoundTrips, sizes: tuple[int, ...] = SIZES) -> Findings:
    findings = Findings()
    for number, (hops, places) in enumerate(_PLACES.items(), 1):
        findings.add(_experiment(trips, number, hops, places, sizes))
    findings.rows += _shapes(trips, sizes)
    findings.add(_routers(trips, sizes))
    return findings


def _experiment(trips: RoundTrips, number: int, hops: int, places: tuple[str, ...], sizes: tuple[int, ...]) -> Findings:
    findings, cells, series = Findings(), [], []
    for place in places:
        seen = [trips.summary(Arrangement(hops, place), size) for size in sizes]
        cells.append([place, *(f"{one.mean:.2f} ± {one.std:.2f}" for one in seen)])
        points = [(float(size), one.mean) for size, one in zip(sizes, seen, strict=True)]
        series.append(Series(place, points, errors=[one.std for one in seen]))
        findings.rows += [
            figure(f"experiment {number}, {_NAMES[hops]}, {place}, {size} B: mean of 100 round trips", mean, "us")
            for size, (_, mean) in zip(sizes, points, strict=True)
        ]
    title = f"Experiment {number}: publisher and subscriber on {_NAMES[hops]}" if hops == 0 else (
        f"Experiment {number}: publisher and subscriber at a distance of {_NAMES[hops]}"
    )  # fmt: skip
    findings.tables.append(Table(f"{title} (us, mean ± standard deviation)", ["", *(f"{s} B" for s in sizes)], cells))
    findings.pictures.append(
        Picture(f"experiment-{number}-{_NAMES[hops].replace(' ', '-')}", title, "message size (bytes)",
                "round trip (us)", series)
    )  # fmt: skip
    if hops == 0:
        findings.notes.append(
            "in experiment 1 the remote proxy is a process on node c that publishes what it receives on another tag: "
            "the daemons have no channel from a node to itself into which a proxy could be put"
        )
    return findings


def _shapes(trips: RoundTrips, sizes: tuple[int, ...]) -> list[Row]:
    size = 64 if 64 in sizes else sizes[0]
    straight = trips.correlation(f"{BY_HOPS}, {size} B", Arrangement(1, PUBLISHER), None)
    rows = [
        at_least(
            f"delay grows about linearly with hops, {size} B, 1 to 3: correlation from {_STRAIGHT:g} on", straight,
            "r", _STRAIGHT, kind="shape",
        )
    ]  # fmt: skip
    for hops in (0, 1):
        ratio = trips.ratio(Arrangement(hops, INTERMEDIATE), size, "proxy", PUBLISHER)
        # Paper 001: about 2.5 ms more in Experiment 2, on round trips of about 6.
        name = f"a remote proxy costs more than one at the publisher, {_NAMES[hops]}, {size} B"
        rows.append(at_least(name, ratio, "times", 1.0, 1 + 2.5 / 6.0 if hops else None, kind="shape"))
    return rows


def _routers(trips: RoundTrips, sizes: tuple[int, ...]) -> Findings:
    """What routers add to a round trip, which passes each of them twice. Medians: they add less than what one sample
    differs from the next."""
    findings, cells, series = Findings(), [], []
    for hops in (2, 3):
        many = hops - 1
        name = "one router" if many == 1 else "two routers"
        points = [(float(size), trips.difference(Arrangement(hops, PUBLISHER), size, "hops", 1)) for size in sizes]
        series.append(Series(name, points))
        straight = trips.correlation(ROUTERS, Arrangement(hops, PUBLISHER), hops)
        what = f"delay of {name} grows about linearly with size: correlation from {_ROUGHLY:g} on"
        findings.rows.append(at_least(what, straight, "r", _ROUGHLY, kind="shape"))
        cells.append([name, *(f"{y:.2f}" for _, y in points)])
        cells.append([f"  each passage of {'it' if many == 1 else 'one'}", *(f"{y / many / 2:.2f}" for _, y in points)])
        findings.rows += [
            figure(f"figure 10, {name}, {size:g} B: added to a round trip", y, "us") for size, y in points
        ]
    findings.tables.append(
        Table("Figure 10: what routers add to a round trip (us)", ["", *(f"{size} B" for size in sizes)], cells)
    )
    findings.pictures.append(
        Picture("figure-10-routers", "Figure 10: delay that routers add to a round trip", "message size (bytes)",
                "added delay (us)", series)
    )  # fmt: skip
    return findings

"""Paper 000, section 3.3: round trips with a proxy in four places (Table 1), with messages of six lengths and 1, 4 and
8 subscribers (Table 2), and of five lengths through a proxy on an intermediate node (Table 3). Pure."""

from __future__ import annotations

from ringcast.lab.measuring import reference
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.measuring.samples import median
from ringcast.lab.push_pull.network import (
    INTERMEDIATE,
    NAK,
    NONE,
    PUBLISHER,
    SUBSCRIBER,
    UDP,
    Arrangement,
    Work,
)
from ringcast.lab.push_pull.round_trips import BY_SIZE, EXPERIMENT, PAPER, RoundTrips

PLACES = (NONE, SUBSCRIBER, PUBLISHER, INTERMEDIATE)
TABLE_2_SIZES = (64, 256, 512, 1024, 1536, 1792)
TABLE_3_SIZES = (1, 64, 1024, 1536, 1792)
SUBSCRIBERS = (1, 4, 8)
WORK: dict[Work, str] = {"every 2": "every other message", "frames": "arrays at their own size"}
AT_AN_END = 1.05
MS = 1e3
"""From seconds to milliseconds."""
_STRAIGHT = 0.8
"""A correlation from here on is called about linear. For one subscriber the paper's own Table 2 has 0.89."""


def wanted() -> list[tuple[Arrangement, int]]:
    pairs = [(Arrangement(1, place), 64) for place in PLACES]
    pairs += [(Arrangement(1, place, transport=NAK), 64) for place in (NONE, INTERMEDIATE)]
    pairs += [(Arrangement(1, place, scaling=how), 64) for how in WORK for place in (NONE, PUBLISHER, SUBSCRIBER)]
    pairs += [(Arrangement(1, NONE, count), size) for count in SUBSCRIBERS for size in TABLE_2_SIZES]
    return pairs + [(Arrangement(1, INTERMEDIATE), size) for size in TABLE_3_SIZES]


def conclude(seen: RoundTrips) -> Findings:
    findings = Findings()
    for part in (_table_1(seen), _table_2(seen), _table_3(seen)):
        findings.add(part)
    findings.rows += [*_asked(seen), *_grows(seen)]
    return findings


def _asked(seen: RoundTrips) -> list[Row]:
    """Against no proxy, as a factor; the paper's own factor is the reference. A proxy at either end that passes
    everything is no proxy at all here, so those are given something to do."""
    rows = []
    for how, what in WORK.items():
        for place in (PUBLISHER, SUBSCRIBER):
            ratio = seen.ratio(Arrangement(1, place, scaling=how), 64, "proxy", NONE)
            name = f"round trip of 64 B, {place}, {what}, against none: at most {AT_AN_END:g} times"
            rows.append(at_most(name, ratio, "times", AT_AN_END, _paper_1(place) / _paper_1(NONE)))
    for transport in (UDP, NAK):
        ratio = seen.ratio(Arrangement(1, INTERMEDIATE, transport=transport), 64, "proxy", NONE)
        name = f"round trip of 64 B, {INTERMEDIATE}, {transport}, against none: at most 1.6 times"
        rows.append(at_most(name, ratio, "times", 1.6, _paper_1(INTERMEDIATE) / _paper_1(NONE)))
    return rows


def _grows(seen: RoundTrips) -> list[Row]:
    """What paper 000 says in 3.3.2 beside its tables."""
    rows = []
    for count in SUBSCRIBERS[1:]:
        ratios = [seen.ratio(Arrangement(1, NONE, count), size, "subscribers", 1) for size in TABLE_2_SIZES]
        papers = [_paper_2(count, size) / _paper_2(1, size) for size in TABLE_2_SIZES]
        name = f"delay grows with subscribers: {count} against 1, the median over sizes"
        rows.append(at_least(name, median(ratios), "times", 1.0, median(papers), "shape"))
    least, most = (seen.difference(Arrangement(1, INTERMEDIATE), size, "proxy", NONE) for size in (64, 1792))
    paper = [(reference.figure("3", "intermediate proxy", f"{size} B") or 0) - _paper_2(1, size) for size in (64, 1792)]
    name = "what a proxy on an intermediate node adds grows with length: 1792 B against 64 B"
    ratio = most / least if least > 0 else None
    return [*rows, at_least(name, ratio, "times", 1.0, paper[1] / paper[0], "shape")]


def _paper_2(count: int, size: int) -> float:
    """Seconds."""
    return reference.figure("2", f"{count} subscriber{'s' if count > 1 else ''}", f"{size} B") or 0.0


def _paper_1(place: str) -> float:
    """Seconds."""
    found = reference.figure("1", place, "round trip mean")
    assert found is not None
    return found


def _table_1(trips: RoundTrips) -> Findings:
    findings, cells, ours, errors, papers = Findings(), [], [], [], []
    for number, place in enumerate(PLACES):
        seen = trips.summary(Arrangement(1, place), 64)
        paper, paper_std = _paper_1(place), reference.figure("1", place, "round trip std") or 0.0
        cells.append([place, *(f"{x:.2f}" for x in (seen.mean, seen.std)),
                      f"{paper * MS:.4f}", f"{paper_std * MS:.4f}"])  # fmt: skip
        ours.append((number, seen.mean))
        errors.append(seen.std)
        papers.append((number, paper * MS))
        findings.rows.append(figure(f"table 1, {place}: mean of 100 round trips", seen.mean, "us", paper * 1e6))
        findings.rows.append(
            figure(f"table 1, {place}: standard deviation of 100 round trips", seen.std, "us", paper_std * 1e6)
        )
    beside = [(Arrangement(1, place, transport=NAK), f"{place}, nak") for place in (NONE, INTERMEDIATE)]
    beside += [
        (Arrangement(1, place, scaling=how), f"{place}, {what}")
        for how, what in WORK.items() for place in (NONE, PUBLISHER, SUBSCRIBER)
    ]  # fmt: skip
    for arrangement, what in beside:
        seen = trips.summary(arrangement, 64)
        cells.append([what, *(f"{x:.2f}" for x in (seen.mean, seen.std)), "-", "-"])
        findings.rows.append(figure(f"beside table 1, {what}: mean of 100 round trips", seen.mean, "us"))
    heads = ["64 B, one hop, udp", "mean (us)", "std (us)", "paper: mean (ms)", "paper: std (ms)"]
    findings.tables.append(Table("Table 1: round trips for places of the proxy", heads, cells))
    findings.pictures.append(
        Picture(
            "table-1-proxy-places", "Table 1: round trip of 64 B by the place of the proxy", "", "round trip (us)",
            (Series("here", ours, errors=errors), Series("paper", papers, paper=True)), "bars",
            [place.replace(" at ", " at\n") for place in PLACES],
        )
    )  # fmt: skip
    return findings


def _table_2(trips: RoundTrips) -> Findings:
    findings, cells, series = Findings(), [], []
    for count in SUBSCRIBERS:
        name = f"{count} subscriber{'s' if count > 1 else ''}"
        points, papers = [], []
        for size in TABLE_2_SIZES:
            mean = trips.summary(Arrangement(1, NONE, count), size).mean
            paper = reference.figure("2", name, f"{size} B")
            points.append((float(size), mean))
            findings.rows.append(
                figure(f"table 2, {name}, {size} B: mean of 100 round trips", mean, "us", (paper or 0) * 1e6)
            )
            papers.append((float(size), (paper or 0) * MS))
        cells.append([f"{name} (us)", *(f"{y:.2f}" for _, y in points)])
        cells.append(["  paper (ms)", *(f"{y:.3f}" for _, y in papers)])
        series += [Series(f"{name}, here", points), Series(f"{name}, paper", papers, paper=True)]
        if count == 1:
            findings.rows += _straightness(trips, "no proxy", NONE, points, papers)
    findings.tables.append(
        Table("Table 2: round trips without a proxy", ["", *(f"{size} B" for size in TABLE_2_SIZES)], cells)
    )
    findings.pictures.append(
        Picture("table-2-sizes-and-subscribers", "Table 2: round trip by size and number of subscribers",
                "message size (bytes)", "round trip (us)", series)
    )  # fmt: skip
    return findings


def _table_3(trips: RoundTrips) -> Findings:
    findings, points, papers = Findings(), [], []
    for size in TABLE_3_SIZES:
        mean = trips.summary(Arrangement(1, INTERMEDIATE), size).mean
        paper = reference.figure("3", "intermediate proxy", f"{size} B") or 0.0
        points.append((float(size), mean))
        papers.append((float(size), paper * MS))
        findings.rows.append(figure(f"table 3, {size} B: mean of 100 round trips", mean, "us", paper * 1e6))
    findings.rows += _straightness(trips, "intermediate proxy", INTERMEDIATE, points, papers)
    cells = [["here (us)", *(f"{y:.2f}" for _, y in points)], ["  paper (ms)", *(f"{y:.3f}" for _, y in papers)]]
    findings.tables.append(
        Table("Table 3: round trips through a proxy on an intermediate node",
              ["", *(f"{size} B" for size in TABLE_3_SIZES)], cells)
    )  # fmt: skip
    findings.pictures.append(
        Picture("table-3-intermediate-proxy", "Table 3: round trip through an intermediate proxy by size",
                "message size (bytes)", "round trip (us)",
                (Series("here", points), Series("paper", papers, paper=True)))
    )  # fmt: skip
    return findings


def _straightness(
    trips: RoundTrips, what: str, place: str, points: list[tuple[float, float]], papers: list[tuple[float, float]]
) -> list[Row]:
    ours, theirs = (trips.correlation(BY_SIZE, Arrangement(1, place), 1, who) for who in (EXPERIMENT, PAPER))
    growth = points[-1][1] / points[0][1]
    return [
        at_least(f"delay grows about linearly with size, {what}: correlation from {_STRAIGHT:g} on", ours, "r",
                 _STRAIGHT, theirs, "shape"),
        figure(f"largest message against smallest, {what}", growth, "times", papers[-1][1] / papers[0][1]),
    ]  # fmt: skip

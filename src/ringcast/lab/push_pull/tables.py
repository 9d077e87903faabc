"""Paper 000, section 3.3: round trips with a proxy in four places (Table 1), with messages of six lengths and 1, 4 and
8 subscribers (Table 2), and of five lengths through a proxy on an intermediate node (Table 3). Pure."""

from __future__ import annotations

from ringcast.lab.measuring import reference
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, figure
from ringcast.lab.measuring.samples import fit, paired_ratio, typical
from ringcast.lab.push_pull.network import INTERMEDIATE, NONE, PUBLISHER, SUBSCRIBER, Arrangement, Batches

PLACES = (NONE, SUBSCRIBER, PUBLISHER, INTERMEDIATE)
TABLE_2_SIZES = (64, 256, 512, 1024, 1536, 1792)
TABLE_3_SIZES = (1, 64, 1024, 1536, 1792)
SUBSCRIBERS = (1, 4, 8)
US, MS = 1e-3, 1e3
"""From nanoseconds to microseconds; from seconds to milliseconds."""
_STRAIGHT = 0.8
"""A correlation from here on is called about linear. For one subscriber the paper's own Table 2 has 0.89."""


def wanted() -> list[tuple[Arrangement, int]]:
    pairs = [(Arrangement(1, place), 64) for place in PLACES]
    pairs += [(Arrangement(1, NONE, count), size) for count in SUBSCRIBERS for size in TABLE_2_SIZES]
    return pairs + [(Arrangement(1, INTERMEDIATE), size) for size in TABLE_3_SIZES]


def conclude(batches: Batches) -> Findings:
    findings = Findings()
    for part in (_table_1(batches), _table_2(batches), _table_3(batches)):
        findings.add(part)
    findings.rows += _asked(batches)
    return findings


def _asked(batches: Batches) -> list[Row]:
    """Against no proxy, as a factor; the paper's own factor is the reference."""
    rows = []
    for place, most in ((PUBLISHER, 1.05), (SUBSCRIBER, 1.05), (INTERMEDIATE, 1.6)):
        ratio = paired_ratio(batches[Arrangement(1, place), 64], batches[Arrangement(1), 64])
        name = f"round trip of 64 B, {place} against none: at most {most:g} times"
        rows.append(at_most(name, ratio, "times", most, _paper_1(place) / _paper_1(NONE)))
    return rows


def _paper_1(place: str) -> float:
    """Seconds."""
    found = reference.figure("1", place, "round trip mean")
    assert found is not None
    return found


def _table_1(batches: Batches) -> Findings:
    findings, cells, ours, errors, papers = Findings(), [], [], [], []
    for number, place in enumerate(PLACES):
        seen = typical(batches[Arrangement(1, place), 64])
        paper, paper_std = _paper_1(place), reference.figure("1", place, "round trip std") or 0.0
        cells.append([place, *(f"{x * US:.2f}" for x in (seen.mean, seen.std)),
                      f"{paper * MS:.4f}", f"{paper_std * MS:.4f}"])  # fmt: skip
        ours.append((number, seen.mean * US))
        errors.append(seen.std * US)
        papers.append((number, paper * MS))
        findings.rows.append(figure(f"table 1, {place}: mean of 100 round trips", seen.mean * US, "us", paper * 1e6))
        findings.rows.append(
            figure(f"table 1, {place}: standard deviation of 100 round trips", seen.std * US, "us", paper_std * 1e6)
        )
    heads = ["64 B, one hop", "mean (us)", "std (us)", "paper: mean (ms)", "paper: std (ms)"]
    findings.tables.append(Table("Table 1: round trips for places of the proxy", heads, cells))
    findings.pictures.append(
        Picture(
            "table-1-proxy-places", "Table 1: round trip of 64 B by the place of the proxy", "", "round trip (us)",
            (Series("here", ours, errors=errors), Series("paper", papers, paper=True)), "bars",
            [place.replace(" at ", " at\n") for place in PLACES],
        )
    )  # fmt: skip
    return findings


def _table_2(batches: Batches) -> Findings:
    findings, cells, series = Findings(), [], []
    for count in SUBSCRIBERS:
        name = f"{count} subscriber{'s' if count > 1 else ''}"
        points, papers = [], []
        for size in TABLE_2_SIZES:
            mean = typical(batches[Arrangement(1, NONE, count), size]).mean
            paper = reference.figure("2", name, f"{size} B")
            points.append((float(size), mean * US))
            findings.rows.append(
                figure(f"table 2, {name}, {size} B: mean of 100 round trips", mean * US, "us", (paper or 0) * 1e6)
            )
            papers.append((float(size), (paper or 0) * MS))
        cells.append([f"{name} (us)", *(f"{y:.2f}" for _, y in points)])
        cells.append(["  paper (ms)", *(f"{y:.3f}" for _, y in papers)])
        series += [Series(f"{name}, here", points), Series(f"{name}, paper", papers, paper=True)]
        if count == 1:
            findings.rows += _straightness("no proxy", points, papers)
    findings.tables.append(
        Table("Table 2: round trips without a proxy", ["", *(f"{size} B" for size in TABLE_2_SIZES)], cells)
    )
    findings.pictures.append(
        Picture("table-2-sizes-and-subscribers", "Table 2: round trip by size and number of subscribers",
                "message size (bytes)", "round trip (us)", series)
    )  # fmt: skip
    return findings


def _table_3(batches: Batches) -> Findings:
    findings, points, papers = Findings(), [], []
    for size in TABLE_3_SIZES:
        mean = typical(batches[Arrangement(1, INTERMEDIATE), size]).mean
        paper = reference.figure("3", "intermediate proxy", f"{size} B") or 0.0
        points.append((float(size), mean * US))
        papers.append((float(size), paper * MS))
        findings.rows.append(figure(f"table 3, {size} B: mean of 100 round trips", mean * US, "us", paper * 1e6))
    findings.rows += _straightness("intermediate proxy", points, papers)
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


def _straightness(what: str, points: list[tuple[float, float]], papers: list[tuple[float, float]]) -> list[Row]:
    ours, theirs = fit(points), fit(papers)
    growth = points[-1][1] / points[0][1]
    return [
        at_least(f"delay grows about linearly with size, {what}: correlation from {_STRAIGHT:g} on", ours.r, "r",
                 _STRAIGHT, theirs.r, "shape"),
        figure(f"largest message against smallest, {what}", growth, "times", papers[-1][1] / papers[0][1]),
    ]  # fmt: skip

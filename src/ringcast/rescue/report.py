"""What a lake holds of a search and rescue, as a page: where survivors are, how well they were found, how the streams
did, and what was put aside. Reads tables only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pyspark.sql import Row
from pyspark.sql import functions as F

from ringcast.lab.measuring.drawing import COLOURS, Drawing
from ringcast.rescue.pipelines.score import Score, matched, score
from ringcast.rescue.tables import DETECTIONS, FIRES, INFRARED, SENSORS, TRUTH, VIDEO
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import code_version
from ringcast.spark.page import Section, image, page
from ringcast.spark.pipelines.refine import of_pattern, refine
from ringcast.spark.tables import bronze, gold, silver, upkeep

_SHOWN = 4000
"""Dots on a map beyond so many say no more."""


def write_report(
    lake: Lake,
    path: str | os.PathLike[str],
    title: str = "Search and rescue",
    trials: Mapping[str, Score] | None = None,
    more: list[Section] | None = None,
    found: Score | None = None,
) -> Path:
    """Write the page, and beside it its pictures as SVG files. `trials` are scores under other conditions; `found` is
    that of the lake's own detections, where somebody has computed it already."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    sections = [
        _survivors(lake, found),
        *_trials(trials or {}),
        _frames(lake),
        _streams(lake),
        _kept(lake),
        *(more or []),
    ]
    for section in sections:
        for at, picture in enumerate(section.pictures):
            if picture.startswith("<svg"):
                name = section.title.lower().replace(" ", "-") + (f"-{at}" if at else "")
                (target.parent / f"{target.stem}-{name}.svg").write_text(picture)
    target.write_text(page(title, sections, f"ringcast {code_version()}"))
    return target


def detections_map(lake: Lake) -> str:
    """Seen from above: where survivors were, where they were found, and who looked."""
    found = lake.read(DETECTIONS).select("x", "y").limit(_SHOWN).collect()
    truth = lake.read(TRUTH).orderBy("event_ns").collect()
    cameras = lake.read(SENSORS).where("x is not null").collect()
    fires = lake.read(FIRES).agg(F.median("x").alias("x"), F.median("y").alias("y")).collect()
    points = [(row.x, row.y) for row in (*found, *truth, *cameras)] or [(0.0, 0.0)]
    reach = max(max(abs(x), abs(y)) for x, y in points) + 3
    drawing = Drawing(
        "Survivors from above", (-reach, reach), (-reach, reach), ("m east", "m north"), width=620, height=600
    )
    drawing.grid()
    drawing.dots([(row.x, row.y) for row in found], COLOURS[0], "detections", 3, 0.35)
    tracks: dict[str, list[tuple[float, float]]] = {}
    for row in truth:
        tracks.setdefault(row.survivor, []).append((row.x, row.y))
    for name, track in tracks.items():
        drawing.line(track, "#111", "true paths", 1.2)
        drawing.text(*track[-1], name)
    drawing.dots([(row.x, row.y) for row in cameras], COLOURS[3], "street cameras", 5)
    drawing.dots([(row.x, row.y) for row in fires if row.x is not None], COLOURS[1], "fire", 6)
    return drawing.svg()


def score_bars(scores: Mapping[str, Score]) -> str:
    """Recall and precision, side by side for each condition."""
    drawing = Drawing("Recall and precision", (-0.6, len(scores) - 0.4), (0, 1.12))
    drawing.grid([(at, name) for at, name in enumerate(scores)])
    for at, one in enumerate(scores.values()):
        drawing.bar(at - 0.36, 0.34, one.recall, COLOURS[0], "recall")
        drawing.bar(at + 0.02, 0.34, one.precision, COLOURS[2], "precision")
    return drawing.svg()


def latency_lines(rows: list[Row]) -> str:
    """The 50th and 99th percentile of latency by time, per kind of tag."""
    if not rows:
        return Drawing("Latency", (0, 1), (0, 1)).svg()
    begin = min(row.event_time for row in rows)
    kinds: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        at = (row.event_time - begin).total_seconds()
        kinds.setdefault(row.kind, []).append((at, row.p50 / 1e6, row.p99 / 1e6))
    top = max(p99 for points in kinds.values() for _, _, p99 in points)
    last = max(at for points in kinds.values() for at, _, _ in points)
    drawing = Drawing("Latency, median (thick) and 99th percentile (thin)", (0, last), (0, top * 1.05), ("s", "ms"))
    drawing.grid()
    for (kind, points), colour in zip(sorted(kinds.items()), COLOURS * 4, strict=False):
        drawing.line([(at, p50) for at, p50, _ in points], colour, kind, 2.2)
        drawing.line([(at, p99) for at, _, p99 in points], colour, "", 0.9)
    return drawing.svg()


def _survivors(lake: Lake, one: Score | None) -> Section:
    detections, truth = lake.read(DETECTIONS), lake.read(TRUTH)
    text = f"{lake.state(DETECTIONS).rows} detections."
    if one is None and lake.state(TRUTH).rows:
        one = score(matched(detections, truth))
    if one is not None:
        text += (
            f" Held against the truth: recall {one.recall:.3f}, precision {one.precision:.3f}, {one.missed} missed, "
            f"{one.false_alarms} false alarms, {one.error_m:.2f} m off on average."
        )
    return Section("Survivors", text, [detections_map(lake)])


def _trials(trials: Mapping[str, Score]) -> list[Section]:
    if not trials:
        return []
    rows = [
        [
            name,
            f"{one.recall:.3f}",
            f"{one.precision:.3f}",
            str(one.missed),
            str(one.false_alarms),
            f"{one.error_m:.2f}",
        ]
        for name, one in trials.items()
    ]
    heads = ["condition", "recall", "precision", "missed", "false alarms", "error in m"]
    return [Section("What time and loss do to it", "", [score_bars(trials)], heads, rows)]


def _frames(lake: Lake) -> Section:
    shown = []
    for family in (INFRARED, VIDEO):
        row = lake.read(family.table).orderBy("event_ns", "tag").first() or _first_frame(lake, family)
        if row is not None:
            pixels = np.frombuffer(row.data, row.dtype).reshape(row["shape"])
            shown.append(image(pixels, f"{row.tag} number {row.seq}"))
    return Section("What the sensors see", "The first infrared and the first video frame.", ["".join(shown)])


def _first_frame(lake: Lake, family: silver.Family) -> Row | None:
    """Where nothing was refined yet: of what was received, that one message is."""
    own = lake.read(bronze.MESSAGES).where(of_pattern(F.col("tag"), family.pattern))
    first = own.orderBy("event_ns", "tag").limit(1)
    return refine(first, lake.read(upkeep.CLOCKS), family).where("rejected is null").first()


def _streams(lake: Lake) -> Section:
    kind = F.element_at(F.split("tag", "/"), -1).alias("kind")
    table = lake.read(gold.QOS)
    lines = table.groupBy("event_time", kind).agg(
        F.max("latency_p50_ns").alias("p50"), F.max("latency_p99_ns").alias("p99")
    )
    rows = (
        table.groupBy("tag")
        .agg(
            F.sum("expected").alias("expected"), F.sum("lost").alias("lost"),
            F.max("latency_p50_ns").alias("p50"), F.max("latency_p95_ns").alias("p95"),
            F.max("latency_p99_ns").alias("p99"), F.avg("jitter_latency_ns").alias("deviation"),
            F.avg("jitter_period_ns").alias("period"), F.avg("relate2").alias("relate2"),
            F.sum("deadline_misses").alias("misses"),
        )
        .orderBy("tag")
        .collect()
    )  # fmt: skip
    cells = [
        [
            row.tag, str(row.expected), str(row.lost), f"{100 * row.lost / max(1, row.expected):.2f} %",
            *(_ms(row[name]) for name in ("p50", "p95", "p99", "deviation", "period", "relate2")), str(row.misses),
        ]
        for row in rows
    ]  # fmt: skip
    heads = ["tag", "expected", "lost", "loss", "p50", "p95", "p99", "jitter (latency)", "jitter (period)", "ReLate2",
             "missed deadlines"]  # fmt: skip
    text = "Times in milliseconds; percentiles are those of the worst window."
    return Section("Quality of service", text, [latency_lines(lines.orderBy("event_time").collect())], heads, cells)


def _kept(lake: Lake) -> Section:
    counts = (
        lake.read(upkeep.QUALITY)
        .where("rows > 0")
        .groupBy("table", "expectation", "action")
        .agg(F.sum("rows").alias("n"))
    )
    rows = [[r.table, r.expectation, r.action, str(r.n)] for r in counts.orderBy("table", "expectation").collect()]
    aside = lake.read(upkeep.QUARANTINE).count()
    text = f"{aside} rows are in quarantine. For expectations the number is that of rows which failed them."
    return Section("What was counted", text, [], ["table", "what", "action", "rows"], rows)


def _ms(ns: float | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:.2f}"

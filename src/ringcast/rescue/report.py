"""What a lake holds of a search and rescue, as a page: where survivors are, how well they were found, how the streams
did, and what was put aside. Reads tables only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pyspark.sql import Row
from pyspark.sql import functions as F

from ringcast.rescue.pipelines.dispatch import dispatch
from ringcast.rescue.pipelines.score import Score, matched, score
from ringcast.rescue.scene import dispatch_list, scene_chart
from ringcast.rescue.tables import DETECTIONS, FIRES, INFRARED, SENSORS, TRUTH, VIDEO
from ringcast.spark.analyst import charts
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import code_version
from ringcast.spark.page import Section, image, page
from ringcast.spark.pipelines.refine import of_pattern, refine
from ringcast.spark.tables import bronze, gold, silver, upkeep

_SHOWN = 4000
"""Dots in a picture beyond so many say no more."""


def write_report(
    lake: Lake,
    path: str | os.PathLike[str],
    title: str = "Search and rescue",
    trials: Mapping[str, Score] | None = None,
    more: list[Section] | None = None,
    found: Score | None = None,
) -> Path:
    """Write the page, which needs nothing beside it and fetches nothing. `trials` are scores under other conditions;
    `found` is that of the lake's own detections, where somebody has computed it already."""
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
    target.write_text(page(title, sections, f"ringcast {code_version()}", charts.script()))
    return target


def score_bars(scores: Mapping[str, Score]) -> str:
    """Recall, with its interval where it is of several missions, and precision, for each condition."""
    ones = list(scores.values())
    figure = charts.bars(
        "Recall and precision", list(scores),
        {"recall": [one.recall for one in ones], "precision": [one.precision for one in ones]},
        ends={"recall": [(one.recall if one.low is None else one.low, one.recall if one.high is None else one.high)
                         for one in ones]},
    )  # fmt: skip
    return charts.html(figure, "scores")


def latency_lines(rows: list[Row]) -> str:
    """The 50th and 99th percentile of latency by time, per kind of tag."""
    thick: dict[str, list[tuple[float, float]]] = {}
    thin: dict[str, list[tuple[float, float]]] = {}
    begin = min((row.event_time for row in rows), default=None)
    for row in sorted(rows, key=lambda row: (row.kind, row.event_time)):
        at = (row.event_time - begin).total_seconds()
        thick.setdefault(row.kind, []).append((at, row.p50 / 1e6))
        thin.setdefault(row.kind, []).append((at, row.p99 / 1e6))
    title = "Latency, median (thick) and 99th percentile (thin)"
    return charts.html(charts.lines(title, thick, "seconds", "ms", thin), "latency")


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
    rows = detections.orderBy("event_ns").limit(_SHOWN)
    found = dispatch(detections).collect() if lake.state(DETECTIONS).rows else []
    cameras = lake.read(SENSORS).where("x is not null")
    fires = lake.read(FIRES).agg(F.median("x").alias("x"), F.median("y").alias("y")).where("x is not null")
    known = (some.collect() for some in (rows, truth.orderBy("event_ns"), cameras, fires))
    shown, true, eyes, hot = ([row.asDict() for row in some] for some in known)
    people = [row.asDict() for row in found]
    text += " Click a person of the list to see where it is; tick it when a team is on its way."
    return Section("Survivors", text, [scene_chart(shown, people, true, eyes, hot), dispatch_list(people)])


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

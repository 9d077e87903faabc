"""The rescue under several conditions: in time, with clocks apart, translated, and with loss. For the report and for
`ringcast pipeline compare`; what paper 004, section 2.1 says of streams out of step, in numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ringcast.rescue import Mission, Settings, bronze_rows, clock_rows, truth_rows
from ringcast.rescue.pipelines.fuse import fuse, survivors, tally
from ringcast.rescue.pipelines.score import Score, by_survivor, interval, matched, score
from ringcast.rescue.tables import SENSORS, TRUTH
from ringcast.spark.lake import Lake
from ringcast.spark.pipelines.ingest import ingest
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import CLOCKS
from ringcast.spark.tags.frames import recorded

MS = 1_000_000
SEEDS = 20
"""Ticks of one survivor follow each other, and survivors of one mission share its scene: one seed says little."""
PAUSE_S = 10.0

CONDITIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "in time": ({}, True),
    "clocks 50 ms apart": ({"skew_ns": {"uav*-camera": 50 * MS}}, False),
    "the same, translated": ({"skew_ns": {"uav*-camera": 50 * MS}}, True),
    "3 % of packets lost": ({"loss": 0.03}, True),
}
"""Changes to the settings, and whether clocks are translated."""


def declared(spark: SparkSession, rows: Iterable[dict[str, Any]], table: Table) -> DataFrame:
    """Dictionaries as rows of a table."""
    return spark.createDataFrame([tuple(row[name] for name in table.columns) for row in rows], table.schema)


def store(lake: Lake, mission: Mission, run: str = "") -> dict[str, int]:
    """A mission into the lake: messages as if recorded, clocks and sensors as if measured, and the truth."""
    parts = {
        MESSAGES: bronze_rows(mission), CLOCKS: clock_rows(mission), SENSORS: mission.calibration(),
        TRUTH: truth_rows(mission),
    }  # fmt: skip
    return {
        table.name: lake.replace(table, declared(lake.spark, rows, table), run).rows for table, rows in parts.items()
    }


def trial(spark: SparkSession, settings: Settings, translated: bool = True) -> tuple[Score, dict[str, int]]:
    """How well the survivors of a made-up recording are found, and what the ticks counted. Needs no lake."""
    mission = Mission(settings)
    clocks = clock_rows(mission) if translated else []
    return judged(spark, mission, declared(spark, bronze_rows(mission), MESSAGES), clocks)


def recorded_trial(
    spark: SparkSession, recording: str | os.PathLike[str], mission: Mission, clocks: Iterable[dict[str, Any]] = ()
) -> tuple[Score, dict[str, int]]:
    """The same of what a recorder wrote. `clocks` are rows of that table; none leaves times as they were stamped."""
    return judged(spark, mission, ingest(recorded(spark, recording)), clocks)


def judged(
    spark: SparkSession, mission: Mission, received: DataFrame, clocks: Iterable[dict[str, Any]]
) -> tuple[Score, dict[str, int]]:
    """Received messages fused, and only then held against the mission's truth."""
    messages, known = received.persist(), declared(spark, clocks, CLOCKS)
    ticks = fuse(messages, known, declared(spark, mission.calibration(), SENSORS)).persist()
    try:
        counts = tally(ticks).first()
        assert counts is not None
        found = score(matched(survivors(ticks), declared(spark, truth_rows(mission), TRUTH)))
        return found, {name: int(number) for name, number in counts.asDict().items()}
    finally:
        ticks.unpersist()
        messages.unpersist()


def seeded(spark: SparkSession, settings: Settings, seeds: int, translated: bool = True) -> Score:
    """That many missions, each with another seed, judged together: recall by survivor, with its 95 % interval.

    The missions follow each other in time, with a pause in which nothing is seen, so one job fuses all of them.
    """
    apart_ns = round((settings.seconds + PAUSE_S) * 1e9)
    missions = [
        Mission(replace(settings, seed=seed, begin_ns=settings.begin_ns + seed * apart_ns))
        for seed in range(1, seeds + 1)
    ]
    messages = reduce(DataFrame.unionByName, (declared(spark, bronze_rows(one), MESSAGES) for one in missions))
    # A survivor of one mission is nobody of another.
    truth = [
        {**row, "survivor": f"{at}/{row['survivor']}"} for at, one in enumerate(missions) for row in truth_rows(one)
    ]
    clocks = declared(spark, clock_rows(missions[0]) if translated else [], CLOCKS)
    sensors = declared(spark, missions[0].calibration(), SENSORS)
    matches = matched(survivors(fuse(messages, clocks, sensors)), declared(spark, truth, TRUTH)).persist()
    try:
        each = [row.found / row.ticks for row in by_survivor(matches).orderBy("survivor").collect()]
        mean, low, high = interval(each)
        return replace(score(matches), mean=mean, low=low, high=high, survivors=len(each))
    finally:
        matches.unpersist()


def compare(
    spark: SparkSession, settings: Settings, seeds: int = SEEDS, say: Callable[[str], None] = lambda text: None
) -> dict[str, Score]:
    """All conditions, one after the other, each over so many missions."""
    scores = {}
    for name, (changes, translated) in CONDITIONS.items():
        say(name)
        scores[name] = seeded(spark, replace(settings, **changes), seeds, translated)
    return scores

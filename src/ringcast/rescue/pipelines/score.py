"""Detections held against the truth, where it is known: recall, precision and how far off.

A detection and a survivor of the same tick belong together when each is the other's nearest and they are within
`near_m`. Recall is over survivors that enough sensors had in view, on both sides of the fraction; one found where they
had not is no false alarm, and counted apart (`unseen`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

NEAR_M = 1.0


@dataclass(frozen=True)
class Score:
    found: int
    missed: int
    false_alarms: int
    error_m: float
    unseen: int = 0
    low: float | None = None
    high: float | None = None
    """The ends of the 95 % interval of a survivor's recall, where several missions were judged."""
    survivors: int = 0
    """Of all missions, that were in view at all."""
    mean: float | None = None
    """A survivor's recall, each survivor counted once."""

    @property
    def recall(self) -> float:
        """By survivor where several missions were judged; else over all ticks."""
        if self.mean is not None:
            return self.mean
        return self.found / max(1, self.found + self.missed)

    @property
    def precision(self) -> float:
        right = self.found + self.unseen
        return right / max(1, right + self.false_alarms)


def matched(detections: DataFrame, truth: DataFrame, near_m: float = NEAR_M, tick_ns: int = 100_000_000) -> DataFrame:
    """Every detection and every survivor of every tick, those that belong together in one row: `survivor`, `x`, `y`,
    `z` and `found_x`, `found_y`, `found_z`, `error_m`."""
    tick = F.call_function("div", F.col("event_ns"), F.lit(tick_ns))
    found = detections.select(
        tick.alias("tick"), *(F.col(axis).alias(f"found_{axis}") for axis in "xyz"), "confidence",
        F.monotonically_increasing_id().alias("_d"),
    )  # fmt: skip
    known = truth.withColumns({"tick": tick, "_t": F.monotonically_increasing_id()}).drop("event_ns")
    found, known = found.localCheckpoint(), known.localCheckpoint()  # ids that a second computation would give anew
    squares = [(F.col(axis) - F.col(f"found_{axis}")) ** 2 for axis in "xyz"]
    apart = F.sqrt(squares[0] + squares[1] + squares[2])
    near = known.join(found, "tick").withColumn("error_m", apart).where(F.col("error_m") <= near_m)
    mutual = (
        near.withColumn("_a", F.row_number().over(Window.partitionBy("_t").orderBy("error_m", "_d")))
        .withColumn("_b", F.row_number().over(Window.partitionBy("_d").orderBy("error_m", "_t")))
        .where("_a = 1 and _b = 1")
        .select("_t", "_d", "error_m")
    )
    return known.join(mutual, "_t", "left").join(found.drop("tick"), "_d", "full").drop("_t", "_d")


def score(matches: DataFrame, uavs: int = 1, cameras: int = 2) -> Score:
    """Counts over `matched`."""
    alone = F.col("error_m").isNull()
    visible = (F.col("uavs") >= uavs) & (F.col("cameras") >= cameras)
    row = matches.agg(
        F.count(F.when(~alone & visible, 1)).alias("found"),
        F.count(F.when(~alone & ~visible, 1)).alias("unseen"),
        F.count(F.when(alone & F.col("survivor").isNotNull() & visible, 1)).alias("missed"),
        F.count(F.when(alone & F.col("survivor").isNull(), 1)).alias("false"),
        F.avg("error_m").alias("error"),
    ).first()
    assert row is not None
    return Score(row["found"], row["missed"], row["false"], row["error"] or 0.0, row["unseen"])


def by_survivor(matches: DataFrame, uavs: int = 1, cameras: int = 2) -> DataFrame:
    """One row per `survivor`: in how many ticks it was in view (`ticks`), and in how many of these it was `found`.

    Ticks of one survivor follow each other and are no independent trials; survivors are.
    """
    seen = matches.where((F.col("uavs") >= uavs) & (F.col("cameras") >= cameras))
    return seen.groupBy("survivor").agg(F.count("*").alias("ticks"), F.count("error_m").alias("found"))


def interval(recalls: Sequence[float], seed: int = 1, draws: int = 2000) -> tuple[float, float, float]:
    """Mean, and the ends between which 95 % of the means lie when survivors are drawn anew (bootstrap)."""
    values = np.asarray(recalls, dtype=np.float64)
    means = np.random.default_rng(seed).choice(values, (draws, len(values))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(values.mean()), float(low), float(high)

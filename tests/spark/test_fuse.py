"""Fusion finds who is there and nobody else, when streams are in time; what is out of time is missed, and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bronze_rows import frame
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.rescue import Mission, Settings, bronze_rows, clock_rows, truth_rows
from ringcast.rescue.pipelines.dispatch import dispatch
from ringcast.rescue.pipelines.fire import fire
from ringcast.rescue.pipelines.fuse import fuse, survivors, tally
from ringcast.rescue.pipelines.score import Score, by_survivor, interval, matched, score
from ringcast.rescue.tables import SENSORS
from ringcast.rescue.trials import seeded, trial
from ringcast.spark.pipelines.pairing import pair, pair_both
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import CLOCKS

MS = 1_000_000
SKEWED = {"uav0-camera": 50 * MS, "uav1-camera": 50 * MS}


def table(spark: SparkSession, rows: list[dict[str, Any]], declared: Table) -> DataFrame:
    return spark.createDataFrame([tuple(row[c] for c in declared.columns) for row in rows], declared.schema)


def received(spark: SparkSession, mission: Mission, translated: bool = True) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Messages, clocks and sensors."""
    clocks = table(spark, clock_rows(mission) if translated else [], CLOCKS)
    return frame(spark, bronze_rows(mission)).cache(), clocks, table(spark, mission.calibration(), SENSORS)


def result(spark: SparkSession, translated: bool = True, **settings: Any) -> tuple[Score, dict[str, int]]:
    mission = Mission(Settings(seconds=2.0, **settings))
    ticks = fuse(*received(spark, mission, translated)).cache()
    truth = spark.createDataFrame(truth_rows(mission))
    counts = tally(ticks).first()
    assert counts is not None
    return score(matched(survivors(ticks), truth)), counts.asDict()


def test_in_time_and_without_loss_everybody_is_found(spark: SparkSession) -> None:
    found, counts = result(spark, duplicates=0.1)
    assert found.found > 80
    assert found.recall >= 0.95
    assert found.precision >= 0.95
    assert found.error_m < 0.2
    assert counts.pop("unmatched_video") > 0
    assert counts.pop("duplicated") > 0
    nothing = dict.fromkeys(("without_pose", "without_gps", "without_video", "lost", "rejected"), 0)
    assert counts == {"frames": 40, "ticks": 20, **nothing}


def test_clocks_apart_cause_misses_and_false_alarms_and_translation_mends_it(spark: SparkSession) -> None:
    apart, counts = result(spark, translated=False, skew_ns=SKEWED)
    assert apart.recall < 0.9
    assert apart.false_alarms > 0
    assert counts["without_gps"] > 0
    mended, _ = result(spark, translated=True, skew_ns=SKEWED)
    assert mended.recall >= 0.95
    assert mended.precision >= 0.95


def test_lost_packets_cause_misses(spark: SparkSession) -> None:
    found, counts = result(spark, loss=0.03)
    assert found.recall < 0.92
    assert counts["frames"] < 40, "a frame is many packets"


def test_the_join_equals_brute_force(spark: SparkSession) -> None:
    left = spark.range(300).selectExpr("id as l", "id * 7919 % 5003 * 300 as us", "cast(id % 3 as string) as rig")
    right = spark.range(300).selectExpr("id as r", "id * 104729 % 4999 * 300 as us", "cast(id % 3 as string) as rig")
    timed: Callable[[DataFrame], DataFrame] = lambda rows: rows.withColumns(  # noqa: E731
        {"event_time": F.timestamp_micros("us"), "event_ns": F.col("us") * 1000}
    ).drop("us")
    found = pair(timed(left), timed(right), ["rig"], 20_000, "other").collect()
    kept = pair_both(timed(left), timed(right), ["rig"], 20_000, "other").collect()
    ours, theirs = left.collect(), right.collect()
    brute = [(a.l, b.r) for a in ours for b in theirs if a.rig == b.rig and abs(a.us - b.us) <= 20_000]
    assert sorted((row.l, row.other_r) for row in found if row.other_r is not None) == sorted(brute)
    alone = {row.l for row in ours} - {a for a, _ in brute}
    assert {row.l for row in found if row.other_r is None} == alone
    assert alone
    assert brute
    assert sorted((row.l, row.other_r) for row in kept if None not in (row.l, row.other_r)) == sorted(brute)
    assert {row.l for row in kept} - {None} == {row.l for row in ours}
    unmet = {row.r: row for row in theirs if row.r not in {b for _, b in brute}}
    lonely = [row for row in kept if row.l is None]
    assert sorted(row.other_r for row in lonely) == sorted(unmet), "each once"
    assert all((row.rig, row.other_ns) == (unmet[row.other_r].rig, unmet[row.other_r].us * 1000) for row in lonely)
    assert all(round(row.event_time.timestamp() * 1e6) == unmet[row.other_r].us for row in lonely)


def test_recall_is_over_those_in_view_and_an_unseen_find_is_no_false_alarm(spark: SparkSession) -> None:
    at = 50 * MS
    truth = spark.createDataFrame(
        [(at, "seen", 0.0, 0.0, 0.0, 1, 2), (at, "missed", 9.0, 0.0, 0.0, 1, 2), (at, "hidden", 5.0, 0.0, 0.0, 1, 0),
         (at + 100 * MS, "seen", 0.0, 0.0, 0.0, 1, 2)],
        "event_ns long, survivor string, x double, y double, z double, uavs int, cameras int",
    )  # fmt: skip
    found = spark.createDataFrame(
        [(at, 0.1, 0.0, 0.0, 0.9), (at, 5.1, 0.0, 0.0, 0.9), (at, -9.0, 0.0, 0.0, 0.9)],
        "event_ns long, x double, y double, z double, confidence double",
    )
    matches = matched(found, truth)
    one = score(matches)
    assert (one.found, one.missed, one.unseen, one.false_alarms) == (1, 2, 1, 1)
    assert (one.recall, one.precision) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert {row.survivor: (row.found, row.ticks) for row in by_survivor(matches).collect()} == {
        "seen": (1, 2), "missed": (0, 1),
    }  # fmt: skip


def test_the_interval_is_of_survivors() -> None:
    mean, low, high = interval([0.0] * 5 + [1.0] * 5)
    assert (mean, low, high) == (0.5, pytest.approx(0.2, abs=0.101), pytest.approx(0.8, abs=0.101))
    assert interval([1.0] * 10) == (1.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> tuple[Mission, DataFrame, DataFrame, DataFrame]:
    """One UAV and one camera for a second: the mission, its messages, clocks and sensors."""
    mission = Mission(Settings(seconds=1.0, cameras=1, uavs=1))
    messages, clocks, sensors = received(spark, mission)
    return mission, messages.coalesce(1).cache(), clocks, sensors


Small = tuple[Mission, DataFrame, DataFrame, DataFrame]


def test_video_without_infrared_is_counted(small: Small) -> None:
    mission, messages, clocks, sensors = small
    counts = tally(fuse(messages, clocks, sensors)).first()
    assert counts is not None
    sent = list(mission.messages())
    warm, bright = ([m.at_ns for m in sent if m.tag.endswith(kind)] for kind in ("/ir", "/video"))
    alone = [at for at in bright if all(abs(at - other) > 20 * MS for other in warm)]
    assert counts["unmatched_video"] == len(alone) == 15


def test_a_frame_without_a_pose_is_nowhere_and_matches_no_video(small: Small) -> None:
    _, messages, clocks, sensors = small
    counts = tally(fuse(messages.where("tag not like '%/pose'"), clocks, sensors)).first()
    assert counts is not None
    expected = {"frames": 10, "without_pose": 10, "without_gps": 0, "without_video": 10, "unmatched_video": 25}
    assert {name: counts[name] for name in expected} == expected


def test_what_cannot_be_read_and_what_is_from_the_future_is_counted(small: Small) -> None:
    _, messages, clocks, sensors = small
    year = 365 * 86_400_000 * MS
    broken = messages.withColumns(
        {
            "payload": F.expr("if(tag like '%/gps' and seq = 3, cast('{' as binary), payload)"),
            "event_ns": F.expr(f"event_ns + if(tag like '%/pose' and seq = 7, {year}L, 0L)"),
        }
    )
    counts = tally(fuse(broken, clocks, sensors)).first()
    assert counts is not None
    assert (counts["rejected"], counts["frames"], counts["without_gps"]) == (2, 10, 1)


def test_fire_reads_the_same_infrared(small: Small) -> None:
    mission, messages, clocks, sensors = small
    found = fire(messages, clocks, sensors).collect()
    truth = next(thing for thing in mission.world.things if thing.kind == "fire")
    assert len(found) > 5
    for row in found:
        assert (row.x, row.y) == pytest.approx(tuple(truth.home[:2]), abs=1.5)
        assert row.excess_k > 60


def test_several_missions_are_judged_by_survivor(spark: SparkSession) -> None:
    settings = Settings(seconds=0.5, uavs=2, cameras=3)
    found = seeded(spark, settings, 2)
    assert 6 < found.survivors <= 12
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low <= found.recall <= found.high <= 1
    singly = [trial(spark, replace(settings, seed=seed))[0] for seed in (1, 2)]
    assert (found.found, found.missed) == (sum(one.found for one in singly), sum(one.missed for one in singly))


def test_people_are_followed_from_tick_to_tick(spark: SparkSession) -> None:
    rows = []
    for tick in range(20):
        for x in (0.0, 10.0):
            if (tick, x) != (7, 10.0):
                rows.append((tick * 100 * MS, x + 0.1 * tick, 1.0, 0.9, 0.8, 11.0))
    rows.append((500 * MS, -9.0, -9.0, 0.9, 0.5, 9.0))
    found = dispatch(spark.createDataFrame(rows, "event_ns long, x double, y double, z double, confidence double, "
                                                 "warmth_k double")).orderBy("person").collect()  # fmt: skip
    assert [(row.person, row.ticks) for row in found] == [("P1", 20), ("P2", 19)], "seen once is nobody to send for"
    assert (found[0].x, found[1].x) == (pytest.approx(1.4), pytest.approx(11.4)), "the middle of the last second"
    assert found[0].event_time.microsecond == 900_000

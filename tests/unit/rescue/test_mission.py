"""A mission is the same for the same seed, and what its network and clocks do to it is what the settings say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringcast.codec import find
from ringcast.rescue import Mission, Settings, bronze_rows, clock_rows, truth_rows
from ringcast.rescue.world import Wall

SMALL = Settings(seconds=0.4, uavs=1, cameras=2)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not() -> None:
    one, two, other = (list(bronze_rows(Mission(replace(SMALL, seed=seed)))) for seed in (1, 1, 2))
    assert one == two
    assert [row["payload"] for row in one] != [row["payload"] for row in other]
    assert {row["tag"] for row in one} == {
        "uav/0/ir", "uav/0/pose", "uav/0/gps", "street/0/video", "street/1/video"
    }  # fmt: skip


def test_lost_messages_leave_a_gap_that_the_next_one_counts() -> None:
    rows = list(bronze_rows(Mission(replace(SMALL, seconds=2.0, loss=0.05))))
    for tag in {row["tag"] for row in rows}:
        own = [row for row in rows if row["tag"] == tag]
        own.sort(key=lambda row: row["seq"])
        at = -1
        for row in own:
            assert row["lost"] == row["seq"] - at - 1
            at = row["seq"]
    video = [row for row in rows if row["tag"] == "street/0/video"]
    pose = [row for row in rows if row["tag"] == "uav/0/pose"]
    assert len(video) / 50 < len(pose) / 100 < 1.0, "seven packets are lost more easily than one"


def test_copies_are_received_later_and_are_otherwise_equal() -> None:
    rows = list(bronze_rows(Mission(replace(SMALL, duplicates=0.5))))
    seen: dict[tuple[str, int], dict[str, object]] = {}
    copies = 0
    for row in rows:
        first = seen.setdefault((row["tag"], row["seq"]), row)
        if first is not row:
            copies += 1
            assert row["received_ns"] > first["received_ns"]  # type: ignore[operator]
            assert row["payload"] == first["payload"]
    assert copies > 5


def test_clocks_that_are_ahead_show_in_events_and_in_the_table_of_clocks() -> None:
    mission = Mission(replace(SMALL, skew_ns={"uav*-camera": 50_000_000}))
    skewed = {row["tag"]: row["event_ns"] for row in reversed(list(bronze_rows(mission)))}
    true = {row["tag"]: row["event_ns"] for row in reversed(list(bronze_rows(Mission(SMALL))))}
    assert {tag for tag in true if skewed[tag] != true[tag]} == {"uav/0/ir"}
    assert skewed["uav/0/ir"] - true["uav/0/ir"] == 50_000_000
    offsets = {row["node"]: row["offset_ns"] for row in clock_rows(mission)}
    assert offsets == {"uav0": 0, "uav0-camera": 50_000_000, "street0": 0, "street1": 0}


def test_frames_show_what_is_there() -> None:
    mission = Mission(SMALL)
    rows = list(bronze_rows(mission))
    decode = find("numpy").bind(None).decode
    assert decode is not None
    frame = decode(next(row["payload"] for row in rows if row["tag"] == "uav/0/ir"))
    assert (frame.dtype, frame.shape) == (np.uint16, (72, 96))
    assert frame.max() > 29000 + 6000, "there is a fire"
    truth = truth_rows(mission)
    assert len(truth) == 4 * mission.settings.survivors
    assert max(row["uavs"] for row in truth) == 1
    assert max(row["cameras"] for row in truth) == 2


def test_walls_hide_what_is_behind_them_and_nothing_else() -> None:
    wall = Wall(np.array([0.0, 0.0, 0.0]), np.array([2.0, 2.0, 5.0]))
    points = np.array([[5.0, 1.0, 1.0], [5.0, 9.0, 1.0], [-2.0, 1.0, 1.0]])
    assert wall.hides(np.array([-5.0, 1.0, 1.0]), points).tolist() == [True, False, False]
    assert wall.hides(np.array([1.0, 1.0, 30.0]), points).tolist() == [False, False, False]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rates_are_those_asked_for(seed: int) -> None:
    sent = list(Mission(replace(SMALL, seed=seed, seconds=1.0)).messages())
    counts = {tag: sum(m.tag == tag for m in sent) for tag in {m.tag for m in sent}}
    assert counts == {
        "uav/0/ir": 10, "uav/0/pose": 50, "uav/0/gps": 10, "street/0/video": 25, "street/1/video": 25
    }  # fmt: skip
    assert [m.at_ns for m in sent] == sorted(m.at_ns for m in sent)

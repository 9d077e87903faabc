"""Predictions of delays that follow the model exactly."""

from __future__ import annotations

import pytest

from ringcast.lab.placement import prediction
from ringcast.lab.placement.prediction import Calibration, Hop, Point, calibrate, conclude, points, predict
from ringcast.lab.push_pull.network import INTERMEDIATE, PUBLISHER, SIZES, SUBSCRIBER

US = 1e-6
TRUE = Calibration(Hop(4 * US, 1 * US, 0.001 * US), Hop(11 * US, 6 * US, 0.004 * US), Hop(2 * US, 0.5 * US, 0.002 * US))
PLACES = {1: (PUBLISHER, SUBSCRIBER), 2: (PUBLISHER, SUBSCRIBER, INTERMEDIATE), 3: (PUBLISHER,), 4: (PUBLISHER,)}
SEEN = {
    Point(experiment, place, size): predict(TRUE, Point(experiment, place, size))
    for experiment, places in PLACES.items()
    for place in places
    for size in SIZES
}


def test_calibration_finds_what_was_put_in():
    found = calibrate(SEEN)
    for hop, true in zip(found, TRUE, strict=True):
        assert hop == pytest.approx(true, rel=1e-6)


def test_a_round_trip_by_hand():
    # 64 bytes through the proxy on c: two transfers there, one back, and both ends.
    transfer, ends = 11 * US + 64 * 0.004 * US, 4 * US + 64 * 0.001 * US
    assert predict(TRUE, Point(2, INTERMEDIATE, 64)) == pytest.approx(3 * transfer + 2 * ends)
    assert predict(TRUE, Point(2, PUBLISHER, 64)) == predict(TRUE, Point(2, SUBSCRIBER, 64))
    router = 2 * US + 64 * 0.002 * US
    assert predict(TRUE, Point(4, PUBLISHER, 64)) == pytest.approx(2 * transfer + 4 * router + 2 * ends)


def test_predictions_of_what_follows_the_model_are_right():
    findings = conclude(SEEN, "made up")
    rows = {row.name: row for row in findings.rows}
    assert rows["predicted round trips: median of what series are off by"].value == pytest.approx(0, abs=1e-6)
    one = rows["predicted: experiment 4, proxy at publisher, 1024 B: round trip"]
    assert one.value == one.reference
    assert "predicted: figure 10, two routers, 64 B: added to a round trip" in rows
    assert len(findings.pictures) == 3


def test_rows_of_push_pull_are_found_by_name():
    rows = [
        {"name": "experiment 2, one hop, proxy at publisher, 64 B: mean of 100 round trips", "value": 31.0},
        {"name": "experiment 1, same node, proxy at intermediate node, 1 B: mean of 100 round trips", "value": 9.0},
        {"name": "something else", "value": 1.0},
        {"name": "experiment 2, one hop, proxy at publisher, 1 B: mean of 100 round trips", "value": None},
    ]
    assert points(rows) == pytest.approx({Point(2, PUBLISHER, 64): 31e-6, Point(1, INTERMEDIATE, 1): 9e-6})


def test_what_is_missing_is_said():
    assert "no complete" in conclude({}, "nothing").notes[0]


def test_noise_below_nothing_is_left_out():
    seen = dict(SEEN)
    for size in SIZES:
        seen[Point(3, PUBLISHER, size)] = seen[Point(2, PUBLISHER, size)] - 1e-6
    assert prediction.calibrate(seen).router == Hop(0.0, 0.0, 0.0)

"""Pixels and rays are each other's inverse, spots are where they were drawn, and rays meet where the thing is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.rescue.vision.optics import Lens, turned
from ringcast.rescue.vision.places import Gate, confidence, group, meet
from ringcast.rescue.vision.spots import _highest_near, _median, find_spots
from ringcast.rescue.vision.tick import fix_tick, square

LENS = Lens(96, 72, np.radians(80.0))
ANGLE = st.floats(-0.3, 0.3)


@given(st.floats(-3, 3), ANGLE, ANGLE, st.floats(-8, 8), st.floats(-8, 8))
def test_the_ray_through_a_points_pixel_leads_to_the_point(
    yaw: float, pitch: float, roll: float, x: float, y: float
) -> None:
    place, turn, point = np.array([1.0, 2.0, 30.0]), turned(yaw, pitch, roll), np.array([[x, y, 0.5]])
    pixels, ahead = LENS.pixels(point, place, turn)
    assert ahead[0] > 0
    ray = LENS.rays(pixels, turn)[0]
    along = float(ray @ (point[0] - place))
    assert place + along * ray == pytest.approx(point[0], abs=1e-6)


def test_level_and_straight_down() -> None:
    assert turned(0, 0, 0)[:, 2] == pytest.approx([0, 0, -1])
    assert turned(0, np.pi / 2, 0)[:, 2] == pytest.approx([0, 1, 0])
    assert turned(np.pi / 2, np.pi / 2, 0)[:, 2] == pytest.approx([-1, 0, 0])


def picture(*spots: tuple[float, float, float], noise: float = 10.0) -> np.ndarray:
    random = np.random.default_rng(3)
    v, u = np.mgrid[:72, :96]
    image = 29000 + 0.8 * u + 0.5 * v + random.normal(0, noise, (72, 96))
    for at_u, at_v, height in spots:
        image += height * np.exp(-0.5 * ((u - at_u) ** 2 + (v - at_v) ** 2) / 0.85**2)
    return image.astype(np.uint16)


def test_spots_are_found_where_they_are_and_nowhere_else() -> None:
    drawn = [(20.3, 30.7, 1000.0), (60.0, 10.5, 1200.0), (27.1, 33.2, 900.0)]
    found = find_spots(picture(*drawn), 300)
    assert len(found.pixels) == 3
    for u, v, height in drawn:
        nearest = np.argmin(np.linalg.norm(found.pixels - [u, v], axis=1))
        assert found.pixels[nearest] == pytest.approx([u, v], abs=0.25)
        assert found.height[nearest] == pytest.approx(height, rel=0.3)
    assert len(find_spots(picture(), 300).pixels) == 0
    assert len(find_spots(picture((20, 20, 200.0)), 300).pixels) == 0, "too faint"


def test_rays_meet_between_and_misses_are_measured() -> None:
    down = np.array([[0.0, 0.0, -1.0]])
    level = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    met = meet(np.array([5.0, 0.3, 30.0]), down, np.array([0.0, 0.0, 2.0]), level, Gate())
    assert (met.i.tolist(), met.j.tolist()) == ([0], [0])
    assert met.places[0] == pytest.approx([5.0, 0.15, 2.0])
    assert met.miss[0] == pytest.approx(0.3)
    high = meet(np.array([5.0, 0.3, 30.0]), down, np.array([0.0, 0.0, 9.0]), level, Gate())
    assert len(high.i) == 0, "nobody is nine metres up"
    behind = meet(np.array([-5.0, 0.3, 30.0]), down, np.array([0.0, 0.0, 2.0]), level, Gate())
    assert len(behind.i) == 0


def test_a_spot_belongs_to_one_survivor_and_one_camera_is_not_enough() -> None:
    places = np.array([[0.0, 0, 1], [0.1, 0, 1], [0.0, 0.1, 1], [5.0, 0, 1], [5.1, 0, 1], [9.0, 0, 1]])
    uav = ["a0", "a0", "b0", "a1", "a1", "a2"]
    camera = ["c0", "d0", "c0", "c0", "d1", "c9"]
    found = group(places, uav, camera, ["c", "d", "c", "c", "d", "c"], Gate())
    assert [one.members for one in found] == [[0, 1, 2]], "the second group's camera spot is the first one's"
    two = group(places, uav, ["c0", "d0", "c0", "c1", "d1", "c9"], ["c", "d", "c", "c", "d", "c"], Gate())
    assert [one.members for one in two] == [[0, 1, 2], [3, 4]]


def test_more_eyes_and_less_spread_make_it_surer() -> None:
    gate = Gate()
    assert confidence(1, 2, 0.1, gate) < confidence(2, 2, 0.1, gate) < confidence(2, 4, 0.1, gate) <= 1
    assert confidence(2, 2, 0.5, gate) < confidence(2, 2, 0.1, gate)


def test_a_frame_without_pose_or_video_is_counted_in_its_home_cell_only() -> None:
    nothing = dict.fromkeys(
        ["pose_ns", "pose_yaw", "gps_ns", "gps_x", "video_tag", "video_seq", "video_ns", "video_camera", "video_spots"]
    )
    row = {"tag": "t", "seq": 0, "event_ns": 5, "home": True, "spots": [], "lens": None, **nothing}
    away = {**row, "seq": 1, "home": False}
    lonely = {**row, "tag": None, "seq": None, "home": None, "video_tag": "street/0/video", "video_seq": 7}
    lonely["video_home"] = True
    elsewhere = {**lonely, "video_seq": 8, "video_home": False}
    found = fix_tick([row, away, lonely, elsewhere], Gate(), square("0:0", 400.0))
    expected = {"frames": 1, "without_pose": 1, "without_gps": 1, "without_video": 1, "unmatched_video": 1}
    assert found == {**expected, "survivors": []}


def test_cells_lie_around_the_origin() -> None:
    assert square("0:0", 400.0) == (-200.0, -200.0, 400.0)
    assert square("-1:2", 10.0) == (-15.0, 15.0, 10.0)
    assert square("nowhere", 10.0) is None


@pytest.mark.parametrize("shape", [(6, 9), (7, 8), (5, 5)])
def test_medians_and_highest_neighbours_are_those_of_numpy(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(3)
    for image in (random.integers(0, 255, shape).astype(np.uint8), random.normal(size=shape)):
        for axis in (0, 1):
            assert np.array_equal(_median(image, axis), np.median(image, axis=axis, keepdims=True))
    image = random.normal(size=shape)
    highest = _highest_near(image)
    for v in range(2, shape[0] - 2):
        for u in range(2, shape[1] - 2):
            assert highest[v, u] == image[v - 2 : v + 3, u - 2 : u + 3].max()

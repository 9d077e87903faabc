"""One tick's frames become places. Pure: rows in, a row out; must not know Spark or Arrow.

A frame was joined with every pose and position within the bound; the nearest of each is taken and carried on to the
frame's own instant by its rates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringcast.rescue.vision.optics import Floats, Lens, turned
from ringcast.rescue.vision.places import Gate, confidence, group, meet
from ringcast.rescue.vision.spots import FIRE_CENTIKELVIN

Row = dict[str, Any]


Square = tuple[float, float, float]
"""A piece of ground: west and south edge, and length of a side."""


def square(cell: str, side: float) -> Square | None:
    """The cell called `i:j`; None for a name that is no cell's."""
    i, colon, j = cell.partition(":")
    return ((int(i) - 0.5) * side, (int(j) - 0.5) * side, side) if colon else None


def fix_tick(rows: list[Row], gate: Gate, inside: Square | None) -> Row:
    """The rows of a tick, one per pair of frames, to counts and survivors (`pipelines.fixing` has the columns).

    A video frame without a partner is a row without a tag.
    """
    lonely = {(row["video_tag"], row["video_seq"]) for row in rows if row["tag"] is None and row["video_home"]}
    rows = [row for row in rows if row["tag"] is not None]
    frames = {(row["tag"], row["seq"]): row for row in rows}
    for row in rows:
        best = frames[row["tag"], row["seq"]]
        for kind in ("pose", "gps"):
            if _distance(row, kind) < _distance(best, kind):
                best = frames[row["tag"], row["seq"]] = {**best, **{k: v for k, v in row.items() if k.startswith(kind)}}
    videos = {(row["tag"], row["seq"], row["video_tag"], row["video_seq"]): row for row in rows if row["video_tag"]}
    paired = {key[:2] for key in videos}
    places: list[Floats] = []
    uav_spots, camera_spots, cameras, uavs, warmth = [], [], [], [], []
    eyes = {key: eye for key, frame in frames.items() if (eye := _uav_rays(frame)) is not None}
    for (tag, seq, video_tag, video_seq), row in sorted(videos.items()):
        eye = eyes.get((tag, seq))
        if eye is None or not row["video_spots"]:
            continue
        here, ours, heights = eye
        there, theirs = _camera_rays(row["video_camera"], row["video_spots"])
        met = meet(here, ours, there, theirs, gate)
        places.extend(met.places)
        uav_spots += [f"{tag} {seq} {i}" for i in met.i]
        camera_spots += [f"{video_tag} {video_seq} {j}" for j in met.j]
        cameras += [video_tag] * len(met.i)
        uavs += [tag] * len(met.i)
        warmth += [heights[i] / 100 for i in met.i]
    found = []
    for one in group(np.array(places).reshape(-1, 3), uav_spots, camera_spots, cameras, gate) if places else []:
        who = sorted({uavs[m] for m in one.members})
        where = sorted({cameras[m] for m in one.members})
        x, y, z = map(float, one.place)
        if inside is None or not (0 <= x - inside[0] < inside[2] and 0 <= y - inside[1] < inside[2]):
            continue
        found.append(
            {
                "x": x, "y": y, "z": z, "spread_m": one.spread,
                "confidence": confidence(len(who), len(where), one.spread, gate),
                "warmth_k": float(np.median([warmth[m] for m in one.members])), "sightings": len(one.members),
                "uavs": who, "cameras": where,
            }
        )  # fmt: skip
    own = {key: frame for key, frame in frames.items() if frame["home"]}
    return {
        "frames": len(own),
        "without_pose": sum(frame["pose_ns"] is None for frame in own.values()),
        "without_gps": sum(frame["gps_ns"] is None for frame in own.values()),
        "without_video": len(own.keys() - paired),
        "unmatched_video": len(lonely),
        "survivors": found,
    }


def _distance(row: Row, kind: str) -> float:
    at = row[f"{kind}_ns"]
    return float("inf") if at is None else abs(at - row["event_ns"])


def uav_eye(frame: Row) -> tuple[Floats, Floats] | None:
    """Where a UAV's camera was at its frame's instant, and how it was turned; None when that is not known."""
    if frame["pose_ns"] is None or frame["gps_ns"] is None:
        return None
    since_pose = (frame["event_ns"] - frame["pose_ns"]) / 1e9
    since_gps = (frame["event_ns"] - frame["gps_ns"]) / 1e9
    turn = turned(*(frame[f"pose_{n}"] + since_pose * frame[f"pose_{n}_rate"] for n in ("yaw", "pitch", "roll")))
    return np.array([frame[f"gps_{n}"] + since_gps * frame[f"gps_v{n}"] for n in "xyz"]), turn


def _uav_rays(frame: Row) -> tuple[Floats, Floats, list[float]] | None:
    eye = uav_eye(frame)
    spots = [spot for spot in frame["spots"] if spot["height"] < FIRE_CENTIKELVIN]
    if eye is None or not spots:
        return None
    lens = Lens(**frame["lens"])
    return eye[0], lens.rays(_pixels(spots), eye[1]), [spot["height"] for spot in spots]


def _camera_rays(camera: Row, spots: list[Row]) -> tuple[Floats, Floats]:
    lens = Lens(camera["width"], camera["height"], camera["field_of_view"])
    turn = turned(camera["yaw"], camera["pitch"], camera["roll"])
    return np.array([camera["x"], camera["y"], camera["z"]]), lens.rays(_pixels(spots), turn)


def _pixels(spots: list[Row]) -> Floats:
    return np.array([(spot["u"], spot["v"]) for spot in spots], dtype=np.float64)

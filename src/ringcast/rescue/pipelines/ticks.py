"""What was seen around one tick becomes survivors. Rows in, a row out; knows no session.

A UAV's frame is paired with its own pose and position, then with the frames of all cameras that look into the same cell
of the ground within the bound. Frames of a tick that were paired give rays, rays that meet give places (`vision`); a
cell keeps the survivors that are inside it, so that no border counts one twice. A tick is given what lies beyond its
ends, too, as far as its own frames look; only what is inside is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any

from pyspark.sql.types import ArrayType

from ringcast.rescue.pipelines.looking import KINDS
from ringcast.rescue.vision.places import Gate
from ringcast.rescue.vision.tick import fix_tick, square
from ringcast.spark.pipelines.times import AHEAD_NS
from ringcast.spark.tables.bronze import KEY
from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRINGS, optional

Row = dict[str, Any]

COUNTS = (
    "frames", "without_pose", "without_gps", "without_video", "unmatched_video", "duplicated", "lost", "rejected",
)  # fmt: skip
FOUND = optional(**dict.fromkeys(COUNTS, LONG))
FOUND.add(
    "survivors",
    ArrayType(
        optional(x=DOUBLE, y=DOUBLE, z=DOUBLE, spread_m=DOUBLE, confidence=DOUBLE, warmth_k=DOUBLE, sightings=INT,
                 uavs=STRINGS, cameras=STRINGS)
    ),
)  # fmt: skip

_NOWHERE = "nowhere"
_POSE = ("yaw", "pitch", "roll", "yaw_rate", "pitch_rate", "roll_rate")
_GPS = ("x", "y", "z", "vx", "vy", "vz")
_NO_VIDEO: Row = {"video_tag": None, "video_seq": None, "video_ns": None, "video_home": None, "video_spots": None,
                  "video_camera": None}  # fmt: skip


@dataclass(frozen=True)
class Fusion:
    """`bound_us` is how far frames may be apart. A cell is the piece of ground that is fused on its own."""

    bound_us: int = 20_000
    pose_bound_us: int = 20_000
    gps_bound_us: int = 60_000
    tick_us: int = 100_000
    cell_m: float = 400.0
    reach_m: float = 80.0
    gate: Gate = field(default_factory=Gate)

    @property
    def reach_us(self) -> dict[str, int]:
        """How far from a tick a message may be that it needs. A video frame has found no partner only when infrared
        beyond the tick's end, at a place that is known, was none either."""
        return {
            "infrared": self.bound_us, "video": self.bound_us, "pose": self.bound_us + self.pose_bound_us,
            "gps": self.bound_us + self.gps_bound_us,
        }  # fmt: skip


class Tick:
    """`sensors` are rows of that table by their tags."""

    def __init__(self, how: Fusion, sensors: Mapping[str, Row], end_us: int, rows: list[Row]) -> None:
        self._how, self._sensors = how, sensors
        self._begin_us, self._end_us = end_us - how.tick_us, end_us
        self._rows = rows

    def found(self) -> Row:
        """A row of FOUND."""
        counts: Row = dict.fromkeys(COUNTS, 0)
        once = self._once(counts)
        frames = self._frames(once)
        videos = [row for row in once["video"] if self._camera(row["tag"]) is not None]
        cells = {cell for frame in frames for cell in frame["cells"]}
        cells |= {cell for row in videos for cell in self._camera_cells(row["tag"])}
        survivors: list[Row] = []
        for cell in sorted(cells):
            rows = list(self._met(cell, frames, videos))
            if rows:
                fixed = fix_tick(rows, self._how.gate, square(cell, self._how.cell_m))
                survivors += fixed.pop("survivors")
                for name, number in fixed.items():
                    counts[name] += number
        return {**counts, "survivors": survivors}

    def frames(self) -> list[Row]:
        """This tick's infrared frames, each with its spots, lens, pose and position."""
        return [frame for frame in self._frames(self._once(dict.fromkeys(COUNTS, 0))) if frame["own"]]

    def _frames(self, once: dict[str, list[Row]]) -> list[Row]:
        return [frame for row in once["infrared"] if (frame := self._located(row, once)) is not None]

    def _once(self, counts: Row) -> dict[str, list[Row]]:
        """The good messages by kind, the first copy of each, in an order that does not depend on how they came."""
        kept: dict[str, list[Row]] = {kind: [] for kind in KINDS}
        known = set()
        for row in sorted(self._rows, key=lambda row: (*(row[name] for name in KEY), row["received_ns"])):
            key = tuple(row[name] for name in KEY)
            own = self._is_own(row)
            if key in known:
                counts["duplicated"] += own
                continue
            known.add(key)
            counts["lost"] += row["lost"] if own else 0
            if row["error"] is not None:
                counts["rejected"] += own
                continue
            kept[KINDS[row["kind"]]].append(row)
        return kept

    def _is_own(self, row: Row) -> bool:
        # What claims to be from the future is counted where it was received.
        at_us: int = min(row["event_ns"], row["received_ns"] + AHEAD_NS) // 1000
        return self._begin_us <= at_us < self._end_us

    def _located(self, row: Row, once: dict[str, list[Row]]) -> Row | None:
        """An infrared frame with its lens, pose, position and cells; None for a camera that nobody described."""
        lens = self._sensors.get(row["tag"])
        if lens is None:
            return None
        uav = row["tag"].split("/")[1]
        frame: Row = {
            "tag": row["tag"], "seq": row["seq"], "event_ns": row["event_ns"], "own": self._is_own(row),
            "spots": _spots(row), "lens": {name: lens[name] for name in ("width", "height", "field_of_view")},
        }  # fmt: skip
        for kind, names, bound in (("pose", _POSE, self._how.pose_bound_us), ("gps", _GPS, self._how.gps_bound_us)):
            near = _nearest(row, (one for one in once[kind] if one["tag"].split("/")[1] == uav), bound)
            values = near["numbers"] if near is not None else [None] * len(names)
            frame[f"{kind}_ns"] = near["event_ns"] if near is not None else None
            frame |= {f"{kind}_{name}": value for name, value in zip(names, values, strict=True)}
        somewhere = frame["pose_ns"] is not None and frame["gps_ns"] is not None
        where = (frame["gps_x"], frame["gps_y"])
        frame["cells"] = list(self._cells(*where, self._how.reach_m)) if somewhere else [_NOWHERE]
        frame["below"] = next(self._cells(*where, 0.0)) if somewhere else _NOWHERE
        return frame

    def _met(self, cell: str, frames: list[Row], videos: list[Row]) -> Iterator[Row]:
        """Pairs of frames in a cell, and those of this tick that have no partner there."""
        ours = [frame for frame in frames if cell in frame["cells"]]
        theirs = [row for row in videos if cell in self._camera_cells(row["tag"])]
        partners: set[tuple[str, int]] = set()
        for frame in ours:
            near = [row for row in theirs if _apart_us(frame, row) <= self._how.bound_us]
            partners |= {(row["tag"], row["seq"]) for row in near}
            if not frame["own"]:
                continue
            known = {**frame, "home": cell == frame["below"]}
            for row in near:
                yield {**known, **self._video(row, cell)}
            if not near:
                yield {**known, **_NO_VIDEO}
        for row in theirs:
            if self._is_own(row) and (row["tag"], row["seq"]) not in partners:
                yield {"tag": None, **self._video(row, cell)}

    def _video(self, row: Row, cell: str) -> Row:
        camera = self._camera(row["tag"])
        assert camera is not None
        return {
            "video_tag": row["tag"], "video_seq": row["seq"], "video_ns": row["event_ns"], "video_spots": _spots(row),
            "video_camera": camera, "video_home": cell == next(self._cells(camera["x"], camera["y"], 0.0)),
        }  # fmt: skip

    def _camera(self, tag: str) -> Row | None:
        found = self._sensors.get(tag)
        return found if found is not None and found["x"] is not None else None

    def _camera_cells(self, tag: str) -> list[str]:
        camera = self._camera(tag)
        return [] if camera is None else list(self._cells(camera["x"], camera["y"], self._how.reach_m))

    def _cells(self, x: float, y: float, reach_m: float) -> Iterator[str]:
        """Names of the cells within reach. The first one's middle is the origin, where most missions are."""

        def span(along: float) -> range:
            first, last = (floor((along + way * reach_m) / self._how.cell_m + 0.5) for way in (-1, 1))
            return range(first, last + 1)

        for i in span(x):
            for j in span(y):
                yield f"{i}:{j}"


def _spots(row: Row) -> list[Row]:
    flat = row["numbers"]
    return [{"u": flat[at], "v": flat[at + 1], "height": flat[at + 2]} for at in range(0, len(flat), 3)]


def _nearest(row: Row, others: Iterator[Row], bound_us: int) -> Row | None:
    """The earlier of two that are equally near, or the order in which rows came would decide."""
    near = [one for one in others if _apart_us(row, one) <= bound_us]
    return min(near, key=lambda one: (abs(one["event_ns"] - row["event_ns"]), one["event_ns"]), default=None)


def _apart_us(one: Row, other: Row) -> int:
    # In whole microseconds, as Spark's timestamps have them.
    return abs(int(one["event_ns"]) // 1000 - int(other["event_ns"]) // 1000)

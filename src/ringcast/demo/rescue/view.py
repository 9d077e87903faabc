"""A look at the search and rescue as tables for a terminal, or as a line for a log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ringcast.cli.parts.units import show_bytes
from ringcast.demo.rescue.roles import DETECTIONS, PROXY, WEAK_TAG

if TYPE_CHECKING:
    from ringcast.demo.rescue.running import Outcome, Scene

Sheet = tuple[Sequence[str], list[list[str]], str]

_STREAMS = ("stream", "publishers", "received", "per second", "lost", "delay in ms", "bytes")
_FOUND = ("survivor at", "confidence", "seconds after")
_SHOWN = 8


def sheets(scene: Scene, title: str) -> Iterator[Sheet]:
    rows = [
        [
            kind, str(one.publishers), str(one.received), f"{one.per_s:.0f}", str(one.lost), f"{one.delay_ms:.2f}",
            show_bytes(one.bytes) if one.bytes else "-",
        ]
        for kind, one in scene.streams.items()
    ]  # fmt: skip
    seen = scene.handheld
    if seen.received:
        name = f"{WEAK_TAG} {'x'.join(map(str, reversed(seen.shape)))} by {PROXY}"
        rows.append(
            [name, "1", str(seen.received), f"{seen.received / max(0.1, scene.elapsed_s):.0f}", str(seen.lost),
             f"{seen.delay_ms:.2f}", show_bytes(seen.bytes)]
        )  # fmt: skip
    yield _STREAMS, rows, title
    found = [
        [f"{one.x:7.1f} {one.y:7.1f} {one.z:5.1f}", f"{one.confidence:.2f}", f"{one.delay_s:.1f}"]
        for one in scene.latest[:_SHOWN]
    ]
    spark = f"Spark's batch {scene.batches} took {scene.batch_s:.1f} s"
    yield _FOUND, found, f"{DETECTIONS}: {scene.detections} so far; {spark}"


def line(scene: Scene) -> str:
    """The same in one line."""
    streams = scene.streams.values()
    delay = max((one.delay_ms for one in streams), default=0.0)
    text = (
        f"{scene.elapsed_s:4.0f} s  {sum(one.per_s for one in streams):4.0f} messages/s, "
        f"{sum(one.lost for one in streams)} lost, {delay:.1f} ms; handheld {scene.handheld.received} frames; "
        f"{scene.detections} detections"
    )
    if scene.latest:
        one = scene.latest[0]
        text += f", {len(scene.latest)} survivors in view, one at {one.x:.1f} {one.y:.1f} {one.z:.1f}"
    return text


def verdict(done: Outcome) -> list[str]:
    """What it came to, in sentences."""
    one = done.concluded
    lost = sum(stream.lost for stream in done.scene.streams.values())
    received = sum(stream.received for stream in done.scene.streams.values())
    found = f"{one.survivors_found} of {one.survivors} survivors found, in {one.ticks} ticks of 100 ms"
    size = "x".join(map(str, reversed(done.scene.handheld.shape)))
    delays = f"half of them within {done.detection_delay_s:.1f} s, 95 % within {done.detection_delay_p95_s:.1f} s"
    return [
        f"{found}: recall {one.recall:.3f}, precision {one.precision:.3f}, {one.error_m:.2f} m off on average.",
        f"{one.detections} detections came back on {DETECTIONS}: {delays}.",
        f"The mesh carried {received} messages of the sensors and lost {lost}.",
        f"The handheld received {done.scene.handheld.received} frames, {size}, scaled on the way.",
    ]

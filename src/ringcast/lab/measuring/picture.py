"""Charts of experiments as SVG files: what `report.Picture` describes, drawn by `drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringcast.lab.measuring.drawing import COLOURS, Drawing
from ringcast.lab.measuring.report import Picture, Series

_DASHES = ("", "2 3")
_PAPERS_DASH = "6 4"
_ROOM = 1.06
"""Above the highest point, so that it is not on the frame."""
_BARS = 0.8
"""What bars take of the room between two labels."""
_NUMBERS = 12
"""Numbers on more bars than that cover each other."""


def draw(picture: Picture, folder: Path) -> Path:
    """Write it into `folder` and return where. Raises OSError."""
    path = folder / f"{picture.name}.svg"
    path.write_text(svg(picture))
    return path


def svg(picture: Picture) -> str:
    """The drawing itself."""
    ours = [series for series in picture.series if not series.paper]
    papers = [series for series in picture.series if series.paper]
    drawing = Drawing(
        picture.title, _span(picture), (picture.bottom, _top(ours, picture.bottom)), (picture.x, picture.y),
        width=720, height=420, two_scales=bool(papers),
    )  # fmt: skip
    drawing.grid(list(enumerate(picture.labels)) if picture.labels else None)
    show = _bars if picture.kind == "bars" else _lines
    # Bars of both stand side by side, so each must know how many there are.
    show(drawing, ours, 0, len(picture.series))
    if papers:
        right = drawing.with_right_scale((0.0, _top(papers, 0.0)), picture.paper_y)
        show(right, papers, len(ours), len(picture.series))
    return drawing.svg()


def _span(picture: Picture) -> tuple[float, float]:
    if picture.labels:
        return -0.5, len(picture.labels) - 0.5
    along = [x for series in picture.series for x, _ in series.points] or [0.0]
    margin = 0.03 * (max(along) - min(along))
    return min(along) - margin, max(along) + margin


def _top(series: Sequence[Series], bottom: float) -> float:
    highest = [y + error for one in series for (_, y), error in zip(one.points, _errors(one), strict=True)]
    return bottom + (max(highest, default=bottom + 1) - bottom) * _ROOM


def _errors(series: Series) -> Sequence[float]:
    return series.errors or [0.0] * len(series.points)


def _lines(drawing: Drawing, series: Sequence[Series], first: int, total: int) -> None:
    # Counted from the first here and in the paper, so that what is compared has one colour.
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        dash = _PAPERS_DASH if one.paper else _DASHES[number // len(COLOURS) % len(_DASHES)]
        drawing.line(one.points, colour, one.label, dash=dash)
        drawing.dots(one.points, colour)
        if one.errors:
            drawing.errors(one.points, one.errors, colour)


def _bars(drawing: Drawing, series: Sequence[Series], first: int, total: int) -> None:
    width = _BARS / total
    shown = sum(len(one.points) for one in series) <= _NUMBERS
    for number, one in enumerate(series, first):
        colour = COLOURS[number % len(COLOURS)]
        for x, y in one.points:
            left = x + number * width - _BARS / 2
            # The paper's are paler: they are on the other scale.
            drawing.bar(left, width, y, colour, one.label, 0.45 if one.paper else 1, shown)
        if one.errors:
            middle = [(x + (number + 0.5) * width - _BARS / 2, y) for x, y in one.points]
            drawing.errors(middle, one.errors, "#111")

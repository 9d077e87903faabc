"""Drawings as SVG, by matplotlib (the extra `lab`). The only module that knows it.

The same picture gives the same bytes: no date, and names inside the file that do not change from run to run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringcast.lab.report import Picture, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MISSING = "no pictures were drawn: they need matplotlib ('pip install ringcast[lab]')"
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
_STROKES = ("-", ":")
_STYLE: Any = {"svg.hashsalt": "ringcast", "svg.fonttype": "none", "font.size": 9.0}


def available() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(picture: Picture, folder: Path) -> Path:
    """Write it into `folder` and return where. Raises ImportError, OSError."""
    import matplotlib
    from matplotlib.figure import Figure

    path = folder / f"{picture.name}.svg"
    with matplotlib.rc_context(_STYLE):
        sheet = Figure(figsize=(7.2, 4.2), layout="constrained")
        left = sheet.add_subplot()
        papers = [series for series in picture.series if series.paper]
        right = left.twinx() if papers else None
        show = _bars if picture.kind == "bars" else _lines
        ours = [series for series in picture.series if not series.paper]
        # Bars of both stand side by side, so each must know how many there are.
        show(left, ours, 0, len(picture.series))
        left.set(title=picture.title, xlabel=picture.x, ylabel=picture.y)
        left.set_ylim(bottom=picture.bottom)
        left.grid(alpha=0.3)
        if right is not None:
            show(right, papers, len(ours), len(picture.series))
            right.set_ylabel(picture.paper_y)
            right.set_ylim(bottom=0)
        if picture.labels:
            left.set_xticks(range(len(picture.labels)), picture.labels)
        # Below the drawing, where it covers nothing.
        sheet.legend(loc="outside lower center", ncols=3, fontsize=8)
        sheet.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    return path


def _lines(axes: Axes, series: list[Series], first: int, total: int) -> None:
    # Counted from the first here and in the paper, so that what is compared has one colour.
    for number, one in enumerate(series):
        stroke = "--" if one.paper else _STROKES[number // len(_COLOURS) % len(_STROKES)]
        axes.errorbar(
            [x for x, _ in one.points], [y for _, y in one.points], yerr=list(one.errors) or None, label=one.label,
            color=_COLOURS[number % len(_COLOURS)], linestyle=stroke,
            marker="x" if one.paper else "o", markersize=4, linewidth=1.2, capsize=2,
        )  # fmt: skip


def _bars(axes: Axes, series: list[Series], first: int, total: int) -> None:
    width = 0.8 / total
    for number, one in enumerate(series, first):
        axes.bar(
            [x + (number - (total - 1) / 2) * width for x, _ in one.points], [y for _, y in one.points], width,
            yerr=list(one.errors) or None, label=one.label, color=_COLOURS[number % len(_COLOURS)],
            hatch="//" if one.paper else None, capsize=2,
        )  # fmt: skip

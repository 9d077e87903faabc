"""Charts for pages and notebooks: Plotly figures, interactive, and as HTML that fetches nothing. The one place that
says what a chart looks like; what is in it is its caller's business.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4b5563")
_LAYOUT: dict[str, Any] = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 13},
    "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
    "legend": {"orientation": "h", "y": -0.2},
}


def lines(
    title: str, series: Mapping[str, Sequence[tuple[Any, float]]], x: str = "", y: str = "",
    thin: Mapping[str, Sequence[tuple[Any, float]]] | None = None,
) -> go.Figure:  # fmt: skip
    """A line for each series, by its name. Those in `thin` go with the series of their name and are drawn thinner."""
    figure = styled(go.Figure(), title, x, y)
    for at, (name, points) in enumerate(series.items()):
        colour = COLOURS[at % len(COLOURS)]
        for some, width in ((points, 2.4), ((thin or {}).get(name, ()), 1.0)):
            if some:
                figure.add_scatter(
                    x=[p[0] for p in some], y=[p[1] for p in some], mode="lines+markers", name=name,
                    line={"color": colour, "width": width}, marker={"size": 4}, legendgroup=name,
                    showlegend=some is points,
                )  # fmt: skip
    return figure


def bars(
    title: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], y: str = "",
    ends: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> go.Figure:  # fmt: skip
    """Bars side by side for each label; `ends` are the two ends of an interval about each bar of a series."""
    figure = styled(go.Figure(), title, "", y).update_layout(barmode="group")
    for at, (name, values) in enumerate(series.items()):
        around = (ends or {}).get(name)
        error = None if around is None else {
            "type": "data", "symmetric": False,
            "array": [high - value for value, (_, high) in zip(values, around, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(values, around, strict=True)],
        }  # fmt: skip
        figure.add_bar(x=list(labels), y=list(values), name=name, marker_color=COLOURS[at % len(COLOURS)],
                       error_y=error, texttemplate="%{y:.3f}", textposition="inside")  # fmt: skip
    return figure


def with_errors(figure: go.Figure, errors: Mapping[str, Sequence[float]]) -> go.Figure:
    """Whiskers on each point of the series of that name, as far up and down as its error."""
    for trace in figure.data:
        if errors.get(trace.name):
            trace.error_y = {"type": "data", "array": list(errors[trace.name]), "color": "#374151", "thickness": 1}
    return figure


def on_the_right(figure: go.Figure, names: Collection[str], y: str) -> go.Figure:
    """Series of these names by a scale of their own, paler or dashed: what has another unit must not look smaller."""
    for at, trace in enumerate(figure.data):
        if trace.type == "bar":
            trace.offsetgroup = str(at)  # beside the others, though its scale is another
        if trace.name not in names:
            continue
        trace.yaxis = "y2"
        if trace.type == "bar":
            trace.opacity = 0.5
        else:
            trace.line.dash = "dash"
    scale = {"title": y, "overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False}
    figure.update_layout(yaxis2=scale, yaxis_rangemode="tozero", margin_r=60)
    return figure


def styled(figure: go.Figure, title: str, x: str = "", y: str = "") -> go.Figure:
    figure.update_layout(**_LAYOUT, title=title, xaxis_title=x, yaxis_title=y)
    return figure


def html(figure: go.Figure, name: str, height: int = 420) -> str:
    """The chart as an element called `name`; the page has Plotly itself once (`script`)."""
    text: str = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=name, default_height=f"{height}px",
        config={"displaylogo": False, "responsive": True},
    )  # fmt: skip
    return text


def script() -> str:
    """Plotly, for a page with charts: in the page, or it would have to be fetched."""
    return f"<script>{get_plotlyjs()}</script>"


def data(value: Any) -> str:
    """A value inside a script of a page; nothing in it can end the script."""
    return json.dumps(value).replace("<", "\\u003c")

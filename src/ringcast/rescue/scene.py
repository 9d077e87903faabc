"""The scene in three dimensions, over time, and the list to dispatch teams by: HTML of what the tables hold.

Reads no table itself: rows in, HTML out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from ringcast.spark.analyst import charts

CHART = "scene"
_FRAMES = 120
"""More steps than that on a slider are too fine to hit."""
_TICK_NS = 100_000_000

_SCRIPT = """
<script>
(function () {
  const people = PEOPLE, chart = document.getElementById("CHART"), at = chart.data.length - 1;
  document.querySelectorAll("#dispatch tbody tr").forEach(function (row, number) {
    row.addEventListener("click", function () {
      document.querySelectorAll("#dispatch tbody tr").forEach(function (other) { other.classList.remove("chosen"); });
      row.classList.add("chosen");
      const sizes = people.map(function (_, other) { return other === number ? 16 : 8; });
      Plotly.restyle(chart, {"marker.size": [sizes]}, [at]);
    });
    row.querySelector("input").addEventListener("change", function (event) {
      row.classList.toggle("sent", event.target.checked);
      const left = document.querySelectorAll("#dispatch input:not(:checked)").length;
      document.getElementById("waiting").textContent = left;
    });
  });
})();
</script>
"""


def scene_chart(
    detections: Sequence[Mapping[str, Any]], people: Sequence[Mapping[str, Any]], truth: Sequence[Mapping[str, Any]],
    cameras: Sequence[Mapping[str, Any]], fires: Sequence[Mapping[str, Any]],
) -> str:  # fmt: skip
    """Detections by tick with a slider and a button that plays them, where survivors truly were, who looked, fires, and
    the people of the list."""
    begin = min((row["event_ns"] for row in detections), default=0)
    ticks = sorted({row["event_ns"] // _TICK_NS for row in detections})
    figure = charts.styled(go.Figure(), "Survivors in three dimensions, over time")
    _points(figure, detections, "all detections", 2, "#94a3b8", 0.35)
    _points(figure, [row for row in detections if ticks and row["event_ns"] // _TICK_NS == ticks[-1]],
            "detections of this moment", 6, charts.COLOURS[0], 1.0)  # fmt: skip
    for name in sorted({row["survivor"] for row in truth}):
        path = [row for row in truth if row["survivor"] == name]
        figure.add_scatter3d(
            **_axes(path), mode="lines", line={"color": "#111", "width": 3}, name="where they truly were",
            legendgroup="truth", showlegend=name == min(row["survivor"] for row in truth), hovertext=name,
        )  # fmt: skip
    _points(figure, cameras, "street cameras", 5, charts.COLOURS[3], 1.0, "diamond")
    _points(figure, fires, "fires", 8, charts.COLOURS[1], 1.0, "x")
    names = [str(one["person"]) for one in people]
    figure.add_scatter3d(
        **_axes(people), mode="markers+text", text=names, textposition="top center", name="people to send teams to",
        marker={"size": [8] * len(names), "color": charts.COLOURS[2], "symbol": "circle-open"},
    )  # fmt: skip
    _play(figure, detections, ticks[:: max(1, len(ticks) // _FRAMES)], begin)
    axes = {"xaxis_title": "m east", "yaxis_title": "m north", "zaxis_title": "m up", "aspectmode": "data"}
    figure.update_layout(scene=axes, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}, title_y=0.99)
    return charts.html(figure, CHART, 640)


def dispatch_list(people: Sequence[Mapping[str, Any]]) -> str:
    """A row per person, the one seen most often first: a click shows who it is in the scene, a tick that a team is on
    its way."""
    heads = ("team sent", "person", "east, north, up (m)", "within (m)", "last seen (UTC)", "ticks seen", "confidence",
             "warmer by (K)")  # fmt: skip
    rows = []
    for one in people:
        where = f"{one['x']:.2f}, {one['y']:.2f}, {one['z']:.2f}"
        cells = (str(one["person"]), where, f"{one['accuracy_m']:.2f}", f"{one['event_time']:%H:%M:%S.%f}"[:-5],
                 str(one["ticks"]), f"{one['confidence']:.2f}", f"{one['warmth_k']:.1f}")  # fmt: skip
        boxes = f'<td><input type="checkbox" aria-label="a team is sent to {escape(cells[0])}"></td>'
        rows.append(f"<tr>{boxes}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    waiting = f'<p><b id="waiting">{len(rows)}</b> wait for a team.</p>'
    script = _SCRIPT.replace("PEOPLE", charts.data([one["person"] for one in people])).replace("CHART", CHART)
    return f'{waiting}<table id="dispatch"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>{script}'


def _points(
    figure: go.Figure, rows: Sequence[Mapping[str, Any]], name: str, size: int, colour: str, opacity: float,
    symbol: str = "circle",
) -> None:  # fmt: skip
    marker = {"size": size, "color": colour, "symbol": symbol}
    figure.add_scatter3d(**_axes(rows), mode="markers", name=name, opacity=opacity, marker=marker)


def _axes(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    # Centimetres: more is noise, and makes the page large.
    return {axis: [round(float(row.get(axis) or 0.0), 2) for row in rows] for axis in "xyz"}


def _play(figure: go.Figure, detections: Sequence[Mapping[str, Any]], ticks: Sequence[int], begin: int) -> None:
    by_tick: dict[int, list[Mapping[str, Any]]] = {}
    for row in detections:
        by_tick.setdefault(row["event_ns"] // _TICK_NS, []).append(row)
    if not ticks:
        return
    names = [f"{(tick * _TICK_NS - begin) / 1e9:.1f}" for tick in ticks]
    marker = {"size": 6, "color": charts.COLOURS[0]}
    figure.frames = [
        go.Frame(
            data=[go.Scatter3d(**_axes(by_tick[tick]), mode="markers", marker=marker)], traces=[1], name=name,
        )
        for tick, name in zip(ticks, names, strict=True)
    ]  # fmt: skip
    at_once = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate"}
    steps = [{"method": "animate", "label": name, "args": [[name], at_once]} for name in names]
    play = {"frame": {"duration": 100, "redraw": True}, "fromcurrent": True, "transition": {"duration": 0}}
    buttons = [
        {"label": "play", "method": "animate", "args": [None, play]},
        {"label": "pause", "method": "animate", "args": [[None], at_once]},
    ]
    figure.update_layout(
        sliders=[{"steps": steps, "active": max(0, len(steps) - 1), "currentvalue": {"prefix": "seconds: "}}],
        updatemenus=[{"type": "buttons", "buttons": buttons, "x": 0.02, "y": 0.98, "xanchor": "left"}],
    )

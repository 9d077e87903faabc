"""The scene in three dimensions and the list to dispatch by: one page, nothing fetched."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest

pytest.importorskip("plotly")

from ringcast.rescue.scene import dispatch_list, scene_chart
from ringcast.spark.analyst import charts
from ringcast.spark.page import Section, page

TICK_NS = 100_000_000
PEOPLE: list[dict[str, Any]] = [
    {"person": f"P{n}", "x": 2.0 * n, "y": -1.0 * n, "z": 0.9, "accuracy_m": 0.1, "ticks": 20, "confidence": 0.9,
     "warmth_k": 11.0, "event_time": dt.datetime(2026, 1, 1, 12, 0, 2, 150_000, dt.UTC)}
    for n in (1, 2)
]  # fmt: skip
DETECTIONS: list[dict[str, Any]] = [
    {"event_ns": tick * TICK_NS, "x": one["x"] + 0.01 * tick, "y": one["y"], "z": one["z"]}
    for tick in range(1000, 1020) for one in PEOPLE
]  # fmt: skip
TRUTH = [{"survivor": f"survivor-{at % 2}", **row} for at, row in enumerate(DETECTIONS)]


@pytest.fixture(scope="module")
def text() -> str:
    chart = scene_chart(DETECTIONS, PEOPLE, TRUTH, [{"x": 30.0, "y": 30.0, "z": 9.0}], [{"x": 1.0, "y": 1.0}])
    return page("Search", [Section("Survivors", "two", [chart, dispatch_list(PEOPLE)])], "", charts.script())


def test_a_moment_of_the_slider_has_its_detections_and_no_others(text: str) -> None:
    frames = re.findall(r'"name":"(\d+\.\d)","traces":\[1\]', text)
    assert frames == [f"{tick / 10:.1f}" for tick in range(20)]
    assert '"label":"play"' in text


def test_the_list_says_where_and_when_and_how_surely(text: str) -> None:
    assert "<td>P2</td><td>4.00, -2.00, 0.90</td><td>0.10</td><td>12:00:02.1</td><td>20</td><td>0.90</td>" in text
    assert '<b id="waiting">2</b> wait for a team' in text


def test_nothing_is_fetched_and_nothing_escapes() -> None:
    own = scene_chart(DETECTIONS, PEOPLE, [], [], []) + dispatch_list([{**PEOPLE[0], "person": "</script><b>"}])
    assert not re.search(r"""(src|href)=["']?https?:""", own)
    assert "</script><b>" not in own


def test_nobody_found_is_an_empty_list_and_a_scene_without_a_slider() -> None:
    assert '<b id="waiting">0</b>' in dispatch_list([])
    assert '"sliders"' not in scene_chart([], [], [], [], [])

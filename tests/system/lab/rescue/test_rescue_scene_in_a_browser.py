"""The page of a search and rescue in a browser: the scene is drawn, and a dispatcher sends a team."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from browsers import launch

pytest.importorskip("plotly")

from ringcast.rescue.scene import dispatch_list, scene_chart
from ringcast.spark.analyst import charts
from ringcast.spark.page import Section, page

PEOPLE: list[dict[str, Any]] = [
    {"person": f"P{n}", "x": 2.0 * n, "y": -1.0 * n, "z": 0.9, "accuracy_m": 0.1, "ticks": 20, "confidence": 0.9,
     "warmth_k": 11.0, "event_time": dt.datetime(2026, 1, 1, 12, 0, 2, 150_000, dt.UTC)}
    for n in (1, 2)
]  # fmt: skip
DETECTIONS = [
    {"event_ns": tick * 100_000_000, "x": one["x"], "y": one["y"], "z": one["z"]}
    for tick in range(1000, 1020)
    for one in PEOPLE
]


def test_a_browser_draws_it_and_a_team_is_sent(tmp_path: Path, playwright: Any) -> None:
    chart = scene_chart(DETECTIONS, PEOPLE, [], [{"x": 30.0, "y": 30.0, "z": 9.0}], [{"x": 1.0, "y": 1.0}])
    path = tmp_path / "page.html"
    path.write_text(page("Search", [Section("Survivors", "two", [chart, dispatch_list(PEOPLE)])], "", charts.script()))
    asked: list[str] = []
    wrong: list[str] = []
    browser = launch(playwright, "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    try:
        shown = browser.new_page()
        shown.on("request", lambda request: asked.append(request.url))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.goto(f"file://{path}")
        shown.wait_for_selector("#scene .gl-container canvas", state="attached")
        # As a dispatcher does: the second person's box.
        shown.locator("#dispatch input").nth(1).click()
        assert shown.inner_text("#waiting") == "1"
        assert set(shown.locator("#dispatch tbody tr").nth(1).get_attribute("class").split()) == {"chosen", "sent"}
        assert shown.evaluate("document.getElementById('scene').data.at(-1).marker.size") == [8, 16]
    finally:
        browser.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == [], "it needs no network"
